"""Passes over a table: each chunk is turned into what is found in it, and these findings are merged.

In one process the chunks come one after the other. On a Dask cluster each worker reads parts of the table and merges
what it finds in them, so that only findings travel, and a tree of merges has the order of the table. What is found does
not depend on where the table is cut, up to rounding, so both give the same answer.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.sweeps.engines.remote import (
    LostClusterError,
    RefusedWorkerError,
    Versions,
    connect,
    describe_worker,
    disconnect,
)
from holdfast.tables.frames import TableFrames
from holdfast.tables.options import Columns
from holdfast.tables.reading import PART_SPAN, TableFiles

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")

# The seed of the number that each row gets.
SEED = 0
# Findings that one merge on a worker takes: their sizes count against its memory.
MERGED_AT_ONCE = 4
# Chunks of text files stay in memory if they take no more bytes, so that they are parsed once.
MOST_KEPT = 1 << 28


class LostWorkerError(ConnectionError):
    """A part of a table ended the workers that read it, one after the other.

    Example:
        >>> raise LostWorkerError("partition 3 of the data frame could not be read")
        Traceback (most recent call last):
        holdfast.tables.passes.LostWorkerError: partition 3 of the data frame could not be read
    """


Table = TableFiles | TableFrames
"""A table that is read in chunks."""


class Passes:
    """Runs passes over a table and counts them.

    Args:
        client: of a Dask cluster, whose workers read the table; None: this process does, or whatever Dask is set to
            use if the table is a Dask data frame.

    Attributes:
        count: passes so far.

    Example, the rows of two files are counted:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.reading import open_table
        >>> folder = Path(tempfile.mkdtemp())
        >>> for number in (1, 2):
        ...     pd.DataFrame({"light": range(3)}).to_csv(folder / f"{number}.csv", index=False)
        >>> passes = Passes()
        >>> passes.reduce(open_table(folder / "*.csv"), Columns(["light"], (), 2), len, int.__add__), passes.count
        (6, 1)
    """

    def __init__(self, client: "Client | None" = None):
        self.client, self.count = client, 0
        self._kept: tuple[Table, Columns, list[pd.DataFrame]] | None = None

    def reduce(
        self,
        table: Table,
        columns: Columns,
        collect: Callable[[pd.DataFrame], Found | None],
        merge: Callable[[Found, Found], Found],
        progress: Progress | None = None,
    ) -> Found | None:
        """What all chunks hold together; None if nothing is found in any.

        Args:
            table: to be read.
            columns: of the chunks.
            collect: chunk -> what is found in it, or None.
            merge: (found, found in the rows after it) -> found in both; associative.
            progress: called with (bytes read, bytes in all), or on a cluster (parts read, parts in all).
        """
        self.count += 1
        if self.client is None and not table.on_dask:
            return _merged((collect(chunk) for chunk in self._chunks(table, columns, progress)), merge)
        step = _Step(collect, merge, columns, Versions.installed(), f"holdfast-{uuid4().hex}")
        return _on_dask(self.client, table, step, progress)

    def _chunks(self, table: Table, columns: Columns, progress: Progress | None) -> Iterator[pd.DataFrame]:
        """The chunks of a table, from memory where an earlier pass has kept them."""
        if self._kept is not None:
            before, read, kept = self._kept
            if before is table and read.covers(columns):
                unused = {*read.names} - {*columns.names}
                for chunk, report in zip(kept, stages(progress, [1] * len(kept)), strict=True):
                    yield chunk.drop(columns=list(unused)) if unused else chunk
                    report(1, 1)
                return
        chunks: list[pd.DataFrame] = []
        room = MOST_KEPT if isinstance(table, TableFiles) and table.is_text else -1
        for chunk in table.read(columns, progress):
            if room >= 0:
                room -= int(chunk.memory_usage(index=False).sum())
                chunks = [*chunks, chunk] if room >= 0 else []
            yield chunk
        self._kept = (table, columns, chunks) if room >= 0 else None


class _Step(NamedTuple):
    """What a worker needs to know; its topic is that of the events of parts that are read, of no other pass."""

    collect: Callable[[pd.DataFrame], Any]
    merge: Callable[[Any, Any], Any]
    columns: Columns
    versions: Versions
    topic: str


def _merged(findings: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    found = (one for one in findings if one is not None)
    first = next(found, None)
    return None if first is None else reduce(merge, found, first)


def _read_part(step: _Step, part: Any) -> Any:
    worker = _of_dask("get_worker")
    if worker is not None:
        step.versions.demand(Versions.installed(), describe_worker(worker))
    found = _merged((step.collect(chunk) for chunk, _ in part.read(step.columns)), step.merge)
    if worker is not None:
        worker.log_event(step.topic, 1)
    return found


def _merge_parts(step: _Step, *parts: Any) -> Any:
    return _merged(parts, step.merge)


def _on_dask(client: "Client | None", table: Table, step: _Step, progress: Progress | None) -> Any:
    """A tree over the parts, in their order."""
    import dask

    parts = table.parts(step.columns.names)
    if not parts:
        return None
    # a result of its own, so that it travels to each worker once and not with each part
    shared = dask.delayed(step, name=step.topic, traverse=False)
    read, merge = dask.delayed(_read_part, pure=False), dask.delayed(_merge_parts, pure=False)
    found = [read(shared, part) for part in parts]
    reading = {one.key: number for number, one in enumerate(found)}
    while len(found) > 1:
        found = [
            merge(shared, *found[begin : begin + MERGED_AT_ONCE]) for begin in range(0, len(found), MERGED_AT_ONCE)
        ]
    client = client or _of_dask("get_client")
    if client is None:
        return found[0].compute()
    from distributed import CancelledError, KilledWorker
    from distributed.client import FutureCancelledError

    scheduler: Any = client.scheduler
    address = scheduler.address
    try:
        with _counted(client, step.topic, len(parts), progress):
            return client.compute(found[0]).result()
    except (CancelledError, FutureCancelledError) as error:
        raise LostClusterError(f"the Dask scheduler at {address} was lost while a table was read") from error
    except KilledWorker as error:
        # a part is read by a task of ours, or of Dask, whose key is (name, partition)
        number = reading.get(error.task, error.task[-1] if isinstance(error.task, tuple) else error.task)
        part = table.part_name(number) if isinstance(number, int) else table.name
        raise LostWorkerError(
            f"{part} could not be read: {error.allowed_failures + 1} of the workers of {address} ended at it, out of "
            "memory or killed. Workers with more memory or smaller parts may help; their logs say more"
        ) from error
    except ImportError as error:
        raise RefusedWorkerError(f"a worker of {address} cannot load the work: {error}") from error


def _of_dask(name: str) -> Any:
    """The worker that this is, or the client that is active (`get_worker`, `get_client`); None if there is none."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        return getattr(distributed, name)()
    except ValueError:
        return None


