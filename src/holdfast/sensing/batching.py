"""Which environments the samples of a batch come from: one (hetero), one per sample (pooled), or all (full).

HeteroSGD and PooledSGD are one algorithm with two batchings, and the environments of HeteroSGD may come in an order
(`holdfast.core.order`). A batch of fresh measurements is a `Batch`: groups
of samples with a common strength matrix. A batch of a fixed data set is one weight per row.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.order import Order, cycle
from holdfast.core.validation import require
from holdfast.sensing.environments import Environments, FiniteEnvironments, finitely_many
from holdfast.sensing.measurements import FixedDataSet

__all__ = [
    "Batch",
    "Batching",
    "BatchingMaker",
    "RowBatching",
    "full",
    "full_rows",
    "hetero",
    "hetero_rows",
    "pooled",
    "pooled_rows",
    "row_cycle",
]
__dir__ = __all__.copy


class Batch(NamedTuple):
    """Groups of fresh samples that share a strength matrix.

    Attributes:
        strengths: (groups, r2, r2), S(e) of each group.
        counts: (groups,), samples in each group (an infinite batch counts as one sample); None: one each.

    Example, one sample with strength -5 and three with 7:
        >>> batch = Batch(jnp.array([[[-5.0]], [[7.0]]]), jnp.array([1.0, 3.0]))
        >>> batch.size.item(), batch.mean_strength.item()
        (4.0, 4.0)
    """

    strengths: jax.Array
    counts: jax.Array | None

    @property
    def size(self) -> ArrayLike:
        """Samples in the batch."""
        return len(self.strengths) if self.counts is None else jnp.sum(self.counts)

    @property
    def mean_strength(self) -> jax.Array:
        """The mean of S(e) over the samples."""
        if self.counts is None:
            return jnp.mean(self.strengths, 0)
        return jnp.einsum("g,gij->ij", self.counts / self.size, self.strengths)

    def checked(self, rank: int) -> "Batch":
        """The batch itself; raises a ValueError if its shapes are wrong for spurious signals of rank r2.

        Example:
            >>> Batch(jnp.ones((1, 1)), None).checked(rank=1)
            Traceback (most recent call last):
            ValueError: strengths of a Batch must have shape (groups, 1, 1), got (1, 1)
        """
        shape = jnp.shape(self.strengths)
        contract = f"strengths of a Batch must have shape (groups, {rank}, {rank})"
        require(len(shape) == 3 and shape[1:] == (rank, rank), contract, shape)
        counts = shape[:1] if self.counts is None else jnp.shape(self.counts)
        require(counts == shape[:1], f"counts of a Batch must have shape {shape[:1]}", counts)
        return self


# jax draws multinomial counts in float32, which represents whole numbers and halves exactly up to this.
LARGEST_POOL = 2**23

NO_ORDER_OF_A_CONTINUUM = (
    "order must be left out for a continuum of environments, of which none is visited twice: draw a panel of them "
    "first (the setting panel, or holdfast.sensing.environments.panel)"
)

Batching = Callable[[jax.Array, ArrayLike], Batch]
"""(key, number of the step) -> the batch of fresh samples of that step."""
BatchingMaker = Callable[[Environments, ArrayLike | None], Batching]
"""(environments, samples in a batch or None for infinitely many) -> batching. Both may be traced by jax."""
RowBatching = Callable[[jax.Array, ArrayLike], jax.Array]
"""(key, number of the step) -> the weight of each row of a fixed data set in that step; weights sum to one."""


def hetero(environments: Environments, batch_size: ArrayLike | None, *, order: Order | None = None) -> Batching:
    """All `batch_size` samples come from one environment (HeteroSGD).

    Args:
        environments: the law D of S(e).
        batch_size: samples in a batch; None: infinitely many.
        order: of the visits to finitely many environments, by their numbers; None: e ~ D anew in each step.

    Example:
        >>> from holdfast.sensing.environments import table
        >>> batch = hetero(table([3.0]), 50)(jax.random.key(0), 0)
        >>> batch.strengths.tolist(), batch.counts.tolist()
        ([[[3.0]]], [50.0])
        >>> from holdfast.core.order import cyclic
        >>> in_cycles = hetero(table([-5.0, 7.0]), 50, order=cyclic((0, 1)))
        >>> [in_cycles(jax.random.key(0), step).strengths.item() for step in range(4)]
        [-5.0, 7.0, -5.0, 7.0]
    """
    if order is not None and not isinstance(environments, FiniteEnvironments):
        raise ValueError(NO_ORDER_OF_A_CONTINUUM)

    def draw(key: jax.Array, step: ArrayLike) -> Batch:
        if order is None:
            strength = environments.draw(key)[None]
        else:
            strength = jnp.asarray(cast(FiniteEnvironments, environments).strengths)[order(step)][None]
        return Batch(strength, jnp.full(1, 1 if batch_size is None else batch_size, strength.dtype))

    return draw


def pooled(environments: Environments, batch_size: ArrayLike | None) -> Batching:
    """Each of `batch_size` samples has its own environment e_i ~ D (PooledSGD); None: infinitely many.

    A continuum gives groups of one sample each, so its `batch_size` must be a Python integer. Finitely many
    environments allow at most `LARGEST_POOL` samples: float32 does not hold larger counts exactly.

    Example:
        >>> from holdfast.sensing.environments import table
        >>> batch = jax.jit(pooled(table([-5.0, 7.0]), 50))(jax.random.key(0), 0)
        >>> batch.strengths.ravel().tolist(), batch.size.item()
        ([-5.0, 7.0], 50.0)
    """
    if batch_size is None:
        return full(environments, None)

    def draw(key: jax.Array, step: ArrayLike) -> Batch:
        if isinstance(environments, FiniteEnvironments):
            strengths = jnp.asarray(environments.strengths)
            size, probabilities = (jnp.asarray(x, jnp.float32) for x in (batch_size, environments.probabilities))
            counts = jax.random.multinomial(key, size, probabilities)
            return Batch(strengths, counts.astype(strengths.dtype))
        strengths = jax.vmap(environments.draw)(jax.random.split(key, cast(int, batch_size)))
        return Batch(strengths, None)

    return draw


def full(environments: Environments, batch_size: ArrayLike | None) -> Batching:
    """Every environment in proportion to its probability, in every batch; None: infinitely many samples.

    The shares are rounded to whole samples that sum to `batch_size`. Over an infinite batch only the mean of
    S(e) is seen, so a continuum is one group.

    Example:
        >>> from holdfast.sensing.environments import table
        >>> full(table([-5.0, 7.0], [0.2, 0.8]), 50)(jax.random.key(0), 0).counts.tolist()
        [10.0, 40.0]
    """
    if batch_size is None:
        return lambda key, step: Batch(environments.mean[None], jnp.ones(1, environments.mean.dtype))
    finite = finitely_many(environments, "full batching needs finitely many environments")

    def draw(key: jax.Array, step: ArrayLike) -> Batch:
        strengths, probabilities = jnp.asarray(finite.strengths), jnp.asarray(finite.probabilities)
        boundaries = jnp.round(jnp.cumsum(probabilities) * batch_size).at[-1].set(batch_size)
        counts = jnp.diff(boundaries, prepend=0)
        return Batch(strengths, counts.astype(strengths.dtype))

    return draw


def _choose(key: jax.Array, eligible: jax.Array, batch_size: int | None, replacement: bool) -> jax.Array:
    """Weights of `batch_size` rows drawn among the eligible ones; None: all of them."""
    if batch_size is None:
        return eligible / jnp.sum(eligible)
    if replacement:
        cumulated = jnp.cumsum(eligible)
        picks = jax.random.randint(key, (batch_size,), 0, cumulated[-1])
        rows = jnp.searchsorted(cumulated, picks, side="right")
    else:
        scores = jnp.where(eligible, jax.random.uniform(key, eligible.shape, jnp.float32), -1.0)
        rows = jnp.argsort(-scores)[:batch_size]
    return jnp.zeros(len(eligible)).at[rows].add(1 / batch_size)


def hetero_rows(
    data: FixedDataSet, batch_size: int | None = None, *, replacement: bool = False, order: Order | None = None
) -> RowBatching:
    """Rows of one environment.

    Args:
        data: the data set.
        batch_size: rows in a batch, drawn anew in each step; None: all rows of the environment.
        replacement: whether a row may be drawn twice.
        order: of the visits to the environments, see `row_cycle`; None: each step draws one in proportion to its rows.

    Example, four rows of two environments:
        >>> from holdfast.sensing.measurements import fixed_data_set
        >>> data = fixed_data_set(np.eye(4), np.arange(4.0), np.array([0, 0, 1, 1]), dimension=2)
        >>> hetero_rows(data)(jax.random.key(0), 0).tolist() in ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5])
        True
    """
    _enough(batch_size, min(data.counts), replacement, "the smallest environment")

    def draw(key: jax.Array, step: ArrayLike) -> jax.Array:
        environment_key, row_key = jax.random.split(key)
        if order is None:
            row = jax.random.randint(environment_key, (), 0, data.count)
            chosen = jnp.searchsorted(np.cumsum(data.counts), row, side="right")
        else:
            chosen = order(step)
        return _choose(row_key, data.environment == chosen, batch_size, replacement)

    return draw


def row_cycle(data: FixedDataSet) -> tuple[int, ...]:
    """The visits of one cycle through a data set: every environment in proportion to its number of rows.

    Example:
        >>> from holdfast.sensing.measurements import fixed_data_set
        >>> row_cycle(fixed_data_set(np.eye(4), np.arange(4.0), np.array([0, 1, 1, 1]), dimension=2))
        (1, 0, 1, 1)
    """
    return cycle(np.array(data.counts) / data.count)


def pooled_rows(data: FixedDataSet, batch_size: int, *, replacement: bool = False) -> RowBatching:
    """`batch_size` rows of the whole data set, whatever their environment.

    Example:
        >>> from holdfast.sensing.measurements import fixed_data_set
        >>> data = fixed_data_set(np.eye(4), np.arange(4.0), np.array([0, 0, 1, 1]), dimension=2)
        >>> sorted(jax.jit(pooled_rows(data, 2))(jax.random.key(0), 0).tolist())
        [0.0, 0.0, 0.5, 0.5]
    """
    _enough(batch_size, data.count, replacement, "the data set")
    return lambda key, step: _choose(key, data.environment >= 0, batch_size, replacement)


def full_rows(data: FixedDataSet) -> RowBatching:
    """All rows of all environments (PooledGD, Theorem 6).

    Example:
        >>> from holdfast.sensing.measurements import fixed_data_set
        >>> data = fixed_data_set(np.eye(4), np.arange(4.0), np.array([0, 0, 1, 1]), dimension=2)
        >>> full_rows(data)(jax.random.key(0), 0).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    return lambda key, step: _choose(key, data.environment >= 0, None, False)


def _enough(batch_size: int | None, available: int, replacement: bool, where: str) -> None:
    limit = f"batch_size must be at most {available}, the number of measurements of {where}"
    enough = batch_size is None or replacement or batch_size <= available
    require(enough, f"{limit}, when drawn without replacement", batch_size)
