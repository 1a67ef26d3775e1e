"""The published methods on a factored matrix U U^T: its risks as those of a factor."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from holdfast.algorithms.invariance.base import Pulled, Risks

MatrixGradient = Callable[[jax.Array, jax.Array], jax.Array]
"""(fitted matrix P, environment) -> the gradient G_e of its risk in P, on one batch."""


def factored_risks(
    values: Callable[[jax.Array], jax.Array], gradient: MatrixGradient, other_gradient: MatrixGradient | None = None
) -> Risks:
    """The risks of P = U U^T as functions of U, for risks that are quadratic in P, such as E <X, P - A* - A(e)>^2 / 2.

    The gradient of R_e counts as G_e U, so a step of descent is U <- (I - eta G) U, eq. 3 of Xu, Gu and Fang (2024).

    The derivative along a multiple of P is D_e = d R_e(s P) / ds = <P, G_e>, and its gradient in P is that of R_e at
    2 P. Taken on a batch of its own, the product of both is unbiased, as in the code of Arjovsky et al. (2019).

    Args:
        values: P -> (environments,), R_e.
        gradient: G_e, on one batch of each environment.
        other_gradient: the same on other batches; None: on these.

    Example, R(P) = (P - 1)^2 / 2 at P = 2, where D = 2, pulled back with the slope 1 to (2 P - 1) U:
        >>> risks = factored_risks(lambda p: jnp.square(p[0] - 1) / 2, lambda p, e: p - 1)
        >>> factor = jnp.full((1, 1), jnp.sqrt(2.0))
        >>> derivatives, pull = risks.derivatives(factor)
        >>> round(derivatives.item(), 4), round((pull(jnp.ones((1, 1))) / factor).item(), 4)
        (2.0, 3.0)
    """

    def everywhere(one: MatrixGradient, fitted: jax.Array, count: int) -> jax.Array:
        return jax.vmap(lambda environment: one(fitted, environment))(jnp.arange(count))

    def both(factor: jax.Array) -> tuple[jax.Array, jax.Array]:
        fitted = factor @ factor.T
        risks = values(fitted)
        return risks, everywhere(gradient, fitted, len(risks)) @ factor

    def derivatives(factor: jax.Array) -> tuple[jax.Array, Pulled]:
        fitted = factor @ factor.T
        count = len(values(fitted))

        def pull(slopes: jax.Array) -> jax.Array:
            return jnp.tensordot(slopes[:, 0], everywhere(other_gradient or gradient, 2 * fitted, count), 1) @ factor

        return jnp.tensordot(everywhere(gradient, fitted, count), fitted, 2)[:, None], pull

    return Risks(both, lambda factor, environment: gradient(factor @ factor.T, environment) @ factor, derivatives)