@contextmanager
def _counted(client: "Client", topic: str, total: int, progress: Progress | None) -> Iterator[None]:
    """Report the parts that workers have read."""
    done = 0

    def count(_: tuple[float, Any]) -> None:
        nonlocal done
        done = min(done + 1, total)  # a part is read again if its worker is lost
        if progress is not None:
            progress(done, total)

    client.subscribe_topic(topic, count)
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)
    if progress is not None:
        progress(total, total)


@contextmanager
def passes_on(dask: "str | Client | None" = None) -> Iterator[Passes]:
    """Passes in this process, or on the workers of a Dask cluster.

    Args:
        dask: the address of a scheduler, such as tcp://10.0.0.1:8786, the file that `dask scheduler --scheduler-file`
            writes, or a `distributed.Client`; None: this process.

    Raises:
        LostClusterError: if there is no scheduler.
        ValueError: if this cannot be an address.

    Example:
        >>> with passes_on() as passes:
        ...     print(passes.count)
        0
    """
    if dask is None:
        yield Passes()
    elif isinstance(dask, str) and (not dask or Path(dask).is_dir()):
        raise ValueError(
            f"dask must be the address of a scheduler, such as tcp://10.0.0.1:8786, or its scheduler file, got {dask!r}"
        )
    elif isinstance(dask, str):
        client = connect(dask)
        try:
            yield Passes(client)
        finally:
            disconnect(client)
    else:
        yield Passes(dask)


