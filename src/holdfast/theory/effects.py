"""When the effect of a feature survives heterogeneity: exponents, and the amplification they ask for."""

import numpy as np
from numpy.typing import ArrayLike

from holdfast.algorithms.amplification import FLOOR, LARGEST_FACTOR


def effect_exponents(step_size: ArrayLike, gradients: ArrayLike) -> np.ndarray:
    """Lyapunov exponents of u and v under the gradients of the environments, visited equally often.

        lambda_j^+ = mean over e of log(1 - eta G_ej)    (of u_j)
        lambda_j^- = mean over e of log(1 + eta G_ej)    (of v_j)

    with factors cut off at `FLOOR` and `LARGEST_FACTOR`, as the steps of `holdfast.algorithms.hadamard` cut them: one
    step may at most remove or double a factor.

    To second order lambda^+- = -+ eta g_j - eta^2 / 2 (g_j^2 + Var_e G_ej): the mean effect drives one of the two, the
    variation holds both back. A feature is washed out when both are negative, that is when

        eta (1 + k)^2 Var_e(g_ej) > 2 |g_j|

    which is why eta (1 + k)^2, the `washing strength`, decides what survives, and not eta and k by themselves.

    Args:
        step_size: eta.
        gradients: (environments, ...), G, amplified.

    Returns:
        (2, ...): the exponents of u and of v.

    Example, an effect that stays and one that varies more than it is large:
        >>> exponents = effect_exponents(0.5, np.array([[-0.1, -1.1], [-0.1, 0.9]]))
        >>> (exponents.max(0) > 0).tolist()
        [True, False]
    """
    change = np.asarray(step_size) * np.asarray(gradients, float)
    # A factor that would be removed ends at the floor of the algorithm: its logarithm stays finite.
    return np.stack([np.log(np.clip(1 + sign * change, FLOOR, LARGEST_FACTOR)).mean(0) for sign in (-1, 1)])


def washing_strength(mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    """The smallest eta (1 + k)^2 that washes out an effect of this mean and variance over environments: 2 |g| / Var g.

    Example:
        >>> float(washing_strength(0.5, 0.01))
        100.0
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, 2 * np.abs(mean) / variance, np.inf)
