"""What a fitted matrix has learned: the invariant part, the spurious part and the rest."""

import jax
import jax.numpy as jnp

from holdfast.algorithms.factored import Factors
from holdfast.sensing.problem import MatrixSensing

# Phase 1 ends when the slowest invariant direction passes this size (Lemma 5 and Theorem 4 of the paper).
PHASE_BOUNDARY = 1 / 3

# The recorded signals in words.
MEANINGS = {
    "invariant": "invariant signal learned, tr(U*'PU*)/r1; 1 if A* of unit spectrum is learned",
    "spurious": "mean spurious signal learned, tr(V*'PV*)/r2",
    "residual": "||E||_F^2 with E = (I - U*U*' - V*V*') U, the rest if the subspaces do not overlap",
    "distance": "distance to the invariant solution, ||P - A*||_F",
    "pooled_distance": "distance to the pooled solution, ||P - A* - E A(e)||_F",
    "invariant_norm": "||R||, largest singular value of U'U*",
    "spurious_norm": "||Q||, largest singular value of U'V*",
    "residual_norm": "||E||_F of the positive factor",
    "singular_values": "singular values of R = U'U*",
    "phase": "1: invariant signal growing, 2: invariant signal of order one",
}


def parts(problem: MatrixSensing, factor: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """R = U^T U*, Q = U^T V* and E = (I - U* U*^T - V* V*^T) U of a factor U (eq. 17 and 18)."""
    invariant = factor.T @ problem.invariant_basis
    spurious = factor.T @ problem.spurious_basis
    return (
        invariant,
        spurious,
        factor - problem.invariant_basis @ invariant.T - problem.spurious_basis @ spurious.T,
    )


def signals(problem: MatrixSensing, state: Factors) -> dict[str, jax.Array]:
    """The signals of a state, with P = U U^T - V V^T the fitted matrix.

    Returns:
        Those of `MEANINGS`. The residual is summed over both factors; the norms and singular values are those of the
        positive factor, singular values largest first; phase 1 lasts while the smallest singular value of R, relative
        to its goal, is below 1/3.

    Example, U = U*: the invariant signal is learned and nothing else:
        >>> from holdfast.sensing.environments import two_point
        >>> basis = jnp.eye(3)
        >>> problem = MatrixSensing(basis[:, :1], jnp.ones(1), basis[:, 1:2], two_point(1.0, 6.0))
        >>> found = jax.jit(signals)(problem, Factors(basis[:, :1], basis[:, :0]))
        >>> [found[name].item() for name in ("invariant", "spurious", "residual", "distance", "phase")]
        [1.0, 0.0, 0.0, 0.0, 2]
    """
    r, q, e = parts(problem, state.positive)
    r_negative, q_negative, e_negative = parts(problem, state.negative)
    square = lambda x: jnp.sum(jnp.square(x))  # noqa: E731
    residual = square(e) + square(e_negative)
    error = state.fitted - problem.invariant_matrix
    singular_values = _singular_values(r)
    slowest = _singular_values(r / jnp.sqrt(problem.invariant_spectrum))[-1]
    return {
        "invariant": (square(r) - square(r_negative)) / problem.invariant_rank,
        "spurious": (square(q) - square(q_negative)) / problem.spurious_rank,
        "residual": residual,
        "distance": jnp.linalg.norm(error),
        "pooled_distance": jnp.linalg.norm(error - problem.mean_spurious_matrix),
        "invariant_norm": singular_values[0],
        "spurious_norm": _singular_values(q)[0],
        "residual_norm": jnp.linalg.norm(e),
        "singular_values": singular_values,
        "phase": jnp.where(slowest < PHASE_BOUNDARY, 1, 2),
    }


def _singular_values(tall: jax.Array) -> jax.Array:
    """Singular values of a tall matrix, largest first, from its small Gram matrix.

    Values below the square root of the rounding error of the largest one are not resolved.
    """
    return jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(tall.T @ tall), 0))[::-1]
