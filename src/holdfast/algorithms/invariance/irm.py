"""Invariant risk minimisation (IRMv1)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Risks, adam_descent
from holdfast.core.algorithm import Algorithm


def invariance_penalty(gradients: jax.Array, parameters: jax.Array) -> jax.Array:
    """How far a multiple of the predictor, or a shift of it, would be better in single environments (IRMv1).

        sum_e |d R_e(s f + b) / d(s, b)|^2    at s = 1, b = 0

    The score f is linear in the parameters w, so the two derivatives are those of R_e along w and along the intercept.

    Reference: M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, *Invariant risk minimization*, arXiv:1907.02893,
    eq. IRMv1; with the shift b as in the unit tests of Aubin et al. (2021).

    Args:
        gradients: (environments, parameters), of each R_e at w.
        parameters: w, the intercept last.

    Example, R(w, b) = (w + b - 1)^2 at w = 2, b = 0:
        >>> float(invariance_penalty(jnp.array([[2.0, 2.0]]), jnp.array([2.0, 0.0])))
        20.0
    """
    return jnp.sum(jnp.square(gradients @ parameters)) + jnp.sum(jnp.square(gradients[:, -1]))


@dataclass(frozen=True)
class InvariantRiskMinimization:
    """IRMv1: (1 - weight) mean_e R_e + weight * `invariance_penalty`.

    Attributes:
        weight: of the penalty, in [0, 1].
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, one step of Adam from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = InvariantRiskMinimization(weight=0.5, step_size=0.125).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """

    weight: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on the penalised risk."""
        penalty = jax.grad(lambda w: invariance_penalty(risks.gradients(w), w))

        def gradient(w: jax.Array) -> jax.Array:
            return (1 - self.weight) * jnp.mean(risks.gradients(w), 0) + self.weight * penalty(w)

        return adam_descent(gradient, start, self.step_size, self.weight_decay)
