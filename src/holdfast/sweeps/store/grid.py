"""A grid of results in one zarr group: every cell is written by whoever computed it, checked, and computed once."""

import contextlib
import hashlib
import json
import math
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import contains
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.store.cells import FAILURE_SUFFIX, LEASE_SUFFIX, Index, Lease
from holdfast.sweeps.store.files import Files, LocalFiles, files_at
from holdfast.sweeps.store.header import CHECKSUMS, SECONDS, ConflictError, Header, Variables
from holdfast.sweeps.store.layout import Layout, Positions
from holdfast.sweeps.store.leases import EXPIRES, Leases
from holdfast.sweeps.store.occupancy import GRID_LEASE, remove_abandoned
from holdfast.sweeps.store.zarr_format import METADATA, chunk_name, chunk_position, encode_chunk

Result = TypeVar("Result")

# Indices that are made at once, so that a command begins before it has listed a million.
_LISTED = 4096
# Requests at once to an object store, whose answers take milliseconds.
_REQUESTS = 16


@dataclass(frozen=True)
class GridCells:
    """The cells of a grid of settings times seeds, in a zarr group that xarray opens. Picklable.

    A cell is one chunk in every variable. Its last chunk is that of the array `checksum`: a checksum of the others,
    which says that the cell is finished and reveals damage. Leases and reasons of failures lie next to it, where zarr
    never looks. Chunks are renamed when complete, but not flushed to the disk one by one: after a power failure the
    checksum tells which cells were lost.

    Attributes:
        files: the folder.
        layout: of all that was ever requested in this folder; an index is a position in it.
        positions: of the values that are requested now, for each axis.
        seeds: that are requested now.
        identity: all that decides the values besides the layout.
        expires: seconds after which the lease of a process that is gone is free for others.
        damaged: cells that `missing` found not to fit their checksums.

    Example:
        >>> import tempfile
        >>> layout = Layout.of({"step_size": [0.1, 0.2]}, seeds=6, most_seeds=4)
        >>> cells = GridCells.at(Path(tempfile.mkdtemp()) / "results.zarr", layout, identity={"program": "square"})
        >>> list(cells.missing())
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        >>> for index in cells.missing():
        ...     with cells.lease(index) as lease:
        ...         if lease is Lease.TAKEN:
        ...             step_size = cells.settings(index)["step_size"]
        ...             cells.save(index, CellResult({"square": step_size * cells.block(index) ** 2}))
        >>> list(cells.missing())
        []
    """

    files: Files
    layout: Layout
    positions: tuple[Positions, ...]
    seeds: int
    identity: Mapping[str, Any]
    expires: float = EXPIRES
    damaged: list[Index] = field(default_factory=list, repr=False, compare=False)
    # The variables, with the version of the metadata that has them.
    _variables: list[tuple[object, Variables]] = field(default_factory=list, repr=False, compare=False)
    _started: dict[Index, tuple[int, float]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def at(
        cls,
        path: str | Path,
        layout: Layout,
        *,
        identity: Mapping[str, Any],
        notes: Mapping[str, Any] | None = None,
        expires: float = EXPIRES,
    ) -> "GridCells":
        """A new grid, or one that exists and is extended where this layout has more.

        Args:
            path: of the zarr group, or its URL.
            layout: what is requested; seeds per cell are those of the first layout in this folder.
            identity: all that decides the values besides the layout; a folder with another one is refused.
            notes: what is good to know about the first run, such as versions and the platform.
            expires: seconds after which the lease of a process that is gone is free for others.
        """
        cells = cls.planned(path, layout, identity=identity)  # refused before anything is written
        try:
            with Leases(cells.files, expires).wait(GRID_LEASE):
                header = _write_header(cells.files, Header.of(layout, identity, notes or {}), layout, identity)
                cells = cls._of(cells.files, header, expires)
                remove_abandoned(cells.files, Leases(cells.files, expires))
        except OSError:  # a read-only folder is fine if nothing has to be written
            if not cells.files.exists(METADATA) or cls.open(path).layout != cells.layout:
                raise
            return replace(cells, expires=expires)
        return cells

    @classmethod
    def planned(cls, path: str | Path, layout: Layout, *, identity: Mapping[str, Any]) -> "GridCells":
        """As `at` would make it; nothing is written."""
        files = files_at(path, temporary=CHECKSUMS)
        if isinstance(files, LocalFiles) and os.path.isfile(files.root):
            raise ValueError(f"the folder of the results must be a folder, got the file {str(path)!r}")
        new, found = Header.of(layout, identity, {}), Header.read(files, layout)
        names = set(files.names("")) if found is None else set()
        # whoever was killed while writing this metadata, whose last file makes it valid, left some of the others
        if names and not names <= {name.partition("/")[0] for name in new.files()}:
            others = ", ".join(sorted(names)[:3])
            raise ValueError(
                f"the folder of the results must be a new one or one of holdfast, got {str(path)!r}, which has other "
                f"files and no {METADATA} ({others}); choose another folder, or move it away"
            )
        return cls._of(files, new if found is None else found.extended(layout, identity))

    @classmethod
    def open(cls, path: str | Path) -> "GridCells":
        """A grid that exists, as it was last requested; nothing is written."""
        files = files_at(path, temporary=CHECKSUMS)
        header = Header.read(files)
        if header is None:
            raise ValueError(f"the folder must have results of holdfast in it, got {str(path)!r}")
        return cls._of(files, header)

    @classmethod
    def _of(cls, files: Files, header: Header, expires: float = EXPIRES) -> "GridCells":
        return cls(files, header.layout, header.positions, header.seeds, header.identity, expires)

    def __reduce__(self) -> tuple[Any, ...]:
        """As a folder, from which the copy reads its layout: a million points would be megabytes for each worker."""
        return _reopened, (self.files, self.positions, self.seeds, self.identity, self.expires)

    @property
    def requested(self) -> Layout:
        """The layout that was requested, in its own order; `layout` may have more."""
        return self.layout.chosen(self.positions, self.seeds)

    @property
    def has_finished_cells(self) -> bool:
        """Whether the folder has a finished cell."""
        return any(map(chunk_position, self.files.names(CHECKSUMS)))

    def settings(self, index: Index) -> dict[str, Any]:
        """The settings of a cell that its axes decide."""
        return self.layout.settings(_position(index))

    def block(self, index: Index) -> np.ndarray:
        """The seeds of a cell."""
        return self.layout.block(_position(index))

    def indices(self) -> np.ndarray:
        """All requested cells, in the order of their axes: an array of shape (..., dimensions)."""
        return np.stack(np.meshgrid(*self._positions(), indexing="ij"), axis=-1)

    def missing(self, *, verify: bool = True) -> Iterator[Index]:
        """The cells that are not finished, and then, if `verify`, those whose content does not fit their checksum.

        The first come without reading a value. To verify, all values are read, about 0.1 ms for each small cell.
        """
        self.damaged.clear()
        finished = self._finished()[np.ix_(*self._positions())]
        yield from self._indices_where(~finished)
        if verify:
            present = list(self._indices_where(finished))
            for index, content in zip(present, self._each(self.content, present), strict=True):
                if content is None:
                    self.damaged.append(index)
                    yield index

    def _positions(self) -> list[np.ndarray]:
        """Of all requested cells, along each dimension."""
        blocks = range(math.ceil(self.seeds / self.layout.seeds_per_cell))
        return [
            np.arange(len(each)) if isinstance(each, range) else np.array(each) for each in (*self.positions, blocks)
        ]

    def _indices_where(self, chosen: np.ndarray) -> Iterator[Index]:
        """The requested cells where an array of the shape of all of them is true, listed a part at a time."""
        positions, flat = self._positions(), np.flatnonzero(chosen)
        for begin in range(0, len(flat), _LISTED):
            found = np.unravel_index(flat[begin : begin + _LISTED], chosen.shape)
            indices = [each[where].tolist() for each, where in zip(positions, found, strict=True)]
            yield from zip(*indices, strict=True)

    @contextlib.contextmanager
    def lease(self, index: Index) -> Iterator[Lease]:
        """Ask to compute a cell."""
        name = chunk_name(CHECKSUMS, _position(index)) + LEASE_SUFFIX
        with Leases(self.files, self.expires).take(name, lambda: self.content(index) is not None) as lease:
            if lease is Lease.TAKEN:
                self._started[index] = threading.get_ident(), time.perf_counter()
            try:
                yield lease
            finally:
                if lease is Lease.TAKEN:
                    self._started.pop(index, None)

    def save(self, index: Index, value: CellResult) -> None:
        """Write the chunks of a cell, and its checksum last."""
        position, variables = _position(index), self._declared(value)
        checksum = self._checksum_begin(position)
        for name, variable in variables.by_name.items():
            content = encode_chunk(value.values[name], variable.kind)
            checksum = zlib.crc32(content, checksum)
            self.files.write(_chunk(name, position, len(variable.shape)), content)
        count = self.layout.seeds_per_cell
        self.files.write(chunk_name(SECONDS, position), struct.pack("<f", self._seconds(index) / count) * count)
        last = chunk_name(CHECKSUMS, position)
        self.files.write(last, _checksum_chunk(checksum, count))
        self.files.delete(last + FAILURE_SUFFIX)

    def _seconds(self, index: Index) -> float:
        """Since its lease was taken; cells that the same thread has leased, and computes together, share the time."""
        if index not in self._started:
            return math.nan
        thread, begin = self._started[index]
        sharing = sum(each == thread for each, _ in list(self._started.values()))
        return (time.perf_counter() - begin) / sharing

    def fail(self, index: Index, reason: str) -> None:
        """Note why a cell could not be computed; the next command tries it again."""
        self.files.write(chunk_name(CHECKSUMS, _position(index)) + FAILURE_SUFFIX, reason.encode())

    def failures(self) -> dict[Index, str]:
        """The requested cells that could not be computed, with the reasons."""
        names = set(self.files.names(CHECKSUMS))
        chunks = [name.removesuffix(FAILURE_SUFFIX) for name in names if name.endswith(FAILURE_SUFFIX)]
        requested = [set(positions.tolist()) for positions in self._positions()]
        failed = [
            index
            for name in chunks
            if name not in names and (index := chunk_position(name)) and all(map(contains, requested, index))
        ]
        reasons = self._each(lambda index: self.files.read(chunk_name(CHECKSUMS, index) + FAILURE_SUFFIX), failed)
        found = zip(failed, reasons, strict=True)
        return {index: reason.decode() for index, reason in found if reason is not None}

    def running(self) -> list[Index]:
        """The cells that processes compute now; unknown on object stores, which have no leases."""
        leases = Leases(self.files, self.expires)
        names = [name for name in self.files.names(CHECKSUMS) if name.endswith(LEASE_SUFFIX)]
        found = ((chunk_position(name.removesuffix(LEASE_SUFFIX)), name) for name in names)
        held = ((index, f"{CHECKSUMS}/{name}") for index, name in found if index)
        return sorted(index for index, name in held if not leases.is_free(name, look_only=True))

    def variables(self) -> Variables | None:
        """What the cells have; None before the first one is saved."""
        known = self._variables[:1]
        return known[0][1] if known else self._read_variables()

    def _current_variables(self) -> Variables | None:
        """The variables by the metadata of this moment: the grid may have been replaced, or deleted and begun anew."""
        known = self._variables[:1]
        return known[0][1] if known and known[0][0] == self.files.version(METADATA) else self._read_variables()

    def _read_variables(self) -> Variables | None:
        version = self.files.version(METADATA)  # before reading: what is written in between is read again
        found = self.header().variables
        self._variables[:] = [] if found is None else [(version, found)]
        return found

    def header(self) -> Header:
        """What the folder says about itself now."""
        return _check_same_grid(Header.read(self.files, self.layout), self.identity, self.files)

    def content(self, index: Index) -> dict[str, bytes] | None:
        """The chunks of a cell by variable; None if it is not finished or damaged."""
        position = _position(index)
        last = self.files.read(chunk_name(CHECKSUMS, position))
        variables = None if last is None else self.variables()
        if variables is None:
            return None
        checksum, found = self._checksum_begin(position), {}
        for name, variable in variables.by_name.items():
            content = self.files.read(_chunk(name, position, len(variable.shape)))
            if content is None:
                return None
            checksum, found[name] = zlib.crc32(content, checksum), content
        return found if last == _checksum_chunk(checksum, self.layout.seeds_per_cell) else None

    def _checksum_begin(self, position: tuple[int, ...]) -> int:
        """A checksum covers position, settings and identity, so that a chunk of another cell or grid is damage.

        Settings, because two commands that extend a grid on an object store at once may take the same position.
        Identity, because a command may go on in a folder that was deleted and begun anew with another program.
        """
        settings = [(name, _canonical(value)) for name, value in sorted(self.layout.settings(position).items())]
        return zlib.crc32(repr((position, settings, self._identity_digest)).encode())

    @cached_property
    def _identity_digest(self) -> str:
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]

    def contents(self, indices: Iterable[Index]) -> Iterator[dict[str, bytes] | None]:
        """The chunks of several cells, in their order."""
        return self._each(self.content, list(indices))

    def _declared(self, value: CellResult) -> Variables:
        """The variables of the grid, which the first cell decides and the others must have."""
        if value.seeds != self.layout.seeds_per_cell:
            raise ValueError(f"values must be for {self.layout.seeds_per_cell} seeds, got {value.seeds}")
        now, found = Variables.of(value), self._current_variables()
        if found is None:
            with Leases(self.files, self.expires).wait(GRID_LEASE):
                header = self.header().recover_variables(self.files)
                if header.variables is None:
                    header = header.with_variables(now)
                header.write(self.files)
            found = self._read_variables()
            assert found is not None
        found.check(now)
        return found

    def _finished(self) -> np.ndarray:
        """Which cells have a checksum, of the shape of the whole layout."""
        shape = self.layout.shape
        positions = map(chunk_position, self.files.names(CHECKSUMS))
        found = np.array([position for position in positions if position], dtype=int).reshape(-1, len(shape))
        finished = np.zeros(shape, bool)
        # another process may have extended the grid in the meantime
        finished[tuple(found[(found < shape).all(axis=1)].T)] = True
        return finished

    def _each(self, function: Callable[[Any], Result], items: list[Any]) -> Iterator[Result]:
        if isinstance(self.files, LocalFiles):
            yield from map(function, items)
            return
        with ThreadPoolExecutor(_REQUESTS) as pool:
            yield from pool.map(function, items)


