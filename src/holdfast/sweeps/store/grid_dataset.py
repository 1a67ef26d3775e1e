"""A grid of results as a labelled data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.header import SECONDS, Variables
from holdfast.sweeps.store.zarr_format import TEXT, chunk_name, decode_chunk, fill_value

if TYPE_CHECKING:
    import xarray as xr


def open_grid(path: str | Path, variables: Sequence[str] | None = None) -> "xr.Dataset":
    """The results in a folder, in the order in which they were last requested, each cell verified by its checksum.

    What is not finished, or damaged, is NaN, the smallest integer, False or an empty string, and `finished` is False in
    it. The folder is a zarr group, which `xarray.open_zarr` opens too: lazily, with everything that was ever requested
    in order of arrival, and without verifying anything.

    Args:
        path: of the zarr group, or its URL.
        variables: names of those to load; all by default. The others are read too, to verify the cells.

    Example:
        >>> import tempfile
        >>> from holdfast.core import CellResult
        >>> from holdfast.sweeps.store import Layout
        >>> path = Path(tempfile.mkdtemp()) / "results.zarr"
        >>> layout = Layout.of({"step_size": [0.1, 0.2]}, seeds=3, most_seeds=3)
        >>> cells = GridCells.at(path, layout, identity={"program": "square"})
        >>> cells.save((1, 0), CellResult({"square": cells.block((1, 0)) ** 2}, meanings={"square": "seed squared"}))
        >>> data = open_grid(path)
        >>> data["square"].sel(step_size=0.2).values, data["finished"].any("seed").values
        (array([0, 1, 4]), array([False,  True]))
    """
    return read_cells(GridCells.open(path), variables)


def read_cells(cells: GridCells, variables: Sequence[str] | None = None) -> "xr.Dataset":
    """The results of cells, as they were requested, whatever another command requested in the folder since.

    Args:
        cells: of a grid that exists.
        variables: as of `open_grid`.
    """
    import xarray as xr

    header = cells.header()
    known, requested = cells.variables() or Variables({}, {}), cells.requested
    chosen = list(known.by_name) if variables is None else list(variables)
    for name in chosen:
        if name not in known.by_name:
            raise ValueError(f"variables must be among {', '.join(known.by_name)}, got {name!r}")
    arrays = {
        name: _empty(known.by_name[name].kind, (*requested.points, *known.by_name[name].shape)) for name in chosen
    }
    finished, seconds = np.zeros(requested.points, bool), _empty("float32", requested.points)
    block = requested.seeds_per_cell
    indices = [tuple(index) for index in cells.indices().reshape(-1, len(requested.shape)).tolist()]
    for target, index, content in zip(np.ndindex(*requested.shape), indices, cells.contents(indices), strict=True):
        if content is None:
            continue
        where = (*target[:-1], slice(target[-1] * block, (target[-1] + 1) * block))
        count = min(block, requested.seeds - target[-1] * block)
        finished[where] = True
        for name, array in arrays.items():
            variable = known.by_name[name]
            array[where] = decode_chunk(content[name], variable.kind, (block, *variable.shape))[:count]
        seconds[where] = _seconds(cells, index, block)[:count]
    dimensions = requested.dimensions
    data = xr.Dataset(attrs={**header.identity, **header.notes})
    for axis in requested.axes:
        data = data.assign_coords({name: (axis.name, _labels(values)) for name, values in axis.coordinates.items()})
    data = data.assign_coords(seed=np.arange(requested.seeds))
    own = {name: (name, _labels(values)) for name, values in known.coordinates.items()}
    used = {each for name in chosen for each in known.by_name[name].dimensions}
    data = data.assign_coords({name: values for name, values in own.items() if name in used})
    for name, array in arrays.items():
        variable = known.by_name[name]
        data[name] = ((*dimensions, *variable.dimensions), array, {"long_name": variable.meaning or name})
    data[SECONDS] = (dimensions, seconds, {"long_name": "computing time (s)"})
    data["finished"] = (dimensions, finished, {"long_name": "whether the cell is finished and intact"})
    return data


def _empty(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, fill_value(kind), dtype=object if kind == TEXT else kind)


def _labels(values: Sequence[object]) -> np.ndarray:
    """Text as objects, which zarr writes without a warning."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def _seconds(cells: GridCells, index: tuple[int, ...], block: int) -> np.ndarray:
    """Not covered by the checksum, since they differ from run to run."""
    content = cells.files.read(chunk_name(SECONDS, index))
    if content is None or len(content) != 4 * block:
        return np.full(block, np.nan, np.float32)
    return decode_chunk(content, "float32", (block,))
