"""The four ways a setting can end: both signals, the invariant one only, nothing, or an unstable iteration."""

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from holdfast.environments import Environments
from holdfast.theory.advice import learning_time
from holdfast.theory.finite_time import median_share
from holdfast.theory.lyapunov import exponents
from holdfast.theory.window import stability_limits

# A spurious signal is washed out below this share; an invariant one is learned above one half.
WASHED_OUT, LEARNED = 0.05, 0.5


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

    Unstable means that some sequence of environments makes the iteration diverge, or the invariant signal is not held;
    in finite time most runs may still be spared.
    """
    if step_size >= min(stability_limits(environments)):
        return Region.UNSTABLE
    if np.isinf(steps):
        return Region.BOTH if exponents(environments, step_size).max() > 0 else Region.INVARIANT_ONLY
    if steps < learning_time(step_size, init_scale, level=LEARNED):
        return Region.NOTHING
    share = median_share(environments, step_size, int(steps), init_scale)
    return Region.BOTH if share > WASHED_OUT else Region.INVARIANT_ONLY