def _write_header(files: Files, new: Header, layout: Layout, identity: Mapping[str, Any]) -> Header:
    """Write the metadata of a grid and read it back, until it has all requested values at the positions that we use.

    Another process may have written its own in the meantime: on an object store, or because it lost the lease.
    """
    found = Header.read(files, layout)
    while True:
        header = new if found is None else found.extended(layout, identity).recover_variables(files)
        header.write(files)
        try:
            found = Header.read(files)
        except ConflictError:  # half of it is theirs, so we write ours again
            found = header
            continue
        if found is not None:
            again = found.extended(layout, identity)
            if again.layout == found.layout and again.positions == header.positions:
                return header


def _reopened(
    files: Files, positions: tuple[Positions, ...], seeds: int, identity: Mapping[str, Any], expires: float
) -> GridCells:
    header = _check_same_grid(Header.read(files), identity, files)
    return GridCells(files, header.layout, positions, seeds, identity, expires)


def _check_same_grid(header: Header | None, identity: Mapping[str, Any], files: Files) -> Header:
    """The metadata of a folder, unless it was deleted or given to another grid since a command began."""
    if header is None or header.identity != identity:
        raise FileNotFoundError(f"the grid in {str(files)!r} was deleted, or replaced by another one")
    return header


def _position(index: Index) -> tuple[int, ...]:
    if isinstance(index, str):
        raise TypeError(f"the index of a cell of a grid must be its position, got {index!r}")
    return index


def _chunk(name: str, position: tuple[int, ...], more: int) -> str:
    """The file of a variable that has more dimensions, which a chunk covers."""
    return chunk_name(name, (*position, *(0,) * more))


def _canonical(value: Any) -> Any:
    """A setting, written alike for equal numbers: integers of an axis become floats when a float joins them."""
    return float(value) if type(value) is int and float(value) == value else value


def _checksum_chunk(checksum: int, count: int) -> bytes:
    """The chunk of the array of checksums; 0 stands for cells that are not finished."""
    return struct.pack("<I", checksum or 1) * count
