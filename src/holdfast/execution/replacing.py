"""Folders of grids that may be given to another grid, because nothing was saved in them."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.execution.files import LocalFiles, files_at
from holdfast.execution.grid import GridCells
from holdfast.execution.header import CHECKSUMS, ConflictError, Header
from holdfast.execution.layout import Layout
from holdfast.execution.leases import Leases
from holdfast.execution.occupancy import WHOLE, is_occupied
from holdfast.execution.owner import owner
from holdfast.execution.zarr_format import chunk_position


def is_vacant(path: str | Path) -> bool:
    """Whether nothing is saved in a folder, perhaps because all cells failed, and no command works there.

    Nothing is written, so the clock of this machine decides whether a lease expired: `make_way` looks again. Object
    stores do not say who works there: a grid in one never is vacant.

    Example:
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/results.zarr"
        >>> cells = GridCells.at(path, Layout.of({"a": [1]}, seeds=2, most_seeds=2), identity={})
        >>> is_vacant(path)
        True
        >>> with cells.lease((0, 0)):
        ...     is_vacant(path)
        False
    """
    files = files_at(path, temporary=CHECKSUMS)
    header = Header.read(files)
    if header is None:
        return True
    if not isinstance(files, LocalFiles) or is_occupied(Leases(files), look_only=True):
        return False
    return header.variables is None and not any(map(chunk_position, files.names(CHECKSUMS)))


def make_way(path: str | Path, layout: Layout, *, identity: Mapping[str, Any], overwrite: bool = False) -> None:
    """Remove a grid that is in the way of another one, if it is vacant, or whatever it has if `overwrite`.

    Args:
        path: of the zarr group.
        layout: that of the other one.
        identity: of the other one.
        overwrite: remove results too.

    Raises:
        ConflictError: if it has to stay.

    Example:
        >>> import tempfile
        >>> path, layout = f"{tempfile.mkdtemp()}/results.zarr", Layout.of({"a": [1]}, seeds=2, most_seeds=2)
        >>> _ = GridCells.at(path, layout, identity={"program": "cube"})
        >>> make_way(path, layout, identity={"program": "square"})
        >>> GridCells.at(path, layout, identity={"program": "square"}).identity
        {'program': 'square'}
    """
    files = files_at(path, temporary=CHECKSUMS)
    with Leases(files).wait(WHOLE):  # without this lease nobody begins a grid or saves a first cell
        try:
            GridCells.planned(path, layout, identity=identity)
            return  # another command was faster
        except ConflictError as conflict:
            if not isinstance(files, LocalFiles) or not (overwrite or is_vacant(path)):
                raise
            if is_occupied(Leases(files)):
                raise ConflictError(
                    f"another command works in the folder, wait until it ends; {conflict}"
                ) from conflict
        root = os.path.realpath(files.root)
        removed = f"{root}.{owner()}"
        os.rename(root, removed)  # in one step, since half of a grid would not be recognised
        os.makedirs(root, exist_ok=True)  # links point to a folder
    shutil.rmtree(removed)
