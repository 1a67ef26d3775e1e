"""Gradient matching by passes through the environments (Fish)."""

from dataclasses import dataclass

import jax
import optax  # type: ignore[import-untyped]
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import DirectionAndWeights, Risks


@dataclass(frozen=True)
class Fish:
    """Fish: a pass of gradient descent through the environments in random order, then a step towards where it ended.

        w' <- w' - step_size grad R_e(w')  for each e,    w <- w + meta_step_size (w' - w)

    To second order this raises the inner products of the gradients of environments. With a meta step size of one it is
    HeteroSGD in a reshuffled order: a small direction of strength s(e) of a factored matrix is multiplied by
    1 + meta_step_size (prod_e (1 + step_size s(e)) - 1) in a pass, so it shrinks exactly where HeteroSGD shrinks it, as
    long as the product is positive.

    Reference: Y. Shi et al., *Gradient matching for domain generalization*, ICLR 2022, Algorithm 1.

    Attributes:
        step_size: of the pass.
        meta_step_size: epsilon.
        weight_decay: added to each gradient as weight_decay * parameters.

    Example, one pass from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> import jax.numpy as jnp
        >>> from holdfast.algorithms.invariance import descent, squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = descent(Fish(step_size=0.125, meta_step_size=0.5), risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.25, 0.0]
    """

    step_size: ArrayLike = 1e-3
    meta_step_size: ArrayLike = 0.5
    weight_decay: ArrayLike = 0.0

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """From where a pass ends, in an order that is drawn anew, to where it began."""

        def visit(ahead: jax.Array, environment: jax.Array) -> tuple[jax.Array, None]:
            gradient = risks.gradient(ahead, environment) + self.weight_decay * ahead
            return ahead - self.step_size * gradient, None

        ahead, _ = jax.lax.scan(visit, parameters, jax.random.permutation(key, len(weights)))
        return parameters - ahead, weights

    def optimizer(self) -> optax.GradientTransformation:
        """A part of the way to the end of the pass."""
        return optax.sgd(self.meta_step_size)
