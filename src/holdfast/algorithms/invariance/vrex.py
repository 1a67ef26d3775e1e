"""Risk extrapolation by the variance of the risks (V-REx)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Risks, adam_descent
from holdfast.core.algorithm import Algorithm


def variance_of_risks(risks: jax.Array) -> jax.Array:
    """The variance over environments, the penalty of V-REx.

    Example:
        >>> float(variance_of_risks(jnp.array([1.0, 3.0])))
        1.0
    """
    return jnp.mean(jnp.square(risks - jnp.mean(risks)))


@dataclass(frozen=True)
class RiskExtrapolation:
    """V-REx: mean_e R_e + penalty * variance_e R_e.

    Reference: D. Krueger et al., *Out-of-distribution generalization via risk extrapolation*, ICML 2021, eq. 8, with
    the mean of the risks instead of their sum.

    Attributes:
        penalty: beta.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, one step of Adam from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = RiskExtrapolation(penalty=10.0, step_size=0.125).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """

    penalty: ArrayLike = 10.0
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on the penalised risk."""

        def objective(values: jax.Array) -> jax.Array:
            return jnp.mean(values) + self.penalty * variance_of_risks(values)

        def gradient(w: jax.Array) -> jax.Array:
            values, gradients = risks.both(w)
            return jax.grad(objective)(values) @ gradients

        return adam_descent(gradient, start, self.step_size, self.weight_decay)
