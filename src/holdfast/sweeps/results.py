"""The result of a sweep in its folder: where it lies, and as one data set."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.core.addresses import is_address
from holdfast.core.validation import require
from holdfast.sweeps.recording import FAILED, SEED_DIMENSION, merges_seeds
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.zarr_format import METADATA

if TYPE_CHECKING:
    import xarray as xr

RESULTS, SUFFIX = "results.zarr", ".zarr"
"""The result inside of the folder of a sweep, and what names of zarr groups end in."""


def results_path(folder: str | Path) -> str:
    """The zarr group in the folder of a sweep, or the group itself where it is given.

    Example:
        >>> results_path("phase"), results_path("s3://bucket/phase/"), results_path("runs.zarr")
        ('phase/results.zarr', 's3://bucket/phase/results.zarr', 'runs.zarr')
    """
    text = os.fspath(folder).rstrip("/")
    require(bool(text), "out must be a folder for the result", repr(os.fspath(folder)))
    return text if text.lower().endswith(SUFFIX) else f"{text}/{RESULTS}"


def existing_results(folder: str | Path) -> str:
    """As `results_path`, for a sweep that must be there; that of a URL is not looked for.

    Example:
        >>> existing_results("phase")
        Traceback (most recent call last):
        ValueError: the folder of the sweep must exist, got 'phase'
    """
    path = results_path(folder)
    if not is_address(path) and not Path(path, METADATA).is_file():
        require(Path(folder).exists(), "the folder of the sweep must exist", repr(os.fspath(folder)))
        raise ValueError(f"the folder must be that of a sweep, with {RESULTS} in it, got {os.fspath(folder)!r}")
    return path


def open_sweep(folder: str | Path) -> "xr.Dataset":
    """The result of a sweep, verified by checksums: NaN, and False in `finished`, where a cell is not finished yet.

    If cells failed, `cell_failed` says which.

    Args:
        folder: of the sweep, or its URL.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10, "seed": 7}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> open_sweep(folder)["spurious"].seed.values.tolist()
        [7, 8]
    """
    return read_results(GridCells.open(existing_results(folder)))


def read_results(cells: GridCells) -> "xr.Dataset":
    """The cells of a sweep as one data set, with the seeds that they were computed for.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import prepare, run_sweep
        >>> from holdfast.sweeps.specification import specify
        >>> folder, chosen = tempfile.mkdtemp(), specify({"dimension": 10, "steps": 10}, {"bias": [0.0]}, seeds=2)
        >>> _ = run_sweep(chosen, folder)
        >>> read_results(prepare(chosen, folder))["spurious"].dims
        ('bias', 'seed')
    """
    from holdfast.sweeps.store.grid_dataset import read_cells

    data = _with_failures(cells, read_cells(cells))
    if merges_seeds(data.attrs.get("record")):
        return data.isel({SEED_DIMENSION: 0}, drop=True)
    return data.assign_coords({SEED_DIMENSION: data[SEED_DIMENSION] + data.attrs.get("seed", 0)})


def _with_failures(cells: GridCells, data: "xr.Dataset") -> "xr.Dataset":
    """With `cell_failed`, if a cell failed and was not computed since."""
    finished = data["finished"]
    failures = set() if bool(finished.all()) else set(cells.failures())
    if not failures:
        return data
    indices = cells.indices()
    failed = np.array([tuple(index) in failures for index in indices.reshape(-1, indices.shape[-1]).tolist()])
    of_seeds = np.repeat(failed.reshape(indices.shape[:-1]), cells.requested.seeds_per_cell, axis=-1)
    of_seeds = of_seeds[..., : finished.shape[-1]] & ~finished.values
    return data.assign({FAILED: (finished.dims, of_seeds, {"long_name": "whether the cell failed"})})