def row_counts(chunk: pd.DataFrame) -> Counter[int]:
    """The file or the partition of a chunk -> its rows in the chunk; nothing of no rows.

    Example, of the second partition:
        >>> row_counts(pd.DataFrame({"light": [1.0, 2.0]}, index=[PART_SPAN, PART_SPAN + 1]))
        Counter({1: 2})
    """
    return Counter({int(chunk.index[0]) // PART_SPAN: len(chunk)}) if len(chunk) else Counter()


def row_numbers(rows: np.ndarray) -> np.ndarray:
    """A number between 0 and 1 for each row, of its position alone: what `default_rng(0).random` draws at it.

    Args:
        rows: (rows,), positions in increasing order.

    Example:
        >>> bool(row_numbers(np.array([3, 7]))[1] == np.random.default_rng(0).random(8)[7])
        True
    """
    if len(rows) == 0:
        return np.empty(0)
    begin = np.random.PCG64(SEED).advance(int(rows[0]))
    drawn = np.random.Generator(begin).random(int(rows[-1] - rows[0]) + 1)
    return drawn if len(drawn) == len(rows) else drawn[rows - rows[0]]


def smallest(numbers: np.ndarray, most: int) -> np.ndarray:
    """The positions of so many of the smallest numbers, in increasing order.

    Example:
        >>> smallest(np.array([0.3, 0.1, 0.2]), 2).tolist()
        [1, 2]
    """
    if len(numbers) <= most or most == 0:
        return np.arange(min(len(numbers), most))
    # numbers between 0 and 1: twice as many as are wanted lie below this level, and only these have to be compared
    likely = np.flatnonzero(numbers < 2 * most / len(numbers))
    if len(likely) < most:
        likely = np.arange(len(numbers))
    return np.sort(likely[np.argpartition(numbers[likely], most - 1)[:most]])


class RowSample(NamedTuple):
    """So many rows of a table, drawn at random: those whose `row_numbers` are the smallest.

    Samples of chunks add up to the sample of the table, and it does not matter how the table was cut. What is sampled
    are arrays with one entry for each row.

    Attributes:
        most: rows in the sample.
        pieces: (numbers, *arrays) of chunks, with the rows of the sample among them.

    Example:
        >>> parts = [np.arange(begin, begin + 30) for begin in (0, 30, 60)]
        >>> first, second, third = (sample_rows(part, [part], most=5) for part in parts)
        >>> one, other = first.merge(second).merge(third), first.merge(second.merge(third))
        >>> one.arrays[0].tolist() == other.arrays[0].tolist() == sample_rows(np.arange(90), [np.arange(90)], 5).arrays[
        ...     0
        ... ].tolist()
        True
    """

    most: int
    pieces: tuple[tuple[np.ndarray, ...], ...]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What was sampled, in the order of the table."""
        return self._cut().pieces[0][1:]

    def map(self, function: Callable[..., tuple[np.ndarray, ...]]) -> "RowSample":
        """The same rows with other arrays: function(*arrays)."""
        return RowSample(self.most, tuple((numbers, *function(*arrays)) for numbers, *arrays in self.pieces))

    def merge(self, other: "RowSample") -> "RowSample":
        """The sample of these rows and of the ones after them."""
        both = RowSample(self.most, (*self.pieces, *other.pieces))
        # cut now and then: cutting at every chunk would sort the sample as often
        return both._cut() if sum(len(piece[0]) for piece in both.pieces) > 2 * self.most else both

    def _cut(self) -> "RowSample":
        parts = [np.concatenate(part) for part in zip(*self.pieces, strict=True)]
        chosen = smallest(parts[0], self.most)
        return RowSample(self.most, (tuple(part[chosen] for part in parts),))


def sample_rows(rows: np.ndarray, arrays: Sequence[np.ndarray], most: int) -> RowSample:
    """The sample of one chunk.

    Args:
        rows: (rows,), their positions in the table, increasing.
        arrays: what is sampled, each with one entry for each row.
        most: rows in the sample.

    Example:
        >>> sample_rows(np.arange(3), [np.array([2.5, 3.5, 4.5])], most=5).arrays[0].tolist()
        [2.5, 3.5, 4.5]
    """
    numbers = row_numbers(rows)
    chosen = smallest(numbers, most)
    return RowSample(most, ((numbers[chosen], *(np.asarray(array)[chosen] for array in arrays)),))
