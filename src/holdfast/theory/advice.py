"""Settings that wash the spurious signal out and learn the invariant one, with a wanted probability."""

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from holdfast.core.validation import require
from holdfast.environments import Environments
from holdfast.theory.finite_time import log_share
from holdfast.theory.strengths import diagonalised
from holdfast.theory.window import Window, sharp_window

# An invariant signal counts as learned for good when its share has reached this.
LEARNED = 0.95
# The smallest alpha that is considered is 10^-16: its square still fits into float32.
SMALLEST_EXPONENT = 16.0


class Advice(NamedTuple):
    """Settings that wash the spurious signal out and learn the invariant one, with a wanted probability.

    Attributes:
        step_size: eta.
        init_scale: alpha.
        steps: T, the time that the invariant signal needs from this starting point.
        failure: at most the probability that a spurious share is above the tolerance at T, summed over directions.

    Example, the bound on the probability of failure holds with the wanted confidence:
        >>> from holdfast.environments import two_point
        >>> advised = advise(two_point(1.0, 6.0), step_size=0.1)
        >>> advised.steps, advised.failure < 0.05
        (76, True)
    """

    step_size: float
    init_scale: float
    steps: int
    failure: float


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


def advise(
    environments: Environments,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    spectrum: ArrayLike = 1.0,
    dimension: int = 100,
    step_size: float | None = None,
    window: Window | None = None,
) -> Advice | None:
    """The settings with the fewest steps that leave a spurious share below the tolerance, with this confidence.

    For each step size of the sharp window, alpha is lowered until the spurious share, at the time T at which the
    invariant signal is learned, exceeds the tolerance with a probability of at most 1 - confidence, by the law of
    `log_share`.

    Args:
        environments: the law of S(e), with strengths that commute.
        confidence: wanted probability of success.
        tolerance: largest spurious share that counts as washed out.
        spectrum: eigenvalues of A*.
        dimension: d. The other directions keep what they start with, d alpha^2 in all, so that stays below the
            tolerance as well.
        step_size: eta, if it is given; otherwise it is chosen.
        window: the sharp window, if it is known already.

    Returns:
        None if the window is empty, or the given step size is outside of it.

    Example, no step size washes out strengths that never change sign:
        >>> from holdfast.environments import two_point
        >>> advise(two_point(1.0, 0.5)) is None
        True
        >>> advise(two_point(1.0, 6.0), step_size=0.1).steps
        76
    """
    require(0 < confidence < 1, "confidence must be between 0 and 1", confidence)
    require(0 < tolerance < 1, "tolerance must be between 0 and 1", tolerance)
    if window is None:
        window = sharp_window(environments, spectrum)
    if window.empty or diagonalised(environments) is None:
        return None
    if step_size is None:
        # Inside the window: its ends wash out infinitely slowly, or hardly hold the invariant signal.
        low, high = max(window.low, 1e-3 * window.high), window.high
        candidates = low * (high / low) ** np.linspace(0.1, 0.9, 9)
    elif window.low < step_size < window.high:
        candidates = np.array([step_size])
    else:
        return None
    found = [_for_step_size(environments, float(eta), confidence, tolerance, spectrum, dimension) for eta in candidates]
    return min((advice for advice in found if advice), key=lambda advice: advice.steps, default=None)


def _for_step_size(
    environments: Environments,
    step_size: float,
    confidence: float,
    tolerance: float,
    spectrum: ArrayLike,
    dimension: int,
) -> Advice | None:
    """The largest init_scale among powers of ten and their halves that is small enough."""

    def attempt(exponent: float) -> Advice:
        init_scale = float(10**-exponent)
        steps = learning_time(step_size, init_scale, spectrum)
        laws = (log_share(environments, step_size, steps, init_scale, direction=i) for i in range(environments.rank))
        return Advice(step_size, init_scale, steps, min(1.0, sum(law.above(tolerance) for law in laws)))

    start = np.ceil(-np.log10(tolerance / dimension)) / 2
    # Smaller starting points take longer but fail less, so the first that is good enough is found by bisection.
    choices = np.arange(start, max(start, SMALLEST_EXPONENT) + 0.5, 0.5)
    first = bisect_left(choices, True, key=lambda exponent: attempt(exponent).failure <= 1 - confidence)
    return attempt(choices[first]) if first < len(choices) else None
