"""A step of HeteroSGD with the exact law of the gradient, in machine code.

    U <- (I - eta G) U,    -eta G = a W + b Z,    W = U U^T - A* - A(e)

Z is a draw of the symmetric ensemble; the numbers a and b are those of `sensing.oracles.law`. A run is computed from
beginning to end while its matrices are in the caches of a core. The random numbers are those of
`holdfast.core.randomness`, up to rounding, in loops that numba vectorises.
"""

import math

import numpy as np
from numba import njit

from holdfast.core.randomness import CHI_SQUARE_NORMALS, CHI_SQUARE_PROPOSALS
from holdfast.sensing.kernel.calls import argument, array, asked_for_version, data, result, runs, size
from holdfast.sensing.kernel.matrices import WIDTH, combine, copy, gram, multiply

u, f = np.uint32, np.float32

_PARITY = u(0x1BD11BDA)
_ONE, _HALF, _ROOT_HALF_BITS = f(1), f(0.5), np.int32(np.float32(math.sqrt(0.5)).view(np.int32))
_LOG_2, _THIRD = f(math.log(2)), f(1 / 3)
_STEP, _ANGLE = f(2.0**-24), f(math.pi / 2 * 2.0**-32)
# log((1 + s) / (1 - s)) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...), and the series of cosine and sine as nested products.
_LOGARITHM = tuple(f(2 / (2 * n + 1)) for n in range(5))
_COSINE = tuple(f(-1 / (2 * n * (2 * n - 1))) for n in range(1, 5))
_SINE = tuple(f(-1 / (2 * n * (2 * n + 1))) for n in range(1, 5))


@njit(inline="always")
def _mixed(first, second, bits):
    first = u(first + second)
    return first, u(u((second << u(bits)) | (second >> u(32 - bits))) ^ first)


@njit(inline="always")
def _even_group(first, second):
    first, second = _mixed(first, second, 13)
    first, second = _mixed(first, second, 15)
    first, second = _mixed(first, second, 26)
    return _mixed(first, second, 6)


@njit(inline="always")
def _odd_group(first, second):
    first, second = _mixed(first, second, 17)
    first, second = _mixed(first, second, 29)
    first, second = _mixed(first, second, 16)
    return _mixed(first, second, 24)


@njit
def threefry_words(key, other_key, first_words, second_words):
    """The two words of the Threefry blocks 0, 1, ... of a key: `holdfast.core.randomness.threefry`, to the bit."""
    third = u(key ^ other_key ^ _PARITY)
    for counter in range(first_words.size):
        first, second = _even_group(u(u(counter) + key), other_key)
        first, second = _odd_group(u(first + other_key), u(second + third + u(1)))
        first, second = _even_group(u(first + third), u(second + key + u(2)))
        first, second = _odd_group(u(first + key), u(second + other_key + u(3)))
        first, second = _even_group(u(first + other_key), u(second + third + u(4)))
        first_words[counter] = first + third
        second_words[counter] = second + key + u(5)


@njit(inline="always")
def _logarithm(number):
    """Of a positive float32: the exponent, and a series for what lies between the square roots of 1/2 and 2."""
    bits = number.view(np.int32)
    exponent = np.int32(np.int32(bits - _ROOT_HALF_BITS) >> np.int32(23))
    mantissa = np.int32(bits - np.int32(exponent << np.int32(23))).view(np.float32)
    s = f((mantissa - _ONE) / (mantissa + _ONE))
    q = f(s * s)
    series = _LOGARITHM[0] + q * (_LOGARITHM[1] + q * (_LOGARITHM[2] + q * (_LOGARITHM[3] + q * _LOGARITHM[4])))
    return f(s * series + f(exponent) * _LOG_2)


