"""The gradients of a loss in every environment: effects of single features, and their differences amplified.

Differences are amplified by what sampling error does not explain. All functions work in the library of the arrays they
are given: jax within runs, NumPy where decisions are made in double precision.
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


# A factor at the floor is washed out: it would need 1/step_size times log(1e8) steps of unit gradient to come back.
FLOOR = 1e-8
# One step may at most remove or double a factor: heterogeneity that would make it overshoot is cut off.
SMALLEST_FACTOR, LARGEST_FACTOR = 0.0, 2.0
# Divisors of standardised quantities are at least this, in single precision too.
SMALLEST = 1e-30


def variation(slopes: Slopes, weights: Arrays, scaling: Arrays) -> Arrays:
    """(features,): how much each gradient varies between environments, in units of its sampling error.

        T_j = min over m of sum_e (g_ej - a_ej m)^2 / Var g_ej

    with a = `expected_ratio`. If environments differ in nothing but chance, T_j follows a chi-square law with E - 1
    degrees of freedom.
    """
    xp = slopes.variance.__array_namespace__()
    # An environment in which a feature is constant says nothing about its effect: precision zero.
    precision = xp.where(slopes.variance > 0, 1 / xp.maximum(slopes.variance, SMALLEST), 0.0)
    ratio = expected_ratio(slopes, weights, scaling)
    common = xp.sum(precision * ratio * slopes.gradient, 0) / xp.maximum(xp.sum(precision * ratio**2, 0), SMALLEST)
    return xp.sum(precision * (slopes.gradient - ratio * common) ** 2, 0)


def excess_share(slopes: Slopes, weights: Arrays, scaling: Arrays, critical: Arrays) -> Arrays:
    """(features,): the share of the variation of each gradient that sampling error does not explain.

        rho_j = max(0, 1 - critical / T_j),    T = `variation`

    With `critical` a high quantile of the law of T_j under chance alone, the share is exactly zero for what does not
    vary, and close to one for what does.
    """
    xp = slopes.variance.__array_namespace__()
    return xp.maximum(0.0, 1 - critical / xp.maximum(variation(slopes, weights, scaling), SMALLEST))


def expected_ratio(slopes: Slopes, weights: Arrays, scaling: Arrays) -> Arrays:
    """(environments, features): a_ej = 1 - theta + theta h_ej / h_j, the gradient to expect in units of the mean one.

    theta = 0 compares gradients, theta = 1 effects: a feature that merely has a larger variance in some environment
    has a larger gradient there, but the same effect.
    """
    xp = slopes.curvature.__array_namespace__()
    pooled = xp.sum(weights[:, None] * slopes.curvature, 0)
    return 1 - scaling + scaling * slopes.curvature / xp.maximum(pooled, SMALLEST)


def amplify(gradients: Arrays, expected: Arrays, amplification: Arrays) -> Arrays:
    """Gradients with their differences from what is expected amplified: g + k (g - expected).

    Example:
        >>> amplify(1.5, 1.0, 2.0)
        2.5
    """
    return gradients + amplification * (gradients - expected)


def amplified(slopes: Slopes, weights: Arrays, amplification: Arrays, scaling: Arrays, critical: Arrays) -> Arrays:
    """(environments, features): the gradients with their differences amplified and their mean unchanged.

        G_ej = E p_e (g_ej + k rho_j (g_ej - a_ej g_j)),    g_j = sum_e p_e g_ej

    k = 0 is HeteroSGD; rho is `excess_share`, a is `expected_ratio`. The factor E p_e makes environments of unequal
    size, visited equally often, count by their rows.
    """
    xp = slopes.gradient.__array_namespace__()
    p = weights[:, None]
    mean = xp.sum(p * slopes.gradient, 0)
    strength = amplification * excess_share(slopes, weights, scaling, critical)
    return xp.sum(p > 0) * p * amplify(slopes.gradient, expected_ratio(slopes, weights, scaling) * mean, strength)
