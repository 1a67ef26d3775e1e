"""Explicit measurements, streamed in blocks: drawn anew at each step (`online`) or read from a data set (`fixed`)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.core.randomness import standard_normals
from holdfast.sensing.batching import Batch
from holdfast.sensing.ensembles import Ensemble, symmetric_gaussian
from holdfast.sensing.measurements import FixedDataSet
from holdfast.sensing.oracles.law import Oracle
from holdfast.sensing.problem import MatrixSensing

# Fresh measurements are drawn, used twice and discarded: a block of them should stay in the cache of one core.
BLOCK_BYTES = 2**20


def online(
    problem: MatrixSensing, ensemble: Ensemble, batch_size: int, noise_variance: ArrayLike | None = None
) -> Oracle:
    """The gradient over `batch_size` fresh measurements, each of them drawn: O(m d^2) random numbers.

    This is the slow, obvious oracle that `law` is tested against.

    Args:
        problem: A*, the spurious subspace and the law of S(e).
        ensemble: the measurement ensemble.
        batch_size: m, the sum of the counts of every batch.
        noise_variance: variance of the label noise; None: no noise.

    Example, a large batch is close to the `population`:
        >>> from holdfast.sensing.ensembles import gaussian
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([10_000.0]))
        >>> gradient = jax.jit(online(problem, gaussian, 10_000))(jax.random.key(0), jnp.zeros((2, 2)), batch)
        >>> jnp.abs(gradient).round().tolist()
        [[1.0, 0.0], [0.0, 7.0]]
    """
    coordinates = ensemble.size(problem.dimension)
    noisy = noise_variance is not None

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> jax.Array:
        dtype = fitted.dtype
        rows = min(max(1, BLOCK_BYTES // (coordinates * dtype.itemsize)), batch_size)
        residual = fitted - problem.invariant_matrix
        ends = jnp.arange(1, len(batch.strengths) + 1) if batch.counts is None else jnp.cumsum(batch.counts)

        if len(batch.strengths) == 1:
            target = ensemble.pack(residual - problem.spurious_matrix(batch.strengths[0]))
            errors = lambda x, index: x @ target  # noqa: E731
        else:
            # <X, V* S V*^T> is linear in the coordinates of S: one product with a few columns serves all groups.
            directions = _spurious_directions(problem, ensemble)
            columns = jnp.column_stack([ensemble.pack(residual), directions])
            strengths = jax.vmap(symmetric_gaussian.pack)(batch.strengths)

            def errors(x: jax.Array, index: jax.Array) -> jax.Array:
                inner = x @ columns
                group = jnp.minimum(jnp.searchsorted(ends, index, side="right"), len(strengths) - 1)
                return inner[:, 0] - jnp.sum(inner[:, 1:] * strengths[group], 1)

        def add_block(block: jax.Array, total: jax.Array) -> jax.Array:
            # A key for each measurement: what is drawn does not depend on the size of a block.
            index = block * rows + jnp.arange(rows)
            keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(index)
            drawn = jax.vmap(lambda key: standard_normals(key, (coordinates + noisy,), dtype))(keys)
            x = drawn[:, :coordinates]
            error = errors(x, index)
            if noisy:
                error -= jnp.sqrt(jnp.asarray(noise_variance, dtype)) * drawn[:, -1]
            return total + jnp.where(index < batch_size, error, 0) @ x

        total = jax.lax.fori_loop(0, -(-batch_size // rows), add_block, jnp.zeros(coordinates, dtype))
        return ensemble.unpack(total, problem.dimension) / batch_size

    return gradient


def _spurious_directions(problem: MatrixSensing, ensemble: Ensemble) -> jax.Array:
    """Packed V* B_k V*^T for the orthonormal basis B_k of symmetric matrices, one per column."""
    rank = problem.spurious_rank

    def direction(unit: jax.Array) -> jax.Array:
        return ensemble.pack(problem.spurious_matrix(symmetric_gaussian.unpack(unit, rank)))

    units = jnp.eye(symmetric_gaussian.size(rank), dtype=problem.spurious_basis.dtype)
    return jax.vmap(direction, out_axes=1)(units)


def fixed(data: FixedDataSet, ensemble: Ensemble) -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """The gradient over a data set: G = sum_i weight_i (<X_i, fitted> - y_i) X_i, the batch being the weights.

    Each block is read from memory once a step, and not at all if none of its rows is in the batch.

    Example, each entry of diag(1, 7) is measured once:
        >>> import numpy as np
        >>> from holdfast.sensing.ensembles import gaussian
        >>> from holdfast.sensing.measurements import fixed_data_set
        >>> data = fixed_data_set(np.eye(4), np.array([1.0, 0.0, 0.0, 7.0]), np.zeros(4, int), dimension=2)
        >>> fixed(data, gaussian)(jax.random.key(0), jnp.zeros((2, 2)), jnp.full(4, 0.25)).tolist()
        [[-0.25, 0.0], [0.0, -1.75]]
    """
    blocks, rows, width = data.measurements.shape
    coordinates = ensemble.size(data.dimension)

    def gradient(key: jax.Array, fitted: jax.Array, batch: jax.Array) -> jax.Array:
        target = jnp.pad(ensemble.pack(fitted), (0, width - coordinates))
        weights = batch.astype(fitted.dtype).reshape(blocks, rows)
        responses = data.responses.reshape(blocks, rows)

        def add_block(block: jax.Array, total: jax.Array) -> jax.Array:
            def add() -> jax.Array:
                x = jax.lax.dynamic_index_in_dim(data.measurements, block, keepdims=False)
                return total + (weights[block] * (x @ target - responses[block])) @ x

            return jax.lax.cond(jnp.any(weights[block] != 0), add, lambda: total)

        total = jax.lax.fori_loop(0, blocks, add_block, jnp.zeros_like(target))
        return ensemble.unpack(total[:coordinates], data.dimension)

    return gradient
