"""The result of a sweep in its folder: what was requested, the cells, and all of it as one data set."""

import hashlib
import json
import os
import platform
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import __version__
from holdfast.core.addresses import is_address
from holdfast.core.cell_result import CellResult
from holdfast.core.progress import counted
from holdfast.core.validation import require
from holdfast.core.writing import check_output_folder, replacing
from holdfast.sweeps.cells import SweepCells, runs_of_a_cell
from holdfast.sweeps.cost import checked_size
from holdfast.sweeps.designs import Axis
from holdfast.sweeps.programs import FAILED, FINISHED, SECONDS, SEED_DIMENSION, check_form, merges_seeds, program_of
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.files import files_at
from holdfast.sweeps.store.leases import LEASE_SUFFIX
from holdfast.sweeps.store.packing import CELLS, Packed, pack, unpack
from holdfast.sweeps.store.store import Store

if TYPE_CHECKING:
    import xarray as xr


RESULTS, SUFFIX = "results.zarr", ".zarr"
"""The result inside of the folder of a sweep, and what names of zarr groups end in."""
REQUEST = "request"
"""The file that says what was requested, next to the cells."""
STATE = "cells"
"""The attribute of the zarr group that says which cells it has."""
# A larger result is exported in parts of about this many bytes, along its first axis.
_PART = 2**28


class ConflictError(ValueError):
    """A folder has something else than what is requested, which would be right by itself.

    Example:
        >>> raise ConflictError("program must be 'square' as in the folder (choose another folder), got 'cube'")
        Traceback (most recent call last):
        holdfast.sweeps.results.ConflictError: program must be 'square' ...
    """


def results_path(folder: str | Path) -> str:
    """The zarr group in the folder of a sweep, or the group itself where it is given.

    Example:
        >>> results_path("phase"), results_path("s3://bucket/phase/"), results_path("runs.zarr")
        ('phase/results.zarr', 's3://bucket/phase/results.zarr', 'runs.zarr')
    """
    text = os.fspath(folder).rstrip("/")
    require(bool(text), "out must be a folder for the result", repr(os.fspath(folder)))
    return text if text.lower().endswith(SUFFIX) else f"{text}/{RESULTS}"


def store_at(folder: str | Path) -> Store[CellResult]:
    """The cells of a sweep: beside its zarr group.

    Example:
        >>> store_at("phase").folder, store_at("phase/results.zarr").folder, store_at("runs.zarr").folder
        ('phase/cells', 'phase/cells', 'runs.cells')
    """
    path = results_path(folder)
    place, _, name = path.rpartition("/")
    if name == RESULTS:
        return Store(f"{place}/cells" if place else "cells", CELLS)
    return Store(f"{path[: -len(SUFFIX)]}.cells", CELLS)


def write_request(store: Store[CellResult], cells: SweepCells) -> None:
    """Note in the folder what is requested, unless it says so already."""
    sweep = cells.sweep
    columns = {name: np.array(each) for axis in sweep.axes for name, each in axis.coordinates.items()}
    head = {
        "sweep": {each.name: getattr(sweep, each.name) for each in fields(sweep) if each.name != "axes"},
        "axes": [[axis.name, list(axis.coordinates)] for axis in sweep.axes],
        "cells": [cells.runs, cells.code, cells.about],
    }
    content = pack(REQUEST, Packed(head, columns))
    if store.files.read(REQUEST) != content:
        store.files.write(REQUEST, content)


def read_request(store: Store[CellResult]) -> SweepCells | None:
    """The cells that were last requested in a folder; None if there are none, or the file is damaged."""
    packed = unpack(REQUEST, store.files.read(REQUEST))
    if packed is None:
        return None
    head, columns = packed
    axes = tuple(Axis(name, {each: tuple(columns[each].tolist()) for each in own}) for name, own in head["axes"])
    return SweepCells(Sweep(**head["sweep"], axes=axes), *head["cells"])


def prepare(sweep: Sweep, out: str | Path, *, overwrite: bool = False) -> tuple[Store[CellResult], SweepCells]:
    """The store and the cells of a sweep in a folder, new or resumed; an error is raised before anything is written."""
    try:
        store, cells = planned(sweep, out)
    except ConflictError:
        if not overwrite:
            raise
        store, cells = planned(sweep, out, overwrite=True)
        for path in list(store.files.walk()):
            store.files.delete(path)
    try:
        if not is_address(results_path(out)):
            check_output_folder(Path(results_path(out)).parent)
        write_request(store, cells)
        store.tidy()
    except (OSError, ValueError):  # a read-only folder is fine if nothing has to be computed
        if next(store.missing(cells, verify=False), None) is not None:
            raise
    return store, cells


