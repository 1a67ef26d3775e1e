"""Gradient descent where environments agree on the sign (AND-mask)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Risks
from holdfast.core.algorithm import Algorithm


def agreement_mask(gradients: jax.Array, threshold: ArrayLike) -> jax.Array:
    """1 where the signs of the gradients agree in more than a share `threshold`, in the sense |sum of signs| > E tau.

    Example:
        >>> agreement_mask(jnp.array([[1.0, 1.0], [2.0, -1.0]]), 0.9).tolist()
        [1.0, 0.0]
    """
    return (jnp.abs(jnp.sum(jnp.sign(gradients), 0)) > len(gradients) * threshold).astype(gradients.dtype)


@dataclass(frozen=True)
class AgreementMask:
    """AND-mask: gradient descent in which a coordinate moves only if nearly all environments agree on its sign.

    The gradient of the coefficients is scaled to unit length in each environment before signs and means are taken,
    that of the intercept is not, as in the code of the unit tests.

    Reference: G. Parascandolo, A. Neitz, A. Orvieto, L. Gresele, B. Schölkopf, *Learning explanations that are hard to
    vary*, ICLR 2021, section 2.3; Aubin et al. (2021) for the scaling.

    Attributes:
        threshold: tau, see `agreement_mask`.
        step_size: of gradient descent.
        weight_decay: each step shrinks the parameters by step_size * weight_decay.

    Example, one step from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = AgreementMask(step_size=0.125).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """

    threshold: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Masked gradient descent."""

        def step(key: jax.Array, w: jax.Array, number: ArrayLike) -> jax.Array:
            gradients = risks.gradients(w)
            lengths = jnp.linalg.norm(gradients[:, :-1], axis=1, keepdims=True)
            # At an exact minimum of an environment there is no direction, and the mask is zero anyway.
            lengths = jnp.where(lengths > 0, lengths, 1)
            gradients = jnp.concatenate([gradients[:, :-1] / lengths, gradients[:, -1:]], axis=1)
            masked = agreement_mask(gradients, self.threshold) * jnp.mean(gradients, 0)
            return w - self.step_size * (masked + self.weight_decay * w)

        return Algorithm(lambda: start, step)
