"""SGD on a table: the Hadamard form u*u - v*v, one environment after the other, heterogeneity amplified."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.losses.slopes import FLOOR, LARGEST_FACTOR, SMALLEST_FACTOR, Slopes, amplified
from holdfast.core.run import Algorithm


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