def planned(sweep: Sweep, out: str | Path, *, overwrite: bool = False) -> tuple[Store[CellResult], SweepCells]:
    """As `prepare`, but nothing is written."""
    checked_size(sweep)
    program = program_of(sweep.program)
    program.load()
    code, store, path = program.code(), store_at(out), results_path(out)
    before, runs = read_request(store), runs_of_a_cell(sweep, code.platform)
    if before is None and not overwrite and _is_taken(path) and not store.finished():  # or the request is damaged
        raise ConflictError(f"{without_cells(path)}; choose another folder, got {path!r}")
    if before is not None:
        if not overwrite:
            _check_same(before.sweep, sweep, store)
        same = (before.sweep.program, before.sweep.record) == (sweep.program, sweep.record)
        if same and before.about["platform"] == code.platform and not merges_seeds(sweep.record):
            runs = before.runs  # so that what is finished is reused
    packages = code.versions
    fingerprint = packages.pop("code with the digest")
    versions = {"holdfast": __version__, **packages, "python": platform.python_version(), "platform": code.platform}
    about = {"platform": code.platform, "code": fingerprint, "packages": packages, "versions": versions}
    return store, SweepCells(sweep, runs, code.digest, about)


def _is_taken(path: str) -> bool:
    return files_at(path).read("zarr.json") is not None or (not is_address(path) and os.path.lexists(path))


def _check_same(before: Sweep, now: Sweep, store: Store[Any]) -> None:
    """Refuse to replace the result of another sweep: what both fix must be the same, if something is finished."""
    both = [
        (f"settings.{name}", before.settings[name], now.settings[name])
        for name in now.settings
        if name in before.settings
    ]
    for name, old, new in [("program", before.program, now.program), ("record", before.record, now.record), *both]:
        if json.dumps(old) != json.dumps(new) and store.finished():
            raise ConflictError(f"{name} must be {old!r} as in the folder (choose another folder), got {new!r}")


def requested_cells(folder: str | Path) -> tuple[Store[CellResult], SweepCells]:
    """The store of a sweep that must be there, and the cells that were last requested.

    Example:
        >>> requested_cells("phase")
        Traceback (most recent call last):
        ValueError: the folder of the sweep must exist, got 'phase'
    """
    given, path, store = os.fspath(folder), results_path(folder), store_at(folder)
    cells = read_request(store)
    if cells is not None:
        return store, cells
    if store.finished():
        file = f"{store.folder}/{REQUEST}"
        raise ValueError(f"{file} must say what is requested: repeat the command of the sweep, got {given!r}")
    if files_at(path).read("zarr.json") is not None:
        raise ValueError(f"{without_cells(path)}, got {given!r}")
    require(is_address(path) or Path(folder).exists(), "the folder of the sweep must exist", repr(given))
    raise ValueError(f"the folder must be that of a sweep, with its cells in {store.folder}, got {given!r}")


def without_cells(path: str) -> str:
    """How to read a result that holdfast 0.1 wrote, or that was copied without its cells."""
    return f"the folder must have cells, which results of holdfast 0.1 lack; xarray.open_zarr({path!r}) reads those"


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
    return read_results(*requested_cells(folder))


def read_results(store: Store[CellResult], cells: SweepCells) -> "xr.Dataset":
    """Cells as one data set, in the order in which they were requested."""
    return _read(store, cells, *_form_and_failures(store, cells))


def export_sweep(folder: str | Path) -> str:
    """Write results.zarr from the cells that are finished, unless it has them all; returns its path.

    Args:
        folder: of the sweep, or its URL.

    Example:
        >>> import tempfile
        >>> import xarray as xr
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> xr.open_zarr(export_sweep(folder)).sizes["seed"]
        2
    """
    path = results_path(folder)
    store, cells = requested_cells(folder)
    if _state(store, cells) == _exported_state(path):
        return path
    with store.leases.wait(f"export{LEASE_SUFFIX}"):
        state = _state(store, cells)
        form, failures = _form_and_failures(store, cells)
        with nullcontext(path) if is_address(path) else replacing(Path(path)) as target, warnings.catch_warnings():
            # Of metadata in one file: all readers know it, though the specification does not.
            warnings.filterwarnings("ignore", "Consolidated metadata is currently not part", UserWarning)
            for number, part in enumerate(_parts(cells, form)):
                data = _read(store, part, form, failures).assign_attrs({STATE: state})
                if number == 0:
                    data.to_zarr(target, mode="w", consolidated=True)
                else:
                    data.to_zarr(target, append_dim=cells.sweep.axes[0].name, consolidated=True)
    return path


def notes_on(store: Store[CellResult], cells: SweepCells) -> tuple[str, ...]:
    """Sentences on a folder: whether its cells may differ in their last digits, and those of other code."""
    notes, ways = [], store.ways()
    if len(ways) > 1:
        notes.append(f"cells were computed in different ways and may differ in their last digits: {'; '.join(ways)}")
    others = sum(not name.endswith(cells.code) for name in store.finished())
    if others:
        notes.append(
            f"{counted(others, 'cell')} of other code left aside; `holdfast sweep-status --prune` deletes them"
        )
    return tuple(notes)


