"""The law of a spurious share after finitely many steps: log Q^2 = 2 log alpha + a sum of T independent logarithms."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from holdfast.core.validation import COUNT_OR_ZERO, POSITIVE
from holdfast.sensing.environments import Environments
from holdfast.theory.lyapunov import exponents, stationary_shares
from holdfast.theory.strengths import strength_atoms

# The quantiles that are told of a law.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# Points of the grid on which the law of one step is convolved with itself, and its half width in deviations of the sum.
GRID, HALF_WIDTH = 2**17, 8
# A factor of zero removes the direction at once. Its logarithm is cut here: e^-60 of anything is negligible.
LEAST_LOGARITHM = -60.0
# Larger logarithms are cut here: the share that survives in the long run holds growth back long before this.
LARGEST_LOGARITHM = 100.0
# An invariant signal counts as learned for good when its share has reached this.
LEARNED = 0.95


class LogShare(NamedTuple):
    """The law of log Q^2 after T steps, while Q^2 is small against the strengths.

    Attributes:
        mean: 2 (log alpha + T lambda).
        deviation: its standard deviation, growing as sqrt(T).
        values: of log Q^2, rising.
        distribution: the probability that log Q^2 is at most that value.
    """

    mean: float
    deviation: float
    values: np.ndarray
    distribution: np.ndarray

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Quantiles of log Q^2."""
        index = np.searchsorted(self.distribution, np.asarray(probability, float))
        return self.values[np.minimum(index, len(self.values) - 1)]

    def above(self, level: float) -> float:
        """The probability that Q^2 is above a level."""
        return float(1 - np.interp(np.log(level), self.values, self.distribution, left=0.0, right=1.0))

    def asdict(self) -> dict[str, Any]:
        """Mean, deviation and some quantiles as plain values for JSON."""
        quantiles = {str(probability): float(self.quantile(probability)) for probability in QUANTILES}
        return {"mean": self.mean, "deviation": self.deviation, "quantiles": quantiles}


def check_numbers(step_size: float, steps: int, init_scale: float) -> None:
    """Raise a ValueError for numbers that no run can have."""
    POSITIVE.check("step_size", step_size)
    COUNT_OR_ZERO.check("steps", steps)
    POSITIVE.check("init_scale", init_scale)


def added_logarithms(strengths: np.ndarray, step_size: float) -> np.ndarray:
    """2 log|1 + eta xi|, what a step adds to log Q^2, for each strength.

    Example:
        >>> added_logarithms(np.array([0.0, -20.0]), 0.05).tolist()
        [0.0, -120.0]
    """
    with np.errstate(divide="ignore"):
        return 2 * np.maximum(np.log(np.abs(1 + step_size * strengths)), LEAST_LOGARITHM)


def log_share(
    environments: Environments, step_size: float, steps: int, init_scale: float, *, direction: int = 0
) -> LogShare:
    """The law of log Q^2 for one spurious direction, from the law of its strengths.

    While Q^2 is small, log Q^2 is 2 log alpha plus the sum of T independent copies of 2 log|1 + eta xi|. The law of the
    sum is the T-th power of the characteristic function of one copy, on a grid, by the fast Fourier transform.

    Args:
        environments: the law of S(e), with strengths that commute.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        direction: which spurious direction.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> law = log_share(two_point(1.0, 5.0), step_size=0.05, steps=200, init_scale=1e-3)
        >>> round(float(np.exp(law.quantile(0.5))), 5)
        0.00255
    """
    check_numbers(step_size, steps, init_scale)
    strengths, weights = strength_atoms(environments, direction)
    logarithms = added_logarithms(strengths, step_size)
    deviations = logarithms - weights @ logarithms
    # Atoms that stand for a continuum miss a little of the logarithm's singularity, T times; the exponent does not.
    mean = 2 * max(float(exponents(environments, step_size)[direction]), LEAST_LOGARITHM)
    variance = float(weights @ deviations**2)
    start = 2 * np.log(init_scale)
    centre, spread = start + steps * mean, np.sqrt(steps * variance)
    if spread < 1e-12:  # no environments that differ, or no step
        return LogShare(centre, 0.0, np.array([centre]), np.array([1.0]))
    width = 2 * max(HALF_WIDTH * spread, 2 * np.abs(deviations).max())
    spacing = width / GRID
    # Each atom is shared between its two neighbours on the grid, which keeps the mean exact.
    position = deviations / spacing
    lower = np.floor(position).astype(int)
    grid = np.zeros(GRID)
    np.add.at(grid, lower % GRID, weights * (lower + 1 - position))
    np.add.at(grid, (lower + 1) % GRID, weights * (position - lower))
    density = np.fft.irfft(np.fft.rfft(grid) ** steps, GRID)
    ordered = np.maximum(np.fft.fftshift(density), 0)
    values = centre + spacing * (np.arange(GRID) - GRID // 2)
    return LogShare(centre, float(spread), values, np.minimum(np.cumsum(ordered), 1.0))


def saturated(share: ArrayLike, stationary: float) -> np.ndarray:
    """A share that would grow without bound, held back by what is learned: x c / (x + c), the logistic curve.

    Args:
        share: x = Q^2 by the law of small shares.
        stationary: c, the share that survives in the long run; where it is zero or NaN, x is only cut at one.
    """
    share = np.asarray(share, float)
    return share * stationary / (share + stationary) if stationary > 0 else np.minimum(share, 1.0)


def median_share(environments: Environments, step_size: float, steps: int, init_scale: float) -> float:
    """The predicted median over seeds of the largest spurious share after T steps of HeteroSGD.

    The median of log Q^2 is its mean 2 (log alpha + T lambda), up to a skewness that fades with T. What has grown to
    order one is held back by the share that survives in the long run.

    Example, alpha^2 (1 + eta)^(2 T) while it is small, for strengths that do not vary:
        >>> from holdfast.sensing.environments import two_point
        >>> share = median_share(two_point(1.0, 0.0), step_size=0.01, steps=100, init_scale=1e-3)
        >>> round(share * 1e6, 2), round(1.01**200, 2)
        (7.32, 7.32)
    """
    grown = np.exp(np.minimum(2 * (np.log(init_scale) + steps * exponents(environments, step_size)), LARGEST_LOGARITHM))
    stationary = stationary_shares(environments, step_size)
    return max(float(saturated(share, limit)) for share, limit in zip(grown, stationary, strict=True))


def learning_time(step_size: float, init_scale: float, spectrum: ArrayLike = 1.0, level: float = LEARNED) -> int:
    """Steps until the slowest invariant direction has learned a share of its eigenvalue, without sampling error.

    r <- r (1 + eta (sigma - r^2)) grows by 1 + eta sigma a step while it is small. The logistic curve with that rate,
    which r^2 / sigma follows for small steps and overtakes for larger ones, gives

        T = (logit level - logit(alpha^2 / sigma)) / (2 log(1 + eta sigma))

    Example:
        >>> learning_time(step_size=0.05, init_scale=1e-3)
        172
    """
    eigenvalue = float(np.min(spectrum))
    if not 0 < step_size * eigenvalue < 1:
        raise ValueError(f"step_size must be between 0 and {1 / eigenvalue:.4g} for this spectrum, got {step_size}")
    start = min(init_scale**2 / eigenvalue, 0.5)
    return math.ceil((logit(level) - logit(start)) / (2 * np.log1p(step_size * eigenvalue)))
