"""Entries of a store as cells, so that experiments and comparisons share work as grids do."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic

from holdfast.sweeps.engines.remote import RefusedWorkerError, difference
from holdfast.sweeps.store.cells import FAILURE_SUFFIX, LEASE_SUFFIX, Index, Lease
from holdfast.sweeps.store.files import files_at
from holdfast.sweeps.store.leases import EXPIRES, Leases
from holdfast.sweeps.store.store import Key, Store, Value


@dataclass(frozen=True)
class EntryCells(Generic[Value]):
    """Some entries of a store, to be computed cell by cell. Picklable if the store is.

    Attributes:
        store: where they are saved.
        keys: of the entries, by the name of the cell.
        expires: seconds after which the lease of a process that is gone is free for others.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.sweeps.store.store import RECORDS
        >>> keys = {seed: Key(f"mean/{seed}", {}, ("holdfast.core.statistics",)) for seed in ("0", "1")}
        >>> cells = EntryCells(Store(Path(tempfile.mkdtemp()), RECORDS), keys)
        >>> cells.save("0", {"error": 0.25})
        >>> list(cells.missing())
        ['1']
    """

    store: Store[Value]
    keys: Mapping[str, Key]
    expires: float = EXPIRES

    def __reduce__(self) -> tuple[Any, ...]:
        """With all that decides the names of entries: a worker that has others would save where nobody looks."""
        return _reopened, (self.store, self.keys, self.expires, self.store.versions(self.keys.values()))

    def missing(self) -> Iterator[Index]:
        """The cells that are not in the store; damaged entries are deleted."""
        return (name for name, key in self.keys.items() if not self.store.has(key))

    def lease(self, index: Index) -> AbstractContextManager[Lease]:
        """Ask to compute a cell."""
        key = self._key(index)
        return Leases(files_at(self.store.folder), self.expires).take(
            self.store.stem(key) + LEASE_SUFFIX, lambda: self.store.has(key)
        )

    def save(self, index: Index, value: Value) -> None:
        """Write the result of a cell, whole or not at all."""
        key = self._key(index)
        self.store.save(key, value)
        files_at(self.store.folder).delete(self.store.stem(key) + FAILURE_SUFFIX)

    def fail(self, index: Index, reason: str) -> None:
        """Note why a cell could not be computed; the next command tries it again."""
        files_at(self.store.folder).write(self.store.stem(self._key(index)) + FAILURE_SUFFIX, reason.encode())

    def _key(self, index: Index) -> Key:
        if not isinstance(index, str):
            raise TypeError(f"the index of an entry must be its name, got {index!r}")
        if index not in self.keys:
            raise ValueError(f"index must be among {', '.join(self.keys)}, got {index!r}")
        return self.keys[index]


def _reopened(
    store: Store[Value], keys: Mapping[str, Key], expires: float, versions: Mapping[str, str]
) -> EntryCells[Value]:
    different = difference(versions, store.versions(keys.values()))
    if different:
        raise RefusedWorkerError(different)
    return EntryCells(store, keys, expires)
