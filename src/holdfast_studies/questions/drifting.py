"""Environments that drift: what a correlation of the strengths in time does to the law of a spurious share."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from holdfast.core.validation import require
from holdfast.sensing.deviations import NORMAL, SHARES, WEIGHTS
from holdfast.theory.lyapunov import TINY, mean_logarithm

# Hermite polynomials whose memory is computed one by one. The singularity of the logarithm leaves some of the variance
# to higher ones, a tenth for strong heterogeneity, and they forget faster; they get the memory of the next.
DEGREES = 64
# A standard normal number is between these limits but for a probability of 1e-32, and the quadrature has this many
# pieces between them, which resolve the waves of the polynomials.
LIMIT, PIECES = 12.0, 24


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
    coefficients c_n = E L h_n of L as a function of a standard normal number N (Mehler's formula):

        Var sum_t L_t = sum_n c_n^2 sum_{j,k} rho^(n |j - k|),    h_n = He_n(N) / sqrt(n!)

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
    parts = _parts_of_variance(1 + step_size * bias, step_size * heterogeneity)
    lags = np.arange(1, steps)[:, None]
    memory = steps + 2 * ((steps - lags) * correlation ** (lags * np.arange(1, DEGREES + 2))).sum(0)
    variance = float(parts @ memory)
    exponent = float(mean_logarithm(NORMAL, 1 + step_size * bias, step_size * heterogeneity))
    return DriftingShare(float(2 * (np.log(init_scale) + steps * exponent)), float(2 * np.sqrt(variance)))


def _parts_of_variance(centre: float, spread: float) -> np.ndarray:
    """Of Var log|c + b N|, the part c_n^2 of each polynomial n = 1, ..., DEGREES, and last what the others have.

    Tanh-sinh quadrature, with one of the pieces ending at the pole of the logarithm: its nodes crowd at the ends.
    """
    pole = np.clip(-centre / spread, -LIMIT, LIMIT) if spread else LIMIT
    ends = np.sort(np.append(np.linspace(-LIMIT, LIMIT, PIECES + 1), pole))
    nodes = (ends[:-1, None] + np.diff(ends)[:, None] * SHARES).ravel()
    weights = (np.diff(ends)[:, None] * WEIGHTS).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    logarithms = np.log(np.maximum(np.abs(centre + spread * nodes), TINY))
    logarithms -= weights @ logarithms
    before, polynomial, parts = np.zeros_like(nodes), np.ones_like(nodes), []
    for n in range(DEGREES):
        before, polynomial = polynomial, (nodes * polynomial - np.sqrt(n) * before) / np.sqrt(n + 1)
        parts.append((weights @ (polynomial * logarithms)) ** 2)
    rest = float(weights @ np.square(logarithms) - sum(parts))
    return np.array([*parts, max(rest, 0.0)])
