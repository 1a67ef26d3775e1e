"""Who works in the folder of a grid, what killed processes left there, and when another grid may take its place."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.owner import is_gone, owner, owner_of
from holdfast.core.writing import temporary_path
from holdfast.sweeps.store.cells import FAILURE_SUFFIX, LEASE_SUFFIX
from holdfast.sweeps.store.files import Files, LocalFiles, files_at
from holdfast.sweeps.store.header import CHECKSUMS, ConflictError, Header
from holdfast.sweeps.store.layout import Layout
from holdfast.sweeps.store.leases import Leases
from holdfast.sweeps.store.zarr_format import chunk_position

GRID_LEASE = f"{CHECKSUMS}/grid{LEASE_SUFFIX}"
"""The lease on the metadata of the whole grid."""


@contextlib.contextmanager
def occupied(leases: Leases) -> Iterator[None]:
    """Say in the folder that a command works there, also while it computes no cell.

    Example:
        >>> import tempfile
        >>> leases = Leases(files_at(tempfile.mkdtemp()))
        >>> with occupied(leases):
        ...     is_occupied(leases)
        True
        >>> is_occupied(leases)
        False
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # a folder that is read-only is not replaced either
            held.enter_context(leases.take(f"{CHECKSUMS}/{owner()}-{threading.get_ident()}{LEASE_SUFFIX}"))
        yield


def is_occupied(leases: Leases, *, look_only: bool = False) -> bool:
    """Whether a command works in the folder; object stores do not say. `look_only` is that of `Leases.is_free`."""
    names = (f"{CHECKSUMS}/{name}" for name in leases.files.names(CHECKSUMS) if name.endswith(LEASE_SUFFIX))
    return any(not leases.is_free(name, look_only=look_only) for name in names if name != GRID_LEASE)


def remove_abandoned(files: Files, leases: Leases) -> None:
    """Delete what killed processes left behind: temporary files, and leases that nobody renews."""
    if not isinstance(files, LocalFiles):
        return
    names = set(files.names(CHECKSUMS))
    for name in names:
        path, cell = f"{CHECKSUMS}/{name}", name.rpartition(".")[0]
        process = owner_of(name)
        if process is not None:
            abandoned = is_gone(process) or (files.age(path) or 0) > leases.expires
        elif name.endswith(LEASE_SUFFIX) and not chunk_position(cell):  # of a command
            abandoned = path != GRID_LEASE and leases.is_free(path)
        else:
            abandoned = name.endswith((LEASE_SUFFIX, FAILURE_SUFFIX)) and cell in names and leases.is_free(path)
        if abandoned:
            files.delete(path)


def is_replaceable(path: str | Path) -> bool:
    """Whether another grid may have the folder: nothing was saved in it, and no command works there.

    Nothing is written, so the clock of this machine decides whether a lease expired; `replace_grid` looks again. Object
    stores do not say who works there: a grid in one is never replaced.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store.grid import GridCells
        >>> path = f"{tempfile.mkdtemp()}/results.zarr"
        >>> cells = GridCells.at(path, Layout.of({"a": [1]}, seeds=2, most_seeds=2), identity={})
        >>> is_replaceable(path)
        True
        >>> with cells.lease((0, 0)):
        ...     is_replaceable(path)
        False
    """
    files = files_at(path, temporary=CHECKSUMS)
    header = Header.read(files)
    if header is None:
        return True
    if not isinstance(files, LocalFiles) or is_occupied(Leases(files), look_only=True):
        return False
    return _has_no_results(files, header)


def replace_grid(path: str | Path, layout: Layout, *, identity: Mapping[str, Any], overwrite: bool = False) -> None:
    """Remove a grid that is in the way of another one, if it has no results, or whatever it has if `overwrite`.

    Args:
        path: of the zarr group.
        layout: that of the other one.
        identity: of the other one.
        overwrite: remove results too.

    Raises:
        ConflictError: if it has to stay, because of its results or because a command works there.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store.grid import GridCells
        >>> path, layout = f"{tempfile.mkdtemp()}/results.zarr", Layout.of({"a": [1]}, seeds=2, most_seeds=2)
        >>> _ = GridCells.at(path, layout, identity={"program": "cube"})
        >>> replace_grid(path, layout, identity={"program": "square"})
        >>> GridCells.at(path, layout, identity={"program": "square"}).identity
        {'program': 'square'}
    """
    files = files_at(path, temporary=CHECKSUMS)
    if not isinstance(files, LocalFiles):
        _check_fits(files, layout, identity)
        return
    root = Path(os.path.realpath(files.root))
    # without the lease nobody begins a grid or saves a first cell
    with temporary_path(root.parent) as removed, Leases(files).wait(GRID_LEASE):
        try:
            _check_fits(files, layout, identity)
            return  # another command was faster
        except ConflictError as conflict:
            if is_occupied(Leases(files)):
                raise ConflictError(
                    f"another command works in the folder, wait until it ends; {conflict}"
                ) from conflict
            if not overwrite and not _has_no_results(files, Header.read(files)):
                raise
        os.rename(root, removed)  # in one step, since half of a grid would not be recognised
        root.mkdir(exist_ok=True)  # links point to a folder


def _check_fits(files: Files, layout: Layout, identity: Mapping[str, Any]) -> None:
    """Raise an error if the folder has a grid that cannot be extended by what is requested."""
    header = Header.read(files, layout)
    if header is not None:
        header.extended(layout, identity)


def _has_no_results(files: Files, header: Header | None) -> bool:
    if header is not None and header.variables is not None:
        return False
    return not any(map(chunk_position, files.names(CHECKSUMS)))
