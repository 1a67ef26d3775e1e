"""Gradient descent where environments agree on the sign (AND-mask)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import DirectionAndWeights, Risks


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

    On a table the gradient of the coefficients is scaled to unit length in each environment before signs and means are
    taken, that of the intercept is not, as in the code of the unit tests. The result depends on the coordinates.

    Reference: G. Parascandolo, A. Neitz, A. Orvieto, L. Gresele, B. Schölkopf, *Learning explanations that are hard to
    vary*, ICLR 2021, section 2.3; Aubin et al. (2021) for the scaling.

    Attributes:
        threshold: tau, see `agreement_mask`.
        step_size: of gradient descent.
        weight_decay: each step shrinks the parameters by step_size * weight_decay.

    Example, the gradients of two environments agree on the sign of the first of two coefficients only:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> crossed = jnp.array([[3.0, 4.0, 0.0], [3.0, -4.0, 0.0]])
        >>> risks = squared_risks(SecondMoments(jnp.stack([jnp.eye(3)] * 2), crossed, jnp.ones(2)))
        >>> direction, _ = AgreementMask().direction(risks, jnp.zeros(3), jnp.ones(2), jax.random.key(0))
        >>> [f"{each:.1f}" for each in direction]
        ['-0.6', '0.0', '0.0']
    """

    threshold: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The mean gradient where the environments agree on its sign, and zero elsewhere."""
        gradients = risks.normalised(risks.gradients(parameters))
        return agreement_mask(gradients, self.threshold) * jnp.mean(gradients, 0), weights

    def optimizer(self) -> optax.GradientTransformation:
        """Gradient descent."""
        return optax.chain(optax.add_decayed_weights(self.weight_decay), optax.sgd(self.step_size))
