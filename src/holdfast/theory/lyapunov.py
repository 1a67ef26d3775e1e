"""Growth rates of a small spurious signal under random multiplication."""

import numpy as np
from numpy.typing import ArrayLike


def two_point_exponent(step_size: ArrayLike, bias: ArrayLike, heterogeneity: ArrayLike) -> np.ndarray:
    """Lyapunov exponent of a spurious direction with strengths bias -+ heterogeneity.

    While it is small the direction is multiplied by 1 + eta xi in each step, so its size grows or dies at the rate

        lambda = E log|1 + eta xi| = 1/2 log|(1 + eta s)^2 - (eta M)^2|

    Args:
        step_size: eta.
        bias: s, mean of the strengths.
        heterogeneity: M, their spread.

    Example:
        >>> float(two_point_exponent(0.05, 1.0, 5.0)) > 0 > float(two_point_exponent(0.05, 1.0, 7.0))
        True
    """
    step_size, bias, heterogeneity = (np.asarray(x, float) for x in (step_size, bias, heterogeneity))
    return 0.5 * np.log(np.abs((1 + step_size * bias) ** 2 - (step_size * heterogeneity) ** 2))


def two_point_threshold(step_size: float, bias: float) -> float:
    """The heterogeneity at which the exponent crosses zero: sqrt((1 + eta s)^2 - 1) / eta, for a positive bias.

    Example:
        >>> round(two_point_threshold(0.05, 1.0), 2)
        6.4
    """
    return float(np.sqrt((1 + step_size * bias) ** 2 - 1) / step_size)
