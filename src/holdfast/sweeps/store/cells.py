"""The contract of results that are computed cell by cell: which are missing, who computes one, how it is saved."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol, TypeVar

Index = tuple[int, ...] | str
"""Which cell: its position in a grid, or its name."""

LEASE_SUFFIX, FAILURE_SUFFIX = ".lease", ".failure"
"""Of the files next to a cell that say who computes it, and why it could not be computed."""

Value = TypeVar("Value", contravariant=True)


class Lease(Enum):
    """What a process learns when it asks to compute a cell.

    Attributes:
        TAKEN: the cell is ours until the lease is released.
        BUSY: another process computes it; it is worth asking again later.
        FINISHED: another process saved it in the meantime.

    Example:
        >>> Lease.TAKEN is Lease.BUSY
        False
    """

    TAKEN = "taken"
    BUSY = "busy"
    FINISHED = "finished"


class Cells(Protocol[Value]):
    """Results that are computed cell by cell, by any number of processes.

    They are picklable, so that workers on other machines get a copy. A cell is computed by whoever holds its lease:

        with cells.lease(index) as lease:
            if lease is Lease.TAKEN:
                cells.save(index, compute(index))

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.sweeps.store.entries import EntryCells
        >>> from holdfast.sweeps.store.store import RECORDS, Key, Store
        >>> keys = {"mean": Key("mean", {"seed": 0}, ("holdfast.core.statistics",))}
        >>> cells: Cells = EntryCells(Store(Path(tempfile.mkdtemp()), RECORDS), keys)
        >>> list(cells.missing())
        ['mean']
        >>> with cells.lease("mean") as lease:
        ...     cells.save("mean", {"error": 0.25})
        >>> list(cells.missing())
        []
    """

    def missing(self) -> Iterator[Index]:
        """The cells that are not finished, and those that are damaged."""
        ...

    def lease(self, index: Index) -> AbstractContextManager[Lease]:
        """Ask to compute a cell; who gets `Lease.TAKEN` has it until the block ends, renewed in the background."""
        ...

    def save(self, index: Index, value: Value) -> None:
        """Write the result of a cell, whole or not at all."""
        ...

    def fail(self, index: Index, reason: str) -> None:
        """Note why a cell could not be computed, for people who ask; the next command tries it again."""
        ...
