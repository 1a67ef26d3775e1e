"""Passes over a table: each chunk is turned into what is found in it, and these findings are merged.

In one process the chunks come one after the other. On a Dask cluster each worker reads parts of the table and merges
what it finds in them, so that only findings travel, and a tree of merges has the order of the table. What is found does
not depend on where the table is cut, up to rounding, so both give the same answer.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar
from uuid import uuid4

import pandas as pd

from holdfast.core.progress import Progress
from holdfast.sweeps.engines.clusters import LostClusterError, connect, describe_worker, disconnect
from holdfast.sweeps.engines.remote import RefusedWorkerError, Versions

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")

# Findings that one merge on a worker takes: their sizes count against its memory.
MERGED_AT_ONCE = 4


class LostWorkerError(ConnectionError):
    """A part of a table ended the workers that read it, one after the other.

    Example:
        >>> raise LostWorkerError("partition 3 of the data frame could not be read")
        Traceback (most recent call last):
        holdfast.tables.passes.LostWorkerError: partition 3 of the data frame could not be read
    """


class TablePart(Protocol):
    """A part of a table that a worker reads: a file, a range of row groups, a partition; picklable."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    def chunks(self, rows: int, text: Collection[str], columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Its rows in chunks, whose index has the positions of the rows in the table."""
        ...


class ChunkedRows(Protocol):
    """A table that is read in chunks, `TableFiles` or `TableFrames`."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        ...

    @property
    def unusable(self) -> dict[str, str]:
        """Columns that hold no single values -> what they hold instead."""
        ...

    @property
    def decimal(self) -> Literal[".", ","]:
        """The decimal sign of numbers that are written as text."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """How it was read, if in an unusual way."""
        ...

    @property
    def on_dask(self) -> bool:
        """Whether its parts are results of Dask."""
        ...

    def counted(self, lengths: Mapping[int, int]) -> Self:
        """The same table, given file or partition -> its rows."""
        ...

    def chunks(
        self, rows: int, text: Collection[str], columns: Collection[str] | None, progress: Progress | None
    ) -> Iterator[pd.DataFrame]:
        """All rows, one chunk after the other."""
        ...

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """With these columns, each a `TablePart`, or a result of Dask that is one."""
        ...


class Columns(NamedTuple):
    """What a pass reads of a table.

    Attributes:
        names: of the columns.
        text: those to be read as text.
        rows: in a chunk.
    """

    names: Sequence[str]
    text: Collection[str]
    rows: int


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

    def reduce(
        self,
        table: ChunkedRows,
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
            chunks = table.chunks(columns.rows, columns.text, columns.names, progress)
            return _merged((collect(chunk) for chunk in chunks), merge)
        step = _Step(collect, merge, columns, Versions.installed(), f"holdfast-{uuid4().hex}")
        return _on_dask(self.client, table, step, progress)


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


def _read_part(step: _Step, part: TablePart) -> Any:
    worker = _worker()
    if worker is not None:
        step.versions.demand(Versions.installed(), describe_worker(worker))
    names, text, rows = step.columns
    found = _merged((step.collect(chunk) for chunk in part.chunks(rows, text, names)), step.merge)
    if worker is not None:
        worker.log_event(step.topic, 1)
    return found


def _merge_parts(step: _Step, *parts: Any) -> Any:
    return _merged(parts, step.merge)


def _worker() -> Any:
    """The worker of a cluster that this is; None in one process, which may have the threads of Dask."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def _on_dask(client: "Client | None", table: ChunkedRows, step: _Step, progress: Progress | None) -> Any:
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
    client = client or _current_client()
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
        part = _part_name(table, parts, reading.get(error.task, error.task))
        raise LostWorkerError(
            f"{part} could not be read: {error.allowed_failures + 1} of the workers of {address} ended at it, out of "
            "memory or killed. Workers with more memory or smaller parts may help; their logs say more"
        ) from error
    except ImportError as error:
        raise RefusedWorkerError(f"a worker of {address} cannot load the work: {error}") from error


def _part_name(table: ChunkedRows, parts: Sequence[Any], task: Any) -> str:
    """What a task has to do with: the number of a part, or the key of a task of Dask, (name, partition) in a frame."""
    number = task[-1] if isinstance(task, tuple) else task
    if not isinstance(number, int):
        return table.name
    return f"partition {number} of {table.name}" if table.on_dask else parts[number].name


def _current_client() -> "Client | None":
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
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
