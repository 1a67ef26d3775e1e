"""The gradients of a loss in every environment, and what they say about the effects of single features.

All functions work in the library of the arrays they are given: jax within runs, NumPy where decisions are made in
double precision.
"""

from typing import NamedTuple

from numpy.typing import ArrayLike

from holdfast.core.linear_algebra import Arrays


class Slopes(NamedTuple):
    """The gradients of a loss in every environment, at some coefficients.

    Attributes:
        gradient: (environments, features), g_ej = d loss_e / d w_j.
        intercept: (environments,), d loss_e / d intercept.
        curvature: (environments, features), h_ej = d g_ej / d w_j.
        variance: (environments, features), squared standard error of g_ej.

    Example, a Newton step of one feature:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> slopes = Slopes(gradient=-one, intercept=one[0], curvature=2 * one, variance=one)
        >>> (-slopes.gradient / slopes.curvature).tolist()
        [[0.5]]
    """

    gradient: Arrays
    intercept: Arrays
    curvature: Arrays
    variance: Arrays


def pooled_effects(slopes: Slopes, weights: Arrays, coefficients: Arrays) -> Arrays:
    """(features,): the coefficient that each feature would have over all rows, all others staying as they are.

        b_j = w_j - sum_e p_e g_ej / sum_e p_e h_ej

    Args:
        slopes: g and h, at w.
        weights: p, the shares of the rows, (environments,).
        coefficients: w, (features,).

    Example:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> pooled_effects(Slopes(-one, one[0], 2 * one, one), one[0], np.array([1.0])).tolist()
        [1.5]
    """
    xp = slopes.curvature.__array_namespace__()
    curvature = weights @ slopes.curvature
    return coefficients - (weights @ slopes.gradient) / xp.maximum(curvature, xp.finfo(curvature.dtype).tiny)


def tolerant(slopes: Slopes, weights: Arrays, coefficients: Arrays, tolerance: ArrayLike) -> Slopes:
    """Slopes whose variances count differences that are tolerated as if they were sampling error.

        Var g_ej + (tolerance b_j h_ej)^2,    b = `pooled_effects`

    Args:
        slopes: at w.
        weights: p, (environments,).
        coefficients: w, (features,).
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.

    Example:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> tolerant(Slopes(0 * one, one[0], one, one), one[0], np.array([4.0]), 0.5).variance.tolist()
        [[5.0]]
    """
    allowed = tolerance * pooled_effects(slopes, weights, coefficients) * slopes.curvature
    return slopes._replace(variance=slopes.variance + allowed**2)
