"""E log|c + b N|, the mean logarithm of a random factor: closed forms, and quadrature for any other law."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from holdfast.environments import NORMAL, UNIFORM, Deviation

# Beyond this ratio of centre to spread the asymptotic series of E log|c + b N| is exact to rounding, and fast.
FAR = 20.0


def mean_logarithm(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| for N of the law `deviation`, in closed form for the uniform and the normal law.

    Args:
        deviation: the law of N.
        centre: c.
        spread: b, not negative.
    """
    centre, spread = np.broadcast_arrays(np.abs(np.asarray(centre, float)), np.asarray(spread, float))
    integral = CLOSED_FORMS.get(deviation, lambda c, b: quadrature(deviation, c, b))
    with np.errstate(divide="ignore"):
        certain = np.log(centre)
    result = np.array(certain)
    moving = spread > 0
    result[moving] = integral(centre[moving], spread[moving])
    return result


def quadrature(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| = int_0^1 log|c + b F^-1(u)| du, cut where the argument of the logarithm vanishes."""

    def one(centre: float, spread: float) -> float:
        def argument(probability: float) -> float:
            return float(centre + spread * deviation.quantile(np.asarray(probability)))

        def logarithm(probability: float) -> float:
            return float(np.log(max(abs(argument(probability)), np.finfo(float).tiny)))

        tail = 1e-14
        ends = [0.0, 1.0]
        if argument(tail) < 0 < argument(1 - tail):
            ends.insert(1, float(brentq(argument, tail, 1 - tail, xtol=1e-15)))
        return sum(quad(logarithm, *piece, limit=200)[0] for piece in pairwise(ends))

    return np.vectorize(one, otypes=[float])(np.abs(centre), spread)


def _uniform_logarithm(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """(F(c + b) - F(c - b)) / (2 b) with F(x) = x log|x| - x."""

    def primitive(x: np.ndarray) -> np.ndarray:
        return x * np.log(np.maximum(np.abs(x), np.finfo(float).tiny)) - x

    exact = (primitive(centre + spread) - primitive(centre - spread)) / (2 * spread)
    ratio = np.minimum(spread / np.maximum(centre, np.finfo(float).tiny), 1.0)
    series = np.log(np.maximum(centre, np.finfo(float).tiny)) - ratio**2 / 6 - ratio**4 / 20
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
