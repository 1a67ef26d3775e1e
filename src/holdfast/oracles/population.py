"""The oracle of infinitely many measurements."""

import jax

from holdfast.batching import Batch
from holdfast.oracles.base import Oracle
from holdfast.problems import MatrixSensing


def population(problem: MatrixSensing) -> Oracle:
    """G = fitted - A* - V* S V*^T with S the mean strength of the batch: the expectation over measurements."""

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> jax.Array:
        return fitted - problem.invariant_matrix - problem.spurious_matrix(batch.mean_strength)

    return gradient