def _parts(cells: SweepCells, form: CellResult | None) -> Iterator[SweepCells]:
    """A result that is larger than memory should hold, in parts along its first axis."""
    sweep = cells.sweep
    size = 0 if form is None else sum(each.nbytes for each in form.values.values()) * len(cells)
    if size <= _PART or not sweep.axes:
        yield cells
        return
    first, *others = sweep.axes
    rows = max(1, first.size * _PART // size)
    for begin in range(0, first.size, rows):
        part = {name: values[begin : begin + rows] for name, values in first.coordinates.items()}
        yield replace(cells, sweep=replace(sweep, axes=(Axis(first.name, part), *others)))


def _state(store: Store[CellResult], cells: SweepCells) -> str:
    """A digest of what is requested, and of the cells that are finished."""
    finished = store.finished()
    total = sum(int(cell.name[:32], 16) for cell in cells if cell.name in finished)
    return hashlib.sha256((store.files.read(REQUEST) or b"") + str(total).encode()).hexdigest()[:16]


def _exported_state(path: str) -> str | None:
    content = files_at(path).read("zarr.json")
    try:
        return None if content is None else json.loads(content)["attributes"][STATE]
    except (ValueError, LookupError, TypeError):  # damaged, or not ours
        return None


def _form_and_failures(store: Store[CellResult], cells: SweepCells) -> tuple[CellResult | None, set[str]]:
    """The first cell that is finished, whose form all of them have, and the names of those that failed."""
    finished = store.finished()
    saved = (store.load(cell.name) for cell in cells if cell.name in finished)
    failures = store.failures().keys() - finished
    failures &= {cell.name for cell in (cells if failures else ())}
    return next((each for each in saved if each is not None), None), failures


def _read(store: Store[CellResult], cells: SweepCells, form: CellResult | None, failures: set[str]) -> "xr.Dataset":
    import xarray as xr

    sweep, merged = cells.sweep, merges_seeds(cells.sweep.record)
    width, seeds = (1, 1) if merged else (cells.runs, sweep.seeds)
    variables = {} if form is None else dict(sorted(form.values.items()))
    arrays = {name: _empty(values, (len(cells), *values.shape)) for name, values in variables.items()}
    seconds = np.full((len(cells), width), np.nan, np.float32)
    finished, failed = np.zeros(seconds.shape, bool), np.zeros(seconds.shape, bool)
    for number, (cell, saved) in enumerate(store.read_all(cells)):
        failed[number] = saved is None and cell.name in failures
        if saved is not None and form is not None:
            check_form(form, saved.value)
            finished[number], seconds[number] = True, saved.seconds / width
            for name, array in arrays.items():
                array[number] = saved.value.values[name]
    sizes = [axis.size for axis in sweep.axes]
    data = xr.Dataset(attrs=cells.attributes)
    for axis in sweep.axes:
        data = data.assign_coords({name: (axis.name, _labels(each)) for name, each in axis.coordinates.items()})
    data = data.assign_coords({SEED_DIMENSION: np.arange(sweep.seed, sweep.seed + seeds)})

    def add(name: str, array: np.ndarray, own: Sequence[str], about: str) -> None:
        runs = array.reshape(*sizes, -1, *array.shape[2:])[(*(slice(None) for _ in sizes), slice(seeds))]
        data[name] = (*(axis.name for axis in sweep.axes), SEED_DIMENSION, *own), runs, {"long_name": about}

    if form is not None:
        used = {each for own in form.dimensions.values() for each in own}
        labels = {name: (name, _labels(each.tolist())) for name, each in form.coordinates.items() if name in used}
        data = data.assign_coords(labels)
        for name, array in arrays.items():
            add(name, array, form.dimensions[name], form.meanings.get(name) or name)
    add(SECONDS, seconds, (), "computing time (s)")
    add(FINISHED, finished, (), "whether the cell is finished and intact")
    if failures:
        add(FAILED, failed, (), "whether the cell failed")
    return data.isel({SEED_DIMENSION: 0}, drop=True) if merged else data


def _empty(values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """What stands where nothing was computed: NaN, the smallest integer, False, or an empty string."""
    if values.dtype.kind in "OUT":
        return np.full(shape, "", object)
    kind = values.dtype.kind
    fill = False if kind == "b" else np.nan if kind == "f" else np.iinfo(values.dtype).min
    return np.full(shape, fill, values.dtype)


def _labels(values: Sequence[Any]) -> np.ndarray:
    """Text as objects, which zarr writes without a warning."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)
