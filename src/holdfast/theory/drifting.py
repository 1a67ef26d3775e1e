"""Environments that drift: what a correlation of the strengths in time does to the law of a spurious share."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander
from scipy.special import factorial, ndtr

from holdfast.core.validation import require
from holdfast.deviations import NORMAL
from holdfast.theory.logarithm import TINY, mean_logarithm

# Nodes of the quadrature, and Hermite polynomials that carry the memory; the higher ones forget within a step or two.
NODES, DEGREES = 160, 12


class DriftingShare(NamedTuple):
    """The normal approximation to the law of log Q^2 after T steps, while Q^2 is small against the strengths.

    Attributes:
        mean: 2 (log alpha + T lambda), whatever the correlation.
        deviation: standard deviation, which the correlation increases.

    Example, a share of 5 % is two standard deviations above this mean:
        >>> round(DriftingShare(mean=float(np.log(0.05)) - 2.0, deviation=1.0).above(0.05), 3)
        0.023
    """

    mean: float
    deviation: float

    def above(self, level: float) -> float:
        """The probability that Q^2 is above a level.

        Example:
            >>> round(DriftingShare(mean=0.0, deviation=1.0).above(1.0), 6)
            0.5
        """
        return float(ndtr((self.mean - np.log(level)) / max(self.deviation, TINY)))


def drifting_share(
    bias: float, heterogeneity: float, step_size: float, steps: int, init_scale: float, *, correlation: float
) -> DriftingShare:
    """The law of log Q^2 when the strengths are a stationary normal sequence with correlation rho^k over k steps.

    log Q^2 is 2 log alpha plus twice the sum of L_t = log|1 + eta xi_t|. Its mean depends on the law of one strength
    alone: drift does not change the exponent. Its variance adds up the covariances of L, which follow from the Hermite
    coefficients c_n of L as a function of a standard normal number (Mehler's formula):

        Var sum_t L_t = sum_n c_n^2 sum_{j,k} rho^(n |j - k|)

    Args:
        bias: s, mean of the strengths.
        heterogeneity: M, their standard deviation.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        correlation: rho of neighbouring steps, from 0 to below 1; e^(-1/tau) for the correlation time tau.

    Example, memory leaves the mean as it is and increases the spread:
        >>> short = drifting_share(1.0, 5.0, 0.05, 200, 1e-3, correlation=0.0)
        >>> long = drifting_share(1.0, 5.0, 0.05, 200, 1e-3, correlation=0.9)
        >>> short.mean == long.mean, round(long.deviation / short.deviation, 1)
        (True, 4.2)
    """
    require(0 <= correlation < 1, "correlation must be a number from 0 to below 1", correlation)
    nodes, weights = hermegauss(NODES)
    weights = weights / weights.sum()
    logarithms = np.log(np.maximum(np.abs(1 + step_size * (bias + heterogeneity * nodes)), TINY))
    coefficients = hermevander(nodes, DEGREES).T @ (weights * logarithms)
    parts = coefficients[1:] ** 2 / factorial(np.arange(1, DEGREES + 1))
    total = weights @ np.square(logarithms - weights @ logarithms)
    lags = np.arange(1, steps)
    memory = [steps + 2 * float(((steps - lags) * correlation ** (n * lags)).sum()) for n in range(1, DEGREES + 1)]
    variance = float(parts @ memory) + steps * max(float(total - parts.sum()), 0.0)
    exponent = float(mean_logarithm(NORMAL, 1 + step_size * bias, step_size * heterogeneity))
    return DriftingShare(float(2 * (np.log(init_scale) + steps * exponent)), float(2 * np.sqrt(variance)))
