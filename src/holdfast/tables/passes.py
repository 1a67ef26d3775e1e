"""Passes over a table: each chunk is turned into what is found in it, and these findings are merged.

In one process the chunks come one after the other. On a Dask cluster each worker reads parts of the table and merges
what it finds in them, so that only findings travel, and a tree of merges has the order of the table. What is found does
not depend on where the table is cut, up to rounding, so both give the same answer.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.sweeps.engines.clusters import LostClusterError, connect, describe_worker, disconnect
from holdfast.sweeps.engines.remote import RefusedWorkerError, Versions
from holdfast.tables.frames import TableFrames
from holdfast.tables.options import Columns
from holdfast.tables.reading import TableFiles

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")

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
        for chunk in table.chunks(columns.rows, columns.text, columns.names, progress):
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
