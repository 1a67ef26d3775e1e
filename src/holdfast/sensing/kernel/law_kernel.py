"""A step of HeteroSGD with the exact law of the gradient, in machine code.

    U <- (I - eta G) U,    -eta G = a W + b Z,    W = U U^T - A* - A(e)

Z is a draw of the symmetric ensemble; the numbers a and b are those of `sensing.oracles.law`. A run is computed from
beginning to end while its matrices are in the caches of a core.
"""

import math

import numpy as np
from numba import njit

from holdfast.core.randomness import CHI_SQUARE_NORMALS
from holdfast.sensing.kernel.calls import argument, array, asked_for_version, data, result, runs, size
from holdfast.sensing.kernel.matrices import combine, copy, gram, multiply
from holdfast.sensing.kernel.normals import box_muller, chi_square, threefry_words
from holdfast.sensing.kernel.vectors import WIDTH

f = np.float32
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
