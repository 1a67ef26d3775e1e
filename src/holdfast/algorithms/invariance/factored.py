"""The published methods on a factored matrix U U^T, by plain gradient descent.

Each sees one batch of every environment in every step. The risks are R_e(P) = E <X, P - A* - A(e)>^2 / 2, and a step is
U <- (I - eta G) U with G the gradient of what the method minimises, in P, as in eq. 3 of Xu, Gu and Fang (2024).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.and_mask import agreement_mask
from holdfast.algorithms.invariance.group_dro import raised_weights
from holdfast.algorithms.invariance.vrex import variance_of_risks


class WeightedFactor(NamedTuple):
    """The state of all these methods.

    Attributes:
        factor: U, (dimension, dimension).
        weights: (environments,), q of Group DRO; the others leave them as they are.

    Example:
        >>> WeightedFactor(2 * jnp.eye(2), jnp.full(2, 0.5)).fitted.tolist()
        [[4.0, 0.0], [0.0, 4.0]]
    """

    factor: jax.Array
    weights: jax.Array

    @property
    def fitted(self) -> jax.Array:
        """P = U U^T."""
        return self.factor @ self.factor.T

    def moved(self, gradient: jax.Array, step_size: ArrayLike) -> "WeightedFactor":
        """After one step against a gradient in P."""
        return WeightedFactor(self.factor - step_size * gradient @ self.factor, self.weights)


def extrapolated_gradient(risks: jax.Array, gradients: jax.Array, penalty: ArrayLike) -> jax.Array:
    """The gradient of V-REx, mean_e R_e + penalty * variance_e R_e, in P.

    Args:
        risks: (environments,), R_e.
        gradients: (environments, d, d), of each.
        penalty: beta.

    Example, the environment with the larger risk counts more:
        >>> gradients = jnp.array([[[1.0]], [[-1.0]]])
        >>> extrapolated_gradient(jnp.array([2.0, 0.0]), gradients, 0.25).item()
        0.5
    """
    slopes = jax.grad(lambda values: jnp.mean(values) + penalty * variance_of_risks(values))(risks)
    return jnp.tensordot(slopes, gradients, 1)


def invariant_gradient(fitted: jax.Array, gradients: jax.Array, doubled: jax.Array, penalty: ArrayLike) -> jax.Array:
    """The gradient of IRMv1, mean_e R_e + penalty * mean_e D_e^2 with D_e = d R_e(w P) / dw = <P, G_e> at w = 1.

    D_e has the gradient H (2 P - A* - A(e)) in P, with H W = E <X, W> X: the gradient of R_e at 2 P. Taken on a batch
    of its own, the product of both is unbiased, as in the code of Arjovsky et al. (2019).

    Args:
        fitted: P.
        gradients: (environments, d, d), of R_e at P.
        doubled: (environments, d, d), of R_e at 2 P, on other batches.
        penalty: lambda.

    Example, R(P) = (P - 1)^2 / 2 at P = 2, where D = 2:
        >>> invariant_gradient(jnp.full((1, 1), 2.0), jnp.ones((1, 1, 1)), jnp.full((1, 1, 1), 3.0), 0.5).item()
        7.0
    """
    along = jnp.tensordot(gradients, fitted, 2)
    return jnp.mean(gradients, 0) + 2 * penalty * jnp.tensordot(along, doubled, 1) / len(along)


def worst_group_step(
    state: WeightedFactor, risks: jax.Array, gradients: jax.Array, step_size: ArrayLike, rate: ArrayLike
) -> WeightedFactor:
    """A step of Group DRO: weights climb first, then the factor descends on the weighted risk.

    Example, the second environment has the larger risk and all of the weight soon:
        >>> state = WeightedFactor(jnp.ones((1, 1)), jnp.full(2, 0.5))
        >>> worst_group_step(state, jnp.array([0.0, 9.0]), jnp.array([[[0.0]], [[1.0]]]), 0.5, 9.0).factor.item()
        0.5
    """
    weights = raised_weights(state.weights, risks, rate)
    return state.moved(jnp.tensordot(weights, gradients, 1), step_size)._replace(weights=weights)


def masked_step(state: WeightedFactor, gradients: jax.Array, step_size: ArrayLike) -> WeightedFactor:
    """A step of AND-mask: an entry of U moves if all environments agree on its sign. It depends on the coordinates.

    Example, environments agree on the first row only:
        >>> gradients = jnp.stack([jnp.diag(jnp.array([1.0, 1.0])), jnp.diag(jnp.array([1.0, -1.0]))])
        >>> masked_step(WeightedFactor(jnp.eye(2), jnp.full(2, 0.5)), gradients, 0.5).factor.tolist()
        [[0.5, 0.0], [0.0, 1.0]]
    """
    slopes = gradients @ state.factor
    # All signs agree if their sum has the size E; half a sign less, so that rounding does not matter.
    mask = agreement_mask(slopes, 1 - 0.5 / len(slopes))
    return WeightedFactor(state.factor - step_size * mask * jnp.mean(slopes, 0), state.weights)


def matching_step(
    state: WeightedFactor,
    gradient: Callable[[jax.Array, jax.Array], jax.Array],
    order: jax.Array,
    step_size: ArrayLike,
    meta_step_size: ArrayLike,
) -> WeightedFactor:
    """A step of Fish: a pass of gradient descent through the environments, then a part of the way to where it ended.

    With a meta step size of one this is HeteroSGD in a reshuffled order. A small direction of strength s(e) is
    multiplied by 1 + epsilon (prod_e (1 + eta s(e)) - 1) in a pass, so that it shrinks exactly where HeteroSGD shrinks
    it, as long as the product is positive.

    Args:
        state: before the step.
        gradient: (P, environment) -> gradient of R_e.
        order: of the environments.
        step_size: eta, of the pass.
        meta_step_size: epsilon.

    Example, strengths 7 and -5 at eta = 0.1: 1.7 * 0.5 = 0.85:
        >>> strengths = jnp.array([7.0, -5.0])
        >>> start = WeightedFactor(jnp.full((1, 1), 1e-3), jnp.full(2, 0.5))
        >>> after = matching_step(start, lambda p, e: p - strengths[e], jnp.arange(2), 0.1, 1.0)
        >>> round(after.factor.item() / 1e-3, 4)
        0.85
    """
    ahead, _ = jax.lax.scan(
        lambda ahead, environment: (ahead.moved(gradient(ahead.fitted, environment), step_size), None), state, order
    )
    return WeightedFactor(state.factor + meta_step_size * (ahead.factor - state.factor), state.weights)
