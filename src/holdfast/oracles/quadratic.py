"""Gradients over rank-one measurements X = x x^T, through matrix products only."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.batching import Batch
from holdfast.problems import MatrixSensing
from holdfast.randomness import standard_normals

# Samples are made, used twice and forgotten: a block of them should stay in the cache of one core.
BLOCK_BYTES = 2**19
# Samples that share a key: what is drawn does not depend on the size of a block, and keys cost little.
GROUP = 64


class RankOneGradient(NamedTuple):
    """What a batch of rank-one measurements tells.

    Attributes:
        gradient: G = (1/m) sum_i (yhat_i - y_i) x_i x_i^T over the samples that pass the truncation. Its mean over
            Gaussian x, without truncation, is 2 W + tr(W) I with W the mean residual.
        trace: mean of the responses y, which is the moment estimate of tr(A* + A(e)).
        signal: the mean of A* + A(e) over the batch.
    """

    gradient: jax.Array
    trace: jax.Array
    signal: jax.Array


def rank_one(
    problem: MatrixSensing, batch_size: int, truncation: ArrayLike = jnp.inf
) -> Callable[[jax.Array, jax.Array, Batch], RankOneGradient]:
    """Fresh samples x ~ N(0, I) with responses y = x^T (A* + A(e)) x, streamed in blocks.

    No x x^T is ever formed: yhat_i = x_i^T P x_i comes from the product of the samples with P, and G is a weighted
    Gram matrix of the samples, together 4 m d^2 operations.

    Args:
        problem: A*, the spurious subspace and the law of S(e).
        batch_size: m, the sum of the counts of the batches that will come.
        truncation: samples with ||U^T x||^2 = x^T P x above this are left out (Algorithm 4).
    """
    dimension = problem.dimension

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> RankOneGradient:
        if batch.counts is None:
            raise ValueError("rank-one measurements need finitely many environments, got a continuum of them")
        dtype = fitted.dtype
        wanted = min(BLOCK_BYTES // (dimension * dtype.itemsize), batch_size)
        groups = max(1, wanted // GROUP)
        rows = groups * GROUP
        ends = jnp.cumsum(batch.counts)
        starts = ends - batch.counts

        def add_block(block: jax.Array, total: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            index = block * rows + jnp.arange(rows)
            keys = jax.vmap(lambda group: jax.random.fold_in(key, group))(block * groups + jnp.arange(groups))
            x = jax.vmap(lambda key: standard_normals(key, (GROUP, dimension), dtype))(keys).reshape(rows, dimension)
            predicted = jnp.sum((x @ fitted) * x, 1)
            member = (index[:, None] >= starts) & (index[:, None] < ends)
            response = _responses(problem, x, batch.strengths, member)
            inside = index < batch_size
            weight = jnp.where(inside & (predicted <= truncation), predicted - response, 0)
            return total[0] + (x * weight[:, None]).T @ x, total[1] + jnp.sum(jnp.where(inside, response, 0))

        zero = (jnp.zeros((dimension, dimension), dtype), jnp.zeros((), dtype))
        gram, responses = jax.lax.fori_loop(0, -(-batch_size // rows), add_block, zero)
        signal = problem.invariant_matrix + problem.spurious_matrix(batch.mean_strength)
        return RankOneGradient(gram / batch_size, responses / batch_size, signal)

    return gradient


def _responses(problem: MatrixSensing, x: jax.Array, strengths: jax.Array, member: jax.Array) -> jax.Array:
    """Y = x^T A* x + x^T V* S(e) V*^T x for each row x, of the environment of the group that it is a member of."""
    invariant = jnp.square(x @ problem.invariant_basis) @ problem.invariant_spectrum
    seen = x @ problem.spurious_basis
    each = jax.vmap(lambda strength: jnp.sum((seen @ strength) * seen, 1), out_axes=1)(strengths)
    return invariant + jnp.sum(jnp.where(member, each, 0), 1)
