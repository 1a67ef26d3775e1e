"""Invariant risk minimisation (IRMv1)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import ByAdam, DirectionAndWeights, Risks
from holdfast.core.linear_algebra import Arrays


def invariance_penalty(derivatives: Arrays, others: Arrays | None = None) -> Arrays:
    """(environments,): how far a multiple of the predictor f, or a shift of it, would be better in each (IRMv1).

        |d R_e(s f + b) / d(s, b)|^2    at s = 1, b = 0

    Reference: M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, *Invariant risk minimization*, arXiv:1907.02893,
    eq. IRMv1, and section D for two batches; with the shift b as in the unit tests of Aubin et al. (2021).

    Args:
        derivatives: (environments, 1 or 2), along s and, perhaps, b; arrays of NumPy, jax or torch.
        others: the same on other batches: the mean of the product is the penalty of the population, that of the square
            is larger by the variance of the derivatives. None: the square.

    Example, R(w, b) = (w + b - 1)^2 at w = 2, b = 0 has the derivatives 4 and 2:
        >>> invariance_penalty(jnp.array([[4.0, 2.0]])).tolist()
        [20.0]
    """
    return (derivatives * (derivatives if others is None else others)).sum(-1)


@dataclass(frozen=True)
class InvariantRiskMinimization(ByAdam):
    """IRMv1: (1 - weight) mean_e R_e + weight * sum_e `invariance_penalty`.

    Attributes:
        weight: of the penalty, in [0, 1].
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, R(w) = (w - 1)^2 at w = 2, where D = 2 w (w - 1) = 4 and R' + (D^2)' = 2 + 2 * 4 * 6:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> zero = jnp.zeros((1, 2, 2))
        >>> risks = squared_risks(SecondMoments(zero.at[0, 0, 0].set(1), jnp.array([[1.0, 0.0]]), jnp.ones(1)))
        >>> method = InvariantRiskMinimization(weight=0.5)
        >>> method.direction(risks, jnp.array([2.0, 0.0]), jnp.ones(1), jax.random.key(0))[0].tolist()
        [25.0, 0.0]
    """

    weight: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The gradient of the penalised risk."""
        derivatives, pull = risks.derivatives(parameters)
        penalty = pull(jax.grad(lambda each: jnp.sum(invariance_penalty(each)))(derivatives))
        mean = jnp.mean(risks.gradients(parameters), 0)
        return jnp.asarray((1 - self.weight) * mean + self.weight * penalty), weights
