"""Distributionally robust optimisation over groups (Group DRO)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import ByAdam, DirectionAndWeights, Risks
from holdfast.core.linear_algebra import Arrays, array_module


def raised_weights(weights: Arrays, risks: Arrays, rate: Arrays) -> Arrays:
    """The weights of Group DRO after one step of exponentiated gradient ascent: q_e exp(rate R_e), scaled to sum one.

    Arrays of NumPy, jax or torch, with the environments as the last axis.

    Example:
        >>> raised_weights(jnp.array([0.5, 0.5]), jnp.array([0.0, jnp.log(3.0)]), 1.0).round(5)
        Array([0.25, 0.75], dtype=float32)
    """
    xp = array_module(risks)
    logarithms = xp.log(weights) + rate * risks
    raised = xp.exp(logarithms - xp.amax(logarithms, -1)[..., None])
    return raised / raised.sum(-1)[..., None]


@dataclass(frozen=True)
class GroupDRO(ByAdam):
    """Group DRO: the parameters descend on sum_e q_e R_e while the weights q climb, see `raised_weights`.

    Reference: S. Sagawa, P. W. Koh, T. Hashimoto, P. Liang, *Distributionally robust neural networks*, ICLR 2020,
    Algorithm 1, with Adam for the parameters.

    Attributes:
        rate: of the climb of q.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, a single environment has all of the weight, here with R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> direction, weights = GroupDRO().direction(risks, jnp.zeros(2), jnp.ones(1), jax.random.key(0))
        >>> direction.tolist(), weights.tolist()
        ([-4.0, 0.0], [1.0])
    """

    rate: ArrayLike = 1e-2
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The gradient of the weighted risk, after the weights have climbed."""
        values, gradients = risks.both(parameters)
        raised = raised_weights(weights, values, self.rate)
        return jnp.tensordot(raised, gradients, 1), raised
