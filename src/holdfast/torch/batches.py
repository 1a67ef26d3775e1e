"""The one infinite sequence of batches that samplers hand out: a pure function of labels, settings, seed and number.

An epoch is a window of the sequence, a process of several sees a part of it, and resuming is starting at a number.
NumPy alone, no torch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from hashlib import blake2b
from itertools import count, islice
from math import gcd
from typing import Any

import numpy as np

from holdfast.core.grouping import Grouping
from holdfast.core.validation import COUNT, COUNT_OR_ZERO, SEED, SHARE, require

ORDERS = ("reshuffled", "cyclic", "independent")
"""The names of the orders, those of `holdfast.core.order`, which imports jax."""

# Random numbers for different purposes come from different generators.
VISITS, ROWS, POOL = range(3)
# Visits that are drawn at once: creating a generator takes as long as drawing thousands of numbers.
BLOCK = 4096


def generator(*key: int) -> np.random.Generator:
    """A generator of its own for each key (seed, purpose, ...), so that nothing has to be drawn in sequence."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(key)))


def batches_per_pass(rows: Any, batch_size: int, drop_last: bool) -> Any:
    """The batches of one pass through so many rows, a number or an array of numbers."""
    return rows // batch_size if drop_last else -(-rows // batch_size)


def visits_per_cycle(weights: Any, labels: list, batches: np.ndarray) -> np.ndarray:
    """(environments,): how often each is visited in a cycle, whole numbers in proportion to the weights.

    Args:
        weights: "size": in proportion to the batches that a pass through the environment takes, so that one pass
            through all of them sees every row once; "uniform": once each; or a mapping from labels to weights, for
            which the rule of `holdfast.core.order.cycle` applies: exact, or 1000 visits with rounded numbers.
        labels: of the environments.
        batches: (environments,), in one pass through each.

    Example:
        >>> visits_per_cycle("size", ["dry", "wet"], np.array([2, 4])).tolist()
        [1, 2]
        >>> visits_per_cycle({"dry": 0.75, "wet": 0.25}, ["dry", "wet"], np.array([2, 4])).tolist()
        [3, 1]
    """
    if isinstance(weights, str):
        require(weights in ("size", "uniform"), "weights must be 'size', 'uniform' or a mapping", repr(weights))
        counts = batches if weights == "size" else np.ones_like(batches)
        return counts // reduce(gcd, counts.tolist())
    require(isinstance(weights, Mapping), "weights must be 'size', 'uniform' or a mapping", repr(weights))
    require(
        set(weights) == set(labels),
        f"weights must have one number for each of the environments {_listed(labels)}",
        _listed(list(weights)),
    )
    given = np.array([weights[label] for label in labels], float)
    proper = bool(np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0)
    require(proper, "weights must be finite, not negative and not all zero", given.tolist())
    from holdfast.core.order import cycle  # imports jax, which the other weights do not need

    return np.bincount(cycle(given / given.sum()), minlength=len(labels))


