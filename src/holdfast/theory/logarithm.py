"""E log|c + b N|, the mean logarithm of a random factor: closed forms, and quadrature for any other law."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from holdfast.sensing.deviations import NORMAL, SHARES, TAIL, UNIFORM, WEIGHTS, Deviation

# Beyond this ratio of centre to spread the asymptotic series of E log|c + b N| is exact to rounding, and fast.
FAR = 20.0
TINY = np.finfo(float).tiny


def mean_logarithm(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| for N of the law `deviation`, in closed form for the uniform and the normal law.

    Args:
        deviation: the law of N.
        centre: c.
        spread: b, not negative.

    Example, E log|N| of a standard normal N is -(log 2 + Euler's constant) / 2:
        >>> float(mean_logarithm(NORMAL, 0.0, 1.0).round(6))
        -0.635181
    """
    centre, spread = np.broadcast_arrays(np.asarray(centre, float), np.asarray(spread, float))
    with np.errstate(divide="ignore"):
        result = np.array(np.log(np.abs(centre)))
    random = spread > 0
    if deviation in CLOSED_FORMS:  # of symmetric laws, for which the sign of c does not matter
        result[random] = CLOSED_FORMS[deviation](np.abs(centre[random]), spread[random])
    else:
        result[random] = quadrature(deviation, centre[random], spread[random])
    return result


def quadrature(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| = int_0^1 log|c + b F^-1(u)| du by tanh-sinh quadrature, for all c and b at once.

        u = a + (b - a) / (1 + exp(-pi sinh t)) on each piece [a, b],    trapezoidal rule in t

    The nodes crowd at the ends of a piece, where singularities therefore do no harm. The pieces end at the pole of the
    logarithm, c + b F^-1(u) = 0, and at the median, where quantile functions that are written in two halves join.

    Reference: H. Takahasi, M. Mori, Publ. RIMS 9 (1974).
    """
    centre, spread = np.broadcast_arrays(*(np.asarray(value, float)[..., None] for value in (centre, spread)))

    def argument(probability: np.ndarray) -> np.ndarray:
        return centre + spread * deviation.quantile(np.clip(probability, TAIL, 1 - TAIL))

    low, high = np.zeros(centre.shape), np.ones(centre.shape)
    for _ in range(54):  # halvings of [0, 1] down to its rounding error
        pole = (low + high) / 2
        below = argument(pole) < 0
        low, high = np.where(below, pole, low), np.where(below, high, pole)
    ends = np.sort(np.concatenate([np.zeros(pole.shape), pole, np.full(pole.shape, 0.5), np.ones(pole.shape)], -1), -1)
    total = np.zeros(centre.shape[:-1])
    for begin, length in zip(np.moveaxis(ends, -1, 0), np.moveaxis(np.diff(ends), -1, 0), strict=False):
        values = np.abs(argument(begin[..., None] + length[..., None] * SHARES))
        total += length * (np.log(np.maximum(values, TINY)) @ WEIGHTS)
    return total


def _uniform_logarithm(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """(F(c + b) - F(c - b)) / (2 b) with F(x) = x log|x| - x."""

    def primitive(x: np.ndarray) -> np.ndarray:
        return x * np.log(np.maximum(np.abs(x), TINY)) - x

    exact = (primitive(centre + spread) - primitive(centre - spread)) / (2 * spread)
    ratio = np.minimum(spread / np.maximum(centre, TINY), 1.0)
    series = np.log(np.maximum(centre, TINY)) - ratio**2 / 6 - ratio**4 / 20
    # The difference cancels when the spread is small; the series does not.
    return np.where(ratio < 1e-3, series, exact)


def _normal_logarithm(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Half the logarithm of a non-central chi-square, which is a Poisson mixture of central ones.

    E log|c + b N| = log b + 1/2 (log 2 + sum_j Poisson(j; a^2 / 2) digamma(j + 1/2)),   a = c / b
    """
    ratio = centre / spread
    near, far = np.minimum(ratio, FAR), np.maximum(ratio, FAR)
    j = np.arange(int(FAR**2 / 2 + 12 * FAR))
    rate = np.maximum(near[..., None] ** 2 / 2, 1e-300)
    mixture = np.exp(j * np.log(rate) - rate - gammaln(j + 1)) @ digamma(j + 0.5)
    # E N^2k = (2k - 1)!!, so E log(1 + N / a) = -sum_k (2k - 1)!! / (2k a^2k)
    moments = np.cumprod([1.0, 3.0, 5.0, 7.0, 9.0])
    series = -sum(moment / (2 * k * far ** (2 * k)) for k, moment in enumerate(moments, 1))
    return np.log(spread) + np.where(ratio < FAR, 0.5 * (np.log(2) + mixture), np.log(far) + series)


CLOSED_FORMS: dict[Deviation, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    UNIFORM: _uniform_logarithm,
    NORMAL: _normal_logarithm,
}
