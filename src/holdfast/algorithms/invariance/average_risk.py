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

    Example, one step of Adam from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = AverageRisk(step_size=0.125).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """

    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on mean_e R_e."""
        return adam_descent(lambda w: jnp.mean(risks.gradients(w), 0), start, self.step_size, self.weight_decay)