@dataclass
class Visits:
    """Which environment each batch comes from.

    Cyclic: the visits of an environment are spread evenly over the cycle, and all cycles are equal. Reshuffled: each of
    its v visits falls on a random moment of one of v equal parts of the cycle, so a cycle with one visit each is a
    random permutation, and also in a long cycle no environment comes many times in a row. Independent: drawn anew each
    time, with probabilities in proportion to the visits.

    Attributes:
        order: "reshuffled", "cyclic" or "independent".
        cycle: (environments,), the visits of one cycle.
        seed: of the sequence.

    Example:
        >>> Visits("cyclic", np.array([1, 2]), seed=0).window(0, 6).tolist()
        [1, 0, 1, 1, 0, 1]
        >>> sorted(Visits("reshuffled", np.array([1, 1, 1]), seed=0).window(3, 6).tolist())
        [0, 1, 2]
    """

    order: str
    cycle: np.ndarray
    seed: int

    def __post_init__(self) -> None:
        self.length = int(self.cycle.sum())
        # A block is a whole number of cycles.
        self.period = BLOCK if self.order == "independent" else max(1, BLOCK // self.length) * self.length
        self._before = [np.zeros_like(self.cycle)]  # visits before each block of independent draws

    def block(self, number: int) -> np.ndarray:
        """(period,): the environments of the steps from number * period on."""
        environments = np.repeat(np.arange(len(self.cycle)), self.cycle)
        if self.order == "independent":
            uniform = generator(self.seed, VISITS, number).random(self.period)
            return environments[(uniform * self.length).astype(np.intp)]
        part = np.concatenate([np.arange(visits) / visits for visits in self.cycle.tolist() if visits])
        width = np.repeat(1 / np.maximum(self.cycle, 1), self.cycle)
        place = np.full((self.period // self.length, self.length), 0.5)
        if self.order == "reshuffled":
            place = generator(self.seed, VISITS, number).random(place.shape)
        return environments[np.argsort(part + width * place, axis=1, kind="stable")].ravel()

    def before(self, number: int) -> np.ndarray:
        """(environments,): the visits to each before a block. Counted from the start if they are independent."""
        if self.order != "independent":
            return self.cycle * (number * self.period // self.length)
        while len(self._before) <= number:
            last = np.bincount(self.block(len(self._before) - 1), minlength=len(self.cycle))
            self._before.append(self._before[-1] + last)
        return self._before[number]

    def window(self, start: int, stop: int) -> np.ndarray:
        """The environments of the steps from `start` up to `stop`."""
        return np.array([environment for environment, _ in islice(self.numbered(start), stop - start)], np.intp)

    def numbered(self, start: int) -> Iterator[tuple[int, int]]:
        """(environment, number of the visit to it) of every step from `start` on."""
        first, skipped = divmod(start, self.period)
        visits = self.before(first).tolist()
        for number in count(first):
            environments = self.block(number).tolist()
            for environment in environments[:skipped]:
                visits[environment] += 1
            for environment in environments[skipped:]:
                yield environment, visits[environment]
                visits[environment] += 1
            skipped = 0


@dataclass
class RowStream:
    """The rows of one environment (or of all), pass after pass, each in a fresh random order.

    Without replacement the last batch of a pass is shorter, or dropped, so that no batch has a row twice. With
    replacement a "pass" is a block of independent draws.

    Args:
        rows: positions in the data set.
        batch_size: rows of a batch.
        key: of the generators.
        replacement: whether rows are drawn independently.
        drop_last: whether the short batch at the end of a pass is left out.
        probabilities: of the rows, with replacement only; None: all equal.

    Example:
        >>> stream = RowStream(np.array([3, 5, 8]), 2, key=(0,))
        >>> [sorted(np.concatenate([stream.batch(2 * k), stream.batch(2 * k + 1)]).tolist()) for k in range(2)]
        [[3, 5, 8], [3, 5, 8]]
    """

    rows: np.ndarray
    batch_size: int
    key: tuple[int, ...]
    replacement: bool = False
    drop_last: bool = False
    probabilities: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.batches = batches_per_pass(len(self.rows), self.batch_size, self.drop_last)
        if self.replacement:
            self.batches = max(1, BLOCK // self.batch_size)
        self._cumulative = None if self.probabilities is None else np.cumsum(self.probabilities)
        self._pass, self._shuffled = -1, self.rows

    @property
    def shortest(self) -> int:
        """Rows of the last batch of a pass."""
        whole = self.replacement or self.drop_last
        return self.batch_size if whole else (len(self.rows) - 1) % self.batch_size + 1

    def batch(self, visit: int) -> np.ndarray:
        """The rows of a visit."""
        number, place = divmod(visit, self.batches)
        if number != self._pass:
            self._pass, self._shuffled = number, self._draw(generator(*self.key, number))
        return self._shuffled[place * self.batch_size : (place + 1) * self.batch_size]

    def _draw(self, random: np.random.Generator) -> np.ndarray:
        if not self.replacement:
            return random.permutation(self.rows)
        count = self.batches * self.batch_size
        if self._cumulative is None:
            return self.rows[random.integers(len(self.rows), size=count)]
        return self.rows[np.searchsorted(self._cumulative, random.random(count) * self._cumulative[-1], side="right")]


@dataclass
class BatchSequence:
    """Batches number 0, 1, 2, ... of rows of labelled environments.

    Args:
        grouping: the environment of each row, see `holdfast.core.group_rows`.
        batch_size: rows of a batch.
        order: of the environments: "reshuffled", "cyclic" or "independent".
        weights: of the environments, see `visits_per_cycle`.
        mixing: the share of each batch that is drawn from all rows instead of from one environment; 1: pooled batches.
        replacement: whether rows are drawn with replacement.
        drop_last: whether the short batch at the end of a pass through an environment is left out.
        seed: of everything that is random.

    Example:
        >>> from holdfast.core import group_rows
        >>> sequence = BatchSequence(group_rows(["a", "b", "a", "b"], 4), batch_size=2, order="cyclic")
        >>> [sorted(batch.tolist()) for batch, _ in zip(sequence.iterate(0), range(4))]
        [[0, 2], [1, 3], [0, 2], [1, 3]]
    """

    grouping: Grouping
    batch_size: int = 16
    _: KW_ONLY
    order: str = "reshuffled"
    weights: Any = "size"
    mixing: float = 0.0
    replacement: bool = False
    drop_last: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for rule, name in ((COUNT, "batch_size"), (SHARE, "mixing"), (SEED, "seed")):
            rule.check(name, getattr(self, name))
        known = f"order must be one of {', '.join(ORDERS)}, or mixing 1 for pooled batches"
        require(self.order in ORDERS, known, repr(self.order))
        codes, sizes, self.labels = self.grouping.codes, self.grouping.sizes, self.grouping.labels
        require(len(codes) > 0, "labels must have at least one row", 0)
        self.codes = codes.astype(np.min_scalar_type(max(self.grouping.count - 1, 1)))
        pooled = round(self.mixing * self.batch_size)
        whole = self.mixing in (0, 1) or 0 < pooled < self.batch_size
        require(whole, f"mixing must give at least one row of a batch of {self.batch_size} to each part", self.mixing)
        self.pure = self.batch_size - pooled

        rows = np.argsort(self.codes, kind="stable").astype(np.int32 if len(codes) < 2**31 else np.int64)
        own = self.pure or 1  # pooled batches come from no environment, and their order does not matter
        drawn = (self.replacement, self.drop_last)
        self.passes = batches_per_pass(sizes, own, self.drop_last and not self.replacement)
        small = {str(label): int(n) for label, n in zip(self.labels, sizes, strict=True) if n < own}
        few = f"drop_last must be False for environments with fewer than the {own} rows of a batch"
        require(not self.pure or bool(self.passes.all()), few, small)
        cycle = visits_per_cycle(self.weights, self.labels, self.passes)
        self.visits = Visits(self.order, cycle, self.seed)
        parts = np.split(rows, np.cumsum(sizes)[:-1]) if self.pure else []
        self._streams = [RowStream(part, own, (self.seed, ROWS, number), *drawn) for number, part in enumerate(parts)]
        self._pool = None
        if pooled:
            even = self.weights == "size"
            unequal = "replacement must be True for pooled rows whose weights are not 'size'"
            require(even or self.replacement, unequal, self.replacement)
            probabilities = None if even else (cycle / sizes)[self.codes[rows]]
            self._pool = RowStream(rows, pooled, (self.seed, POOL), *drawn, probabilities)
            require(self._pool.batches > 0, f"drop_last must be False for fewer than {pooled} rows", len(rows))

    @property
    def batches_per_pass(self) -> int:
        """The batches in which every row is seen once, up to those that `drop_last` leaves out."""
        pooled = batches_per_pass(len(self.codes), self.batch_size, self.drop_last)
        return int(self.passes.sum()) if self.pure else max(1, pooled)

    def iterate(self, start: int, stride: int = 1) -> Iterator[np.ndarray]:
        """The rows of batches start, start + stride, ..."""
        for step, (environment, visit) in enumerate(self.visits.numbered(start)):
            if step % stride == 0:
                parts = [self._streams[environment].batch(visit)] if self.pure else []
                parts += [self._pool.batch(start + step)] if self._pool else []
                yield parts[0] if len(parts) == 1 else np.concatenate(parts)

    def batch(self, number: int) -> np.ndarray:
        """The rows of one batch."""
        return next(self.iterate(number))

    def smallest_batch(self) -> int:
        """The rows of the shortest batch."""
        own = min((stream.shortest for stream in self._streams), default=0)
        return own + (self._pool.shortest if self._pool else 0)

    def fingerprint(self) -> str:
        """Equal for sequences of the same labels and settings, in any process."""
        digest = blake2b(self.codes.tobytes(), digest_size=8)
        settings = (self.batch_size, self.order, self.mixing, self.replacement, self.drop_last, self.seed)
        digest.update(repr((self.labels, settings, self.visits.cycle.tolist())).encode())
        return digest.hexdigest()


def resumed_at(state: Mapping[str, Any], fingerprint: str) -> int:
    """The number of the batch at which a saved state goes on; an error if it is that of another sequence.

    Example:
        >>> resumed_at({"batches": 7, "sequence": "f0"}, "f0")
        7
    """
    require(set(state) == {"batches", "sequence"}, "state must have the keys batches and sequence", list(state))
    same = state["sequence"] == fingerprint
    require(same, "state must come from the same labels, settings and seed", "one of other batches")
    COUNT_OR_ZERO.check("batches", state["batches"])
    return state["batches"]


def _listed(labels: list, most: int = 5) -> str:
    """Labels for a message, shortened where they are many."""
    return ", ".join(repr(label) for label in labels[:most]) + (", ..." if len(labels) > most else "")