@njit(fastmath={"contract"}, error_model="numpy")
def box_muller(first_words, second_words, x, y):
    """The two normal numbers of each block."""
    for number in range(first_words.size):
        uniform = f((f(np.int32(first_words[number] >> u(8))) + _HALF) * _STEP)
        radius = f(math.sqrt(f(-2) * _logarithm(uniform)))
        angle = second_words[number]
        # As in `randomness`: an angle in [-pi/4, pi/4) around the middle of its quadrant.
        t = f(f(np.int32(u(angle << u(2)))) * _ANGLE)
        q = f(t * t)
        cosine = _ONE + q * _COSINE[0] * (_ONE + q * _COSINE[1] * (_ONE + q * _COSINE[2] * (_ONE + q * _COSINE[3])))
        sine = t * (_ONE + q * _SINE[0] * (_ONE + q * _SINE[1] * (_ONE + q * _SINE[2] * (_ONE + q * _SINE[3]))))
        quadrant = u(angle >> u(30))
        odd = (quadrant & u(1)) == u(1)
        x[number] = _signed(radius * (sine if odd else cosine), u(quadrant + u(1)))
        y[number] = _signed(radius * (cosine if odd else sine), quadrant)


@njit(inline="always")
def _signed(number, quadrant):
    """The number itself, or minus it where bit 1 of the quadrant is set: that bit becomes the sign."""
    return u(f(number).view(np.uint32) ^ u(u(quadrant & u(2)) << u(30))).view(np.float32)


@njit(error_model="numpy")
def chi_square(normals, freedom):
    """A chi-square number from `CHI_SQUARE_NORMALS` normal ones, or zero if there are no degrees of freedom."""
    if freedom < 2:
        return normals[0] * normals[0] if freedom > 0 else f(0)
    scale = f(freedom / f(2) - _THIRD)
    width = f(3) * math.sqrt(scale)
    for proposal in range(CHI_SQUARE_PROPOSALS):
        t = normals[proposal] / width
        first, second = normals[CHI_SQUARE_PROPOSALS + proposal], normals[2 * CHI_SQUARE_PROPOSALS + proposal]
        logarithm = -(first * first + second * second) * _HALF
        # log(1 + t) - t + t^2/2 - t^3/3 > -t^4/2 for these t, so that most proposals need no logarithm.
        if abs(t) < _HALF and f(-1.5) * scale * t * t * t * t > logarithm:
            break
        if t > -_ONE and f(3) * scale * (math.log1p(t) - t * (_ONE - t * _HALF + t * t * _THIRD)) > logarithm:
            break
    else:
        t = normals[0] / width
    return f(2) * scale * (_ONE + t) * (_ONE + t) * (_ONE + t)


_ROOT_2, _ROOT_HALF = f(math.sqrt(2)), f(math.sqrt(0.5))


@njit(fastmath={"contract", "reassoc"})
def _inner_products(w, b):
    """||W||^2 and <W, B>."""
    square, product = f(0), f(0)
    for number in range(w.size):
        square += w[number] * w[number]
        product += w[number] * b[number]
    return square, product


@njit
def _draw(key, other_key, words, other_words, seconds, coordinates, count, rest):
    """Normal numbers of one key: the coordinates of Z, and those that the Wishart matrix is made from.

    Both hold the first numbers of their Threefry blocks, and then the second numbers.
    """
    threefry_words(key, other_key, words, other_words)
    box_muller(words, other_words, coordinates, seconds)
    half, rest_half = (count + 1) // 2, (rest.size + 1) // 2
    firsts, others = coordinates.ctypes.data, seconds.ctypes.data
    copy(firsts + 4 * half, rest.ctypes.data, rest_half)
    copy(others + 4 * half, rest.ctypes.data + 4 * rest_half, rest.size - rest_half)
    copy(others, firsts + 4 * half, count - half)


@njit
def _unpack(coordinates, half, dimension):
    """A matrix B with B + B^T = sqrt(2) Z, in the order of `holdfast.core.linear_algebra.unpack_symmetric`.

    What is not written is zero, and stays so.
    """
    lower = dimension // 2
    upper = dimension - lower
    source, target = coordinates.ctypes.data, half.ctypes.data
    for row in range(upper):
        copy(source + 4 * row * lower, target + 4 * (row * dimension + upper), lower)
        rectangle = source + 4 * (upper * lower + row * (lower + 1))
        copy(rectangle, target + 4 * row * dimension, row + 1)
        if row < lower:
            copy(rectangle + 4 * (row + 1), target + 4 * (upper + row) * (dimension + 1), lower - row)
    for row in range(dimension):
        half[row * (dimension + 1)] *= _ROOT_HALF


