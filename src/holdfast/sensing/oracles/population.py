"""The oracle of infinitely many measurements."""

import jax

from holdfast.sensing.batching import Batch
from holdfast.sensing.oracles.base import Oracle
from holdfast.sensing.problem import MatrixSensing


def population(problem: MatrixSensing) -> Oracle:
    """G = fitted - A* - V* S V*^T with S the mean strength of the batch: the expectation over measurements.

    Example, A* = diag(1, 0) and A(e) = diag(0, 7):
        >>> import jax.numpy as jnp
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([1.0]))
        >>> population(problem)(jax.random.key(0), jnp.zeros((2, 2)), batch).tolist()
        [[-1.0, 0.0], [0.0, -7.0]]
    """

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> jax.Array:
        return fitted - problem.invariant_matrix - problem.spurious_matrix(batch.mean_strength)

    return gradient
