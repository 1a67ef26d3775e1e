"""Risk extrapolation by the variance of the risks (V-REx)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import ByAdam, DirectionAndWeights, Risks
from holdfast.core.linear_algebra import Arrays


def extrapolated_risk(risks: Arrays, penalty: Arrays) -> Arrays:
    """The mean of the risks of the environments plus `penalty` times their variance; arrays of NumPy, jax or torch.

    The environments are the last axis of the risks.

    Example:
        >>> float(extrapolated_risk(jnp.array([1.0, 3.0]), 10.0))
        12.0
    """
    return risks.mean(-1) + penalty * ((risks - risks.mean(-1)[..., None]) ** 2).mean(-1)


@dataclass(frozen=True)
class RiskExtrapolation(ByAdam):
    """V-REx: mean_e R_e + penalty * variance_e R_e.

    Reference: D. Krueger et al., *Out-of-distribution generalization via risk extrapolation*, ICML 2021, eq. 8, with
    the mean of the risks instead of their sum.

    Attributes:
        penalty: beta.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, a single environment has no variance: the direction is the gradient of R(w, b) = (w - 2)^2 + b^2
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> RiskExtrapolation().direction(risks, jnp.zeros(2), jnp.ones(1), jax.random.key(0))[0].tolist()
        [-4.0, 0.0]
    """

    penalty: ArrayLike = 10.0
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The gradients, weighted by the slopes of the extrapolated risk."""
        values, gradients = risks.both(parameters)
        return jnp.tensordot(jax.grad(extrapolated_risk)(values, self.penalty), gradients, 1), weights
