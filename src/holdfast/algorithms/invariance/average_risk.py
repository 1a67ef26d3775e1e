"""Empirical risk minimisation with equal weights of the environments."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import ByAdam, DirectionAndWeights, Risks


@dataclass(frozen=True)
class AverageRisk(ByAdam):
    """The mean of the risks, each environment counted once: empirical risk minimisation by Adam.

    Attributes:
        step_size: of Adam.
        weight_decay: added to the gradient as weight_decay * parameters.

    Example, R(w, b) = (w - 2)^2 + b^2 falls with w at 0:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> AverageRisk().direction(risks, jnp.zeros(2), jnp.ones(1), jax.random.key(0))[0].tolist()
        [-4.0, 0.0]
    """

    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The mean gradient."""
        return jnp.mean(risks.gradients(parameters), 0), weights