@njit
def _row_size(numbers):
    """Normal numbers for a row of Bartlett's factor, which has two rows if there is label noise."""
    return numbers.size - 1 + CHI_SQUARE_NORMALS


@njit(error_model="numpy")
def _coefficients(square, product, normals, numbers):
    """The numbers a and b, from ||W||^2 and <W, Z>.

    With Bartlett's factor L of the Wishart matrix of (g_i, eps_i), and c = L^T (||W||, -sigma):

        a = -(eta/m) (L_11 c_1 / ||W|| - ||c|| <W, Z> / ||W||^2),    b = -(eta/m) ||c||

    Args:
        square: ||W||^2.
        product: <W, Z>.
        normals: that L is made from.
        numbers: m, eta / m and, if there is label noise, sigma.
    """
    count, scale, row = numbers[0], numbers[1], _row_size(numbers)
    norm = math.sqrt(square)
    inverse = f(1) / norm if norm > 0 else f(1)
    first = math.sqrt(chi_square(normals[row - CHI_SQUARE_NORMALS :], count))
    along, across = first * norm, f(0)
    if numbers.size > 2:
        along -= numbers[2] * normals[row]
        across = numbers[2] * math.sqrt(chi_square(normals[2 * row - CHI_SQUARE_NORMALS :], count - f(1)))
    length = math.sqrt(along * along + across * across)
    return -scale * (first * along - length * product * inverse) * inverse, -scale * length


def steps(frame):
    """The handler of a step of several runs; `holdfast.sensing.kernel.calls` says what a handler is.

    Its arguments are, for each run, the key, U, two matrices of a few rows D and E with D^T E = -A* - A(e), and the
    numbers of `_coefficients`. Its result is the next U.
    """
    if asked_for_version(frame):
        return 0
    factors, scaled, basis, last = argument(frame, 1), argument(frame, 2), argument(frame, 3), argument(frame, 4)
    dimension, rank = size(factors, 1), size(basis, 2)
    count, entries = runs(factors, 2), dimension * dimension
    keys = array(argument(frame, 0), np.uint32, (count, 2))
    numbers = array(last, np.float32, (count, size(last, 1)))
    coordinate_count = dimension * (dimension + 1) // 2
    rest = np.empty((numbers.shape[1] - 1) * _row_size(numbers[0]), np.float32)
    # A whole number of registers, so that none of them is computed number by number.
    blocks = ((coordinate_count + 1) // 2 + (rest.size + 1) // 2 + WIDTH - 1) // WIDTH * WIDTH
    words, others = np.empty(blocks, np.uint32), np.empty(blocks, np.uint32)
    seconds, coordinates = np.empty(blocks + WIDTH, np.float32), np.empty(2 * blocks + WIDTH, np.float32)
    half, w, h = np.zeros(entries, np.float32), np.empty(entries, np.float32), np.empty(entries, np.float32)
    for run in range(count):
        matrix, vectors = 4 * run * entries, 4 * run * rank * dimension
        u, d, e = data(factors) + matrix, data(scaled) + vectors, data(basis) + vectors
        gram(u, h.ctypes.data, d, e, rank, w.ctypes.data, dimension)
        _draw(keys[run, 0], keys[run, 1], words, others, seconds, coordinates, coordinate_count, rest)
        _unpack(coordinates, half, dimension)
        square, product = _inner_products(w, half)
        # <W, Z> = sqrt(2) <W, B>, as W is symmetric.
        a, b = _coefficients(square, _ROOT_2 * product, rest, numbers[run])
        combine(w.ctypes.data, a, half.ctypes.data, _ROOT_HALF * b, h.ctypes.data, dimension)
        for row in range(dimension):
            h[row * (dimension + 1)] += f(1)
        multiply(h.ctypes.data, u, data(result(frame, 0)) + matrix, dimension)
    return 0
