"""The random numbers of `holdfast.core.randomness`, up to rounding, in loops that numba vectorises."""

import math

import numpy as np
from numba import njit

from holdfast.core.randomness import CHI_SQUARE_PROPOSALS

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
