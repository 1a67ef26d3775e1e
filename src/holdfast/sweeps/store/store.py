"""Results in a folder, one file each, so that nothing is computed twice: found by settings, seeds and code."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.core.owner import is_gone, owner_of
from holdfast.core.writing import temporary_path
from holdfast.sweeps.store.files import Files, LocalFiles, files_at
from holdfast.sweeps.store.leases import EXPIRES, LEASE_SUFFIX, Lease, Leases
from holdfast.sweeps.store.naming import Cell, computed_by
from holdfast.sweeps.store.packing import Codec, Packed, is_intact, pack, unpack

Value = TypeVar("Value")

# The folder of results that can be loaded again, inside the folder of what people read. It can be deleted at any time.
FOLDER = ".computed"
LOST = "its result was deleted in the meantime, perhaps by a run of other code; the same command computes it again"
"""Why a result is not there although it was computed."""
FAILURE_SUFFIX = ".failure"
# The folder with a note of each way in which cells were computed.
_WAYS = "computed-by"
# Requests at once to an object store, whose answers take milliseconds.
_REQUESTS = 16


class Saved(NamedTuple):
    """A result that was read.

    Attributes:
        value: what was saved.
        seconds: of its computation.
        computed_by: machine code, instruction set and version of jax, see `computed_by`.
    """

    value: Any
    seconds: float
    computed_by: str


@dataclass(frozen=True)
class Store(Generic[Value]):
    """Results of one kind in a folder or behind a URL, computed by any number of processes. Picklable.

    A result is one file, named by the hash of its settings and by its code, with a checksum that reveals damage. It is
    written under a temporary name and renamed, so that a process that is killed leaves nothing that looks like a
    result, but not flushed to the disk: after a power failure the checksum tells which ones were lost. Next to it lie
    leases and the reasons of failures.

    Attributes:
        folder: made when something is saved.
        codec: the kind of the results.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store import RECORDS, Cell, Key
        >>> store = Store(tempfile.mkdtemp(), RECORDS)
        >>> file = Key("test/method/0", {"seeds": 3}, ("holdfast.core.statistics",), ("numpy",)).file
        >>> list(store.missing([Cell(file, "test")]))
        [Cell(name='...', label='test')]
        >>> with store.lease(file) as lease:
        ...     if lease is Lease.TAKEN:
        ...         store.save(file, {"error": 0.25})
        >>> store.load(file), list(store.missing([Cell(file, "test")]))
        ({'error': 0.25}, [])
    """

    folder: str | Path
    codec: Codec[Value]

    @cached_property
    def files(self) -> Files:
        """The files of the folder."""
        return files_at(self.folder)

    @cached_property
    def leases(self) -> Leases:
        """The leases in the folder."""
        return Leases(self.files)

    def path(self, name: str) -> str:
        """Where a result lies in the folder."""
        return f"{name[:2]}/{name}"

    def finished(self) -> set[str]:
        """The names of all results, without reading them."""
        return {name for name in (path.rpartition("/")[2] for path in self.files.walk()) if is_result(name)}

    def missing(self, cells: Iterable[Cell], *, verify: bool = True) -> Iterator[Cell]:
        """The cells without a result, and then, if `verify`, those whose files are damaged.

        To verify, all results are read, some hundredths of a millisecond for each small cell.

        Args:
            cells: a sequence or the like, which is gone through twice.
            verify: look for damage.
        """
        finished = self.finished()
        yield from (cell for cell in cells if cell.name not in finished)
        if verify:
            present = (cell for cell in cells if cell.name in finished)
            for cell, intact in self._each(self.has, present):
                if not intact:
                    yield cell

    def has(self, name: str) -> bool:
        """Whether a result is saved and intact."""
        return is_intact(name, self.files.read(self.path(name)))

    def load(self, name: str) -> Value | None:
        """A result; None if it is not there, or damaged."""
        saved = self.read(name)
        return None if saved is None else saved.value

    def read(self, name: str) -> Saved | None:
        """A result with what is noted beside it."""
        packed = unpack(name, self.files.read(self.path(name)))
        if packed is None:
            return None
        return Saved(self.codec.decode(Packed(packed.head["value"], packed.arrays)), *packed.head["about"])

    def read_all(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Saved | None]]:
        """Each cell with its result."""
        return self._each(self.read, cells)

    def save(self, name: str, value: Value, seconds: float = float("nan")) -> None:
        """Write a result, whole or not at all.

        Raises:
            ValueError: if the value cannot be written, or changes when it is written and read.
        """
        try:
            packed = self.codec.encode(value)
            content = pack(name, Packed({"value": packed.head, "about": [seconds, computed_by()]}, packed.arrays))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the result must have a form on disk, which this has not: {error}") from error
        if self.codec.equal is not None:
            again = unpack(name, content)
            assert again is not None
            read = self.codec.decode(Packed(again.head["value"], again.arrays))
            if not self.codec.equal(read, value):
                raise ValueError("the result must be the same after writing and reading, which this is not")
        self._note_way()
        self.files.write(self.path(name), content)
        self.files.delete(self.path(name) + FAILURE_SUFFIX)

    def lease(self, name: str) -> AbstractContextManager[Lease]:
        """Ask to compute a cell; with `Lease.TAKEN` it is ours until the block ends, renewed in the background."""
        return self.leases.take(self.path(name) + LEASE_SUFFIX, lambda: self.has(name))

    def fail(self, name: str, reason: str) -> None:
        """Note why a cell could not be computed; the next command tries it again."""
        self.files.write(self.path(name) + FAILURE_SUFFIX, reason.encode())

    def failures(self) -> dict[str, str]:
        """The names of the cells that could not be computed, with the reasons."""
        found = {}
        for path in list(self.files.walk()):
            reason = self.files.read(path) if path.endswith(FAILURE_SUFFIX) else None
            if reason is not None:
                found[path.rpartition("/")[2].removesuffix(FAILURE_SUFFIX)] = reason.decode()
        return found

    def running(self) -> list[str]:
        """The process of each cell that is computed now; unknown on object stores, which have no leases."""
        held = [path for path in self.files.walk() if path.endswith(LEASE_SUFFIX)]
        processes = (self.files.read(path) for path in held if not self.leases.is_free(path, look_only=True))
        return [process.decode(errors="replace") for process in processes if process]

    def tidy(self) -> None:
        """Delete what killed processes left behind: temporary files, and leases that nobody renews."""
        if isinstance(self.files, LocalFiles):
            for path in list(self.files.walk()):
                process = _owner(path)
                abandoned = process is not None and (is_gone(process) or (self.files.age(path) or 0) > EXPIRES)
                if abandoned or (path.endswith(LEASE_SUFFIX) and self.leases.is_free(path)):
                    self.files.delete(path)

    def prune(self, code: str) -> int:
        """Delete the results and notes of all other code; returns the number of results."""
        others = [path for path in self.files.walk() if "-" in path and code not in path and _owner(path) is None]
        others = [path for path in others if not path.startswith(_WAYS)]
        for path in others:
            self.files.delete(path)
        return sum(is_result(path.rpartition("/")[2]) for path in others)

    def replace_others(self, name: str) -> None:
        """Delete what other code computed or noted for the same settings."""
        settings = name.partition("-")[0]
        shard = files_at(f"{self.files}/{name[:2]}")
        for other in list(shard.walk()):
            if other.startswith(settings) and not other.startswith(name):
                shard.delete(other)

    def ways(self) -> list[str]:
        """What computed the cells of the folder: more than one item if they may differ in their last digits."""
        names = [path for path in self.files.walk() if path.startswith(f"{_WAYS}/")]
        return sorted(content.decode() for content in map(self.files.read, names) if content)

    @contextlib.contextmanager
    def scratch(self) -> Iterator["Store[Value]"]:
        """A store for results that the next call must not find, since nobody can say which code decides them.

        It lies in the folder of this one, so that workers on other machines see it too, and is deleted at the end.
        """
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_path(folder) as temporary:
            temporary.mkdir()
            yield Store(temporary, self.codec)

    def _note_way(self) -> None:
        noted, way = _NOTED.setdefault(str(self.files), set()), computed_by()
        if way not in noted:
            self.files.write(f"{_WAYS}/{hashlib.sha256(way.encode()).hexdigest()[:16]}", way.encode())
            noted.add(way)

    def _each(self, function: Callable[[str], Any], cells: Iterable[Cell]) -> Iterator[tuple[Cell, Any]]:
        if isinstance(self.files, LocalFiles):
            yield from ((cell, function(cell.name)) for cell in cells)
            return
        with ThreadPoolExecutor(_REQUESTS) as pool:
            yield from pool.map(lambda cell: (cell, function(cell.name)), cells)


_NOTED: dict[str, set[str]] = {}


def _owner(path: str) -> str | None:
    """The process of a temporary file, or of a file in a temporary folder."""
    return next(filter(None, map(owner_of, path.split("/"))), None)


def is_result(name: str) -> bool:
    """Whether a file of this name is a result, and no note."""
    return len(name) == 49 and name[32] == "-"
