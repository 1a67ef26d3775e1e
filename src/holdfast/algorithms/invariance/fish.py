"""Gradient matching by passes through the environments (Fish)."""

from dataclasses import dataclass

import jax
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Risks
from holdfast.core.algorithm import Algorithm


@dataclass(frozen=True)
class Fish:
    """Fish: a pass of gradient descent through the environments in random order, then a step towards where it ended.

        w' <- w' - step_size grad R_e(w')  for each e,    w <- w + meta_step_size (w' - w)

    To second order this raises the inner products of the gradients of environments.

    Reference: Y. Shi et al., *Gradient matching for domain generalization*, ICLR 2022, Algorithm 1.

    Attributes:
        step_size: of the pass.
        meta_step_size: epsilon.
        weight_decay: added to each gradient as weight_decay * parameters.

    Example, one pass from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> import jax.numpy as jnp
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = Fish(step_size=0.125, meta_step_size=0.5).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.25, 0.0]
    """

    step_size: ArrayLike = 1e-3
    meta_step_size: ArrayLike = 0.5
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """The two nested steps; the order of environments is drawn anew in each."""
        count = jax.eval_shape(risks.values, start).shape[0]

        def step(key: jax.Array, w: jax.Array, number: ArrayLike) -> jax.Array:
            def visit(ahead: jax.Array, environment: jax.Array) -> tuple[jax.Array, None]:
                gradient = risks.gradient(ahead, environment) + self.weight_decay * ahead
                return ahead - self.step_size * gradient, None

            order = jax.random.permutation(key, count)
            ahead, _ = jax.lax.scan(visit, w, order)
            return w + self.meta_step_size * (ahead - w)

        return Algorithm(lambda: start, step)
