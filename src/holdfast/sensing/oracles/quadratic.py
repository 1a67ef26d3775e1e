"""Gradients over rank-one measurements X = x x^T, through matrix products only."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.factored import RankOneGradient
from holdfast.core.randomness import standard_normals
from holdfast.sensing.batching import Batch
from holdfast.sensing.problem import MatrixSensing

# Samples are drawn, used twice and discarded: a block of them should stay in the cache of one core. Counted in numbers,
# not bytes, because the samples depend on the blocks, and float64 should see those of float32.
BLOCK_NUMBERS = 2**18
# Columns start on a cache line.
ROW_MULTIPLE = 64


def rank_one(
    problem: MatrixSensing, batch_size: int, truncation: ArrayLike = jnp.inf
) -> Callable[[jax.Array, jax.Array, Batch], RankOneGradient]:
    """Fresh samples x ~ N(0, I) with responses y = x^T (A* + A(e)) x, streamed in blocks.

    No x x^T is ever formed: yhat_i = x_i^T P x_i comes from the product of P with the samples, and G is a weighted
    Gram matrix of the samples, together 4 m d^2 operations. P and G are symmetric: of the four blocks that each
    is cut into, three are enough, 3 m d^2.

    Args:
        problem: A*, the spurious subspace and the law of S(e).
        batch_size: m, the sum of the counts of every batch.
        truncation: samples with ||U^T x||^2 = x^T P x above this are left out (Algorithm 4).

    Example, the gradient vanishes at A* + A(e) = diag(1, 7):
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([100.0]))
        >>> seen = jax.jit(rank_one(problem, 100))(jax.random.key(0), jnp.diag(jnp.array([1.0, 7.0])), batch)
        >>> bool(jnp.abs(seen.gradient).max() < 1e-4)
        True
    """
    dimension = problem.dimension

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> RankOneGradient:
        if batch.counts is None:
            raise ValueError("rank-one measurements need finitely many environments, got a continuum of them")
        dtype = fitted.dtype
        blocks = -(-batch_size * dimension // BLOCK_NUMBERS)
        size = -(-batch_size // (blocks * ROW_MULTIPLE)) * ROW_MULTIPLE
        half = dimension // 2
        ends = jnp.cumsum(batch.counts)[:, None]
        starts = ends - batch.counts[:, None]
        # x^T P x = a^T (P11 a + 2 P12 b) + b^T P22 b for x = (a, b); the signals are seen in the same product.
        upper = jnp.concatenate([fitted[:half, :half], 2 * fitted[:half, half:]], 1)
        signals = jnp.concatenate([problem.invariant_basis, problem.spurious_basis], 1).T

        def add_block(block: jax.Array, total: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            # Samples are columns: sums over their coordinates are then sums of long rows. A key for each coordinate.
            block_key = jax.random.fold_in(key, block)
            keys = jax.vmap(lambda coordinate: jax.random.fold_in(block_key, coordinate))(jnp.arange(dimension))
            x = jax.vmap(lambda key: standard_normals(key, (size,), dtype))(keys)
            seen = jnp.concatenate([upper, signals]) @ x
            predicted = jnp.sum(seen[:half] * x[:half], 0) + jnp.sum((fitted[half:, half:] @ x[half:]) * x[half:], 0)
            index = block * size + jnp.arange(size)
            response = _responses(problem, seen[half:], batch.strengths, (index >= starts) & (index < ends))
            inside = index < batch_size
            weighted = x * jnp.where(inside & (predicted <= truncation), predicted - response, 0)
            return (
                total[0] + weighted[:half] @ x.T,
                total[1] + weighted[half:] @ x[half:].T,
                total[2] + jnp.sum(jnp.where(inside, response, 0)),
            )

        zero = [jnp.zeros(shape, dtype) for shape in ((half, dimension), (dimension - half,) * 2, ())]
        upper_rows, corner, responses = jax.lax.fori_loop(0, blocks, add_block, tuple(zero))
        gram = jnp.concatenate([upper_rows, jnp.concatenate([upper_rows[:, half:].T, corner], 1)])
        signal = problem.invariant_matrix + problem.spurious_matrix(batch.mean_strength)
        return RankOneGradient(gram / batch_size, responses / batch_size, signal)

    return gradient


def _responses(problem: MatrixSensing, seen: jax.Array, strengths: jax.Array, member: jax.Array) -> jax.Array:
    """The response y = x^T A* x + x^T V* S(e) V*^T x of each sample, from seen = (U*, V*)^T x.

    The environment is that of the group that the sample is a member of.
    """
    invariant = problem.invariant_spectrum @ jnp.square(seen[: problem.invariant_rank])
    spurious = seen[problem.invariant_rank :]
    each = jax.vmap(lambda strength: jnp.sum((strength @ spurious) * spurious, 0))(strengths)
    return invariant + jnp.sum(jnp.where(member, each, 0), 0)
