"""SGD on a table: the Hadamard form u*u - v*v, one environment after the other, heterogeneity amplified."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.losses.slopes import Arrays, Slopes
from holdfast.core.algorithm import Algorithm

# A factor at the floor is washed out: it would need 1/step_size times log(1e8) steps of unit gradient to come back.
FLOOR = 1e-8
# One step may at most remove or double a factor: heterogeneity that would make it overshoot is cut off.
SMALLEST_FACTOR, LARGEST_FACTOR = 0.0, 2.0
# Divisors of standardised quantities are at least this, in single precision too.
SMALLEST = 1e-30


class Hadamard(NamedTuple):
    """The coefficients positive * positive - negative * negative, and the intercept.

    Attributes:
        positive, negative: (features,), u and v.
        intercept: a number.
    """

    positive: jax.Array
    negative: jax.Array
    intercept: jax.Array

    @property
    def coefficients(self) -> jax.Array:
        """(features,), w = u*u - v*v."""
        return self.positive**2 - self.negative**2


def variation(slopes: Slopes, weights: Arrays, scaling: ArrayLike) -> Arrays:
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


def excess_share(slopes: Slopes, weights: Arrays, scaling: ArrayLike, critical: ArrayLike) -> Arrays:
    """(features,): the share of the variation of each gradient that sampling error does not explain.

        rho_j = max(0, 1 - critical / T_j),    T = `variation`

    With `critical` a high quantile of the law of T_j under chance alone, the share is exactly zero for what does not
    vary, and close to one for what does.
    """
    xp = slopes.variance.__array_namespace__()
    return xp.maximum(0.0, 1 - critical / xp.maximum(variation(slopes, weights, scaling), SMALLEST))


def expected_ratio(slopes: Slopes, weights: Arrays, scaling: ArrayLike) -> Arrays:
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


def amplified(
    slopes: Slopes, weights: Arrays, amplification: ArrayLike, scaling: ArrayLike, critical: ArrayLike
) -> Arrays:
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


def hadamard(
    slopes: Callable[[jax.Array, jax.Array], Slopes],
    weights: jax.Array,
    dimension: int,
    step_size: ArrayLike,
    amplification: ArrayLike,
    scaling: ArrayLike,
    critical: ArrayLike,
    init_scale: ArrayLike,
) -> Algorithm:
    """Gradient descent on u*u - v*v with amplified heterogeneity.

    One step is a sweep over all environments in a random order, in each of which

        u <- u * (1 - eta G_e),    v <- v * (1 + eta G_e),    u_0 = v_0 = alpha

    with the amplified gradients G of the current coefficients w = u*u - v*v. While small, u_j shrinks or grows at the
    rate lambda_j = mean over e of log(1 - eta G_ej), which is why an effect that varies is washed out. The intercept
    follows the mean gradient, not amplified.

    Args:
        slopes: (coefficients, intercept) -> Slopes.
        weights: (environments,), p_e, the shares of the rows; zero for an environment that only fills up the array.
        dimension: number of features.
        step_size: eta.
        amplification: k.
        scaling: theta, 0 or 1; see `expected_ratio`.
        critical: quantile below which variation counts as sampling error; see `excess_share`.
        init_scale: alpha.

    Reference: Xu, Gu and Fang (NeurIPS 2024), whose HeteroSGD for matrices is the model of k = 0; the amplification is
        ours.

    Example, the effect 1 of the first feature stays, the effect 1 -+ 1/2 of the second is washed out:
        >>> effects = jnp.array([[1.0, 0.5], [1.0, 1.5]])
        >>> def slopes(w, intercept):
        ...     return Slopes(w - effects, jnp.zeros(2), jnp.ones((2, 2)), jnp.full((2, 2), 1e-4))
        >>> algorithm = hadamard(slopes, jnp.array([0.5, 0.5]), 2, 0.02, 30.0, 0.0, 7.0, 0.1)
        >>> state, step = algorithm.init(), jax.jit(algorithm.step)
        >>> for number, key in enumerate(jax.random.split(jax.random.key(0), 200)):
        ...     state = step(key, state, number)
        >>> state.coefficients.round(3).tolist()
        [1.0, 0.0]
    """
    environments = len(weights)

    def init() -> Hadamard:
        start = jnp.full(dimension, init_scale, weights.dtype)
        return Hadamard(start, start, jnp.zeros((), weights.dtype))

    def step(key: jax.Array, state: Hadamard, number: ArrayLike) -> Hadamard:
        order = jax.random.permutation(key, environments)

        def visit(position: jax.Array, state: Hadamard) -> Hadamard:
            current = Slopes(*map(jnp.asarray, slopes(state.coefficients, state.intercept)))
            gradient = amplified(current, weights, amplification, scaling, critical)[order[position]]
            shrink = jnp.clip(1 - step_size * gradient, SMALLEST_FACTOR, LARGEST_FACTOR)
            grow = jnp.clip(1 + step_size * gradient, SMALLEST_FACTOR, LARGEST_FACTOR)
            positive = jnp.maximum(state.positive * shrink, FLOOR)
            negative = jnp.maximum(state.negative * grow, FLOOR)
            intercept = state.intercept - step_size * jnp.sum(weights * current.intercept)
            return Hadamard(positive, negative, intercept)

        return jax.lax.fori_loop(0, environments, visit, state)

    return Algorithm(init, step)
