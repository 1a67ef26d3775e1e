"""Empirical risk minimisation with equal weights of the environments."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Risks, adam_descent
from holdfast.core.algorithm import Algorithm


@dataclass(frozen=True)
class AverageRisk:
    """The mean of the risks, each environment counted once: empirical risk minimisation by Adam.

    Attributes:
        step_size: of Adam.
        weight_decay: added to the gradient as weight_decay * parameters.
    """

    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on mean_e R_e."""
        return adam_descent(lambda w: jnp.mean(risks.gradients(w), 0), start, self.step_size, self.weight_decay)
