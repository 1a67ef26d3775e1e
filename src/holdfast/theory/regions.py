"""The four ways a setting can end: both signals, the invariant one only, nothing, or an unstable iteration."""

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from holdfast.sensing.environments import Environments
from holdfast.theory.advice import learning_time
from holdfast.theory.finite_time import median_share
from holdfast.theory.lyapunov import exponents
from holdfast.theory.shares import simulate_shares
from holdfast.theory.strengths import extremes
from holdfast.theory.window import stability_limits

# A spurious signal is washed out below this share; an invariant one is learned above one half.
WASHED_OUT, LEARNED = 0.05, 0.5
# Strengths without bound make every run diverge in the end, if only after e^100 steps. What counts as the long run for
# them, and the number of runs that tell which half of them diverges.
LONG_RUN, FEW_RUNS = 2000, 100


class Region(IntEnum):
    """The four ways a setting can end, by the medians over seeds."""

    NOTHING = 0
    INVARIANT_ONLY = 1
    BOTH = 2
    UNSTABLE = 3

    @property
    def label(self) -> str:
        """The text in the legend of a figure."""
        return ("invariant not learned", "invariant only", "learns both", "unstable")[self]


def classify(invariant: ArrayLike, spurious: ArrayLike, diverged: ArrayLike) -> np.ndarray:
    """Regions by what was measured.

    Args:
        invariant: median share of the invariant signal over the runs that did not diverge.
        spurious: median share of the spurious signal over them.
        diverged: share of runs that diverged; more than half is unstable.

    Example:
        >>> [Region(region).label for region in classify([1, 1, 0], [0.3, 0.01, 0], [0, 0, 0])]
        ['learns both', 'invariant only', 'invariant not learned']
    """
    region = np.where(np.asarray(spurious) > WASHED_OUT, Region.BOTH, Region.INVARIANT_ONLY)
    region = np.where(np.asarray(invariant) < LEARNED, Region.NOTHING, region)
    return np.where(np.asarray(diverged) > 0.5, Region.UNSTABLE, region)


def predicted_region(
    environments: Environments, step_size: float, steps: float = np.inf, init_scale: float = 1e-3
) -> Region:
    """The region that the theory expects, for T steps or in the limit of infinitely many.

    Unstable means that the invariant signal is not held, or that some sequence of environments makes the iteration
    diverge; in finite time most runs may still be spared. Strengths without bound always have such a sequence, so for
    them it means that more than half of the runs diverge, within T steps or, for infinitely many, within `LONG_RUN`.

    Example, normal strengths that a step multiplies by more than they can hold:
        >>> from holdfast.sensing.environments import gaussian
        >>> [predicted_region(gaussian(1.0, 6.0), step_size).label for step_size in (0.1, 0.4)]
        ['invariant only', 'unstable']
    """
    invariant, bounded = stability_limits(environments)
    if step_size >= min(invariant, bounded):
        return Region.UNSTABLE
    if not np.isfinite(np.ptp(extremes(environments))):
        horizon = LONG_RUN if np.isinf(steps) else int(steps)
        if simulate_shares(environments, step_size, horizon, init_scale, runs=FEW_RUNS).diverged.mean() > 0.5:
            return Region.UNSTABLE
    if np.isinf(steps):
        return Region.BOTH if exponents(environments, step_size).max() > 0 else Region.INVARIANT_ONLY
    if steps < learning_time(step_size, init_scale, level=LEARNED):
        return Region.NOTHING
    share = median_share(environments, step_size, int(steps), init_scale)
    return Region.BOTH if share > WASHED_OUT else Region.INVARIANT_ONLY
