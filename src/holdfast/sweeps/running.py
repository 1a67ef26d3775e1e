"""Run a sweep: its missing cells are computed by an engine and saved one by one."""

import json
import os
import platform
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import __version__
from holdfast.core.addresses import is_address
from holdfast.core.cell_result import CellResult
from holdfast.core.names import Named, modules_in
from holdfast.core.progress import Progress, counted
from holdfast.core.writing import check_output_folder
from holdfast.sensing.settings import Settings
from holdfast.sweeps.cells import (
    SweepCell,
    SweepCells,
    cells_together,
    describe_point,
    failed_settings,
    runs_of_a_cell,
)
from holdfast.sweeps.cost import checked_size
from holdfast.sweeps.engines.base import Engine, check_engine
from holdfast.sweeps.engines.options import default_engine
from holdfast.sweeps.programs import ProgramFunction, program_of
from holdfast.sweeps.recording import RecordName, check_form, checked, merges_seeds, reduced
from holdfast.sweeps.results import (
    ConflictError,
    export_sweep,
    notes_on,
    read_request,
    read_results,
    results_path,
    store_at,
    without_cells,
    write_request,
)
from holdfast.sweeps.specification import Sweep, specify
from holdfast.sweeps.store.files import files_at
from holdfast.sweeps.store.store import Store
from holdfast.sweeps.store.work import CellBatches, Report, WorkOutcome, compute

if TYPE_CHECKING:
    import xarray as xr


def sweep(
    settings: Settings | Mapping[str, Any],
    axes: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    out: str | Path,
    seeds: int | None = None,
    record: RecordName = "final",
    program: str | Callable = "matrix-sensing",
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> "xr.Dataset":
    """Run a program over a grid, a list or a random design of settings times seeds.

    The cells lie in `out`/cells, and the result in `out`/results.zarr. If the call is interrupted, the same call
    resumes; one with more values or seeds computes only what is new.

    Args:
        settings: those that all points share; `seed` is that of the first run.
        axes: name -> list of values, or start, stop, count and perhaps scale = "log"; or a list of points; or
            design = "random" with count, seed, and low and high of each name.
        out: folder, or its URL (s3://...).
        seeds: runs of each point, 16 by default.
        record: "final" (last values), "quantiles" (over seeds, at every recorded step) or "trajectories".
        program: one of `holdfast.sweeps.PROGRAMS`, "module:function", or a function of a module:
            (settings, seeds) -> mapping of names to arrays, one value for each seed.
        engine: where cells are computed, see `holdfast.sweeps.engines`; by default in threads, one for each core
            or accelerator.
        progress: called with (cells done, cells in all).

    Returns:
        The data set of `open_sweep`. Cells that failed are NaN in it, and a warning says how many, why and where.

    Example:
        >>> import tempfile
        >>> axes = {"step_size": [0.05, 0.1], "heterogeneity": {"start": 1.0, "stop": 7.0, "count": 3}}
        >>> settings = {"dimension": 10, "steps": 100, "oracle": "population"}
        >>> data = sweep(settings, axes, seeds=4, out=tempfile.mkdtemp())
        >>> data["spurious"].sizes, bool(data["finished"].all())
        (Frozen({'step_size': 2, 'heterogeneity': 3, 'seed': 4}), True)
    """
    specified = specify(settings, axes, seeds=seeds, record=record, program=program)
    report = None if progress is None else lambda done, total, *_: progress(done, total or done)
    outcome = run_sweep(specified, out, engine, report)
    for reason, points in failed_settings(specified, outcome.failures).items():
        number, where = len(outcome.failures[reason]), "; ".join(map(describe_point, points))
        said = f"{counted(number, 'cell')} failed: {reason} (at {where}); the same call tries again"
        warnings.warn(said, stacklevel=2)
    return read_results(*planned(specified, out))


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    engine: Engine | None = None,
    report: Report | None = None,
    *,
    overwrite: bool = False,
) -> WorkOutcome:
    """Compute the cells of a sweep that are missing, and write results.zarr where xarray is installed.

    Args:
        sweep: what is swept.
        out: folder, or its URL (s3://...); a name that ends in .zarr is that of the zarr group itself.
        engine: where cells are computed; by default in threads, one for each core or accelerator.
        report: see `holdfast.sweeps.store.work.Report`.
        overwrite: replace a zarr group of something else; without it, that is an error.

    Example:
        >>> import tempfile
        >>> settings = {"dimension": 10, "steps": 10, "oracle": "population"}
        >>> chosen, folder = specify(settings, {"bias": [0.0, 1.0]}, seeds=2), tempfile.mkdtemp()
        >>> run_sweep(chosen, folder).computed, run_sweep(chosen, folder).computed
        (2, 0)
    """
    check_engine(engine)
    store, cells = prepare(sweep, out, overwrite=overwrite)
    program, function = program_of(sweep.program), CellProgram(replace(sweep, axes=()), os.getcwd())
    # To name a million cells takes seconds, which a new sweep can do without.
    total = sum(1 for _ in store.missing(cells, verify=False)) if store.finished() else len(cells)
    most = cells_together(cells, cells.about["platform"])
    batches = CellBatches(most, function.kind, function.together) if most > 1 else None

    def of_all(done: int, missing: int | None, *more: Any) -> None:
        """A report on all cells, those that were finished before included."""
        if report is not None:
            report(done + len(cells) - (missing or 0), len(cells), *more)

    of_all(0, total, 0.0, None, {})  # what is finished already, before the first cell is
    outcome = compute(
        store, cells, function, engine or default_engine(), of_all,
        code=program.code(os.getcwd()), total=total, batches=batches,
    )  # fmt: skip
    try:
        export_sweep(out)
    except ImportError:  # where nothing but jax is installed; the cells can be exported elsewhere
        pass
    except OSError:
        if outcome.computed:
            raise
    finished = len(cells) - total - outcome.damaged
    return outcome._replace(finished_before=finished, notes=notes_on(store, cells))


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


@dataclass(frozen=True)
class CellProgram:
    """What a worker computes for a cell. Picklable.

    Attributes:
        sweep: what is swept, without its axes: cells have their values.
        folder: of the command, in which user modules may lie.
    """

    sweep: Sweep
    folder: str
    _first: list[CellResult] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Loaded only by a worker that can import the program: another one would fail cell after cell, in no time."""
        return _loaded, (self.sweep, self.folder)

    @cached_property
    def function(self) -> ProgramFunction:
        """Settings of a cell, seeds -> what is found."""
        return program_of(self.sweep.program).load(self.folder)

    def __call__(self, cell: SweepCell) -> CellResult:
        """The records of one cell."""
        with modules_in(self.folder):
            return self._recorded(cell, self.function(self._settings(cell), np.array(cell.seeds)))

    def kind(self, cell: SweepCell) -> Hashable:
        """What cells must have in common to be computed together: the seeds, and settings that shape the program."""
        free = program_of(self.sweep.program).free
        return cell.seeds, tuple((name, value) for name, value in cell.point.items() if name not in free)

    def together(self, cells: Sequence[SweepCell]) -> list[CellResult]:
        """The records of several cells of one kind."""
        function = Named(program_of(self.sweep.program).together, "").load()
        found = function(list(map(self._settings, cells)), np.array(cells[0].seeds))
        return list(map(self._recorded, cells, found))

    def _settings(self, cell: SweepCell) -> dict[str, Any]:
        return {**self.sweep.settings, **cell.point}

    def _recorded(self, cell: SweepCell, found: Any) -> CellResult:
        result = reduced(checked(found, len(cell.seeds), cell.point), self.sweep.record)
        if not self._first:
            self._first.append(result)
        check_form(self._first[0], result)
        return result


def _loaded(sweep: Sweep, folder: str) -> CellProgram:
    program = CellProgram(sweep, folder)
    program.function  # noqa: B018 (or an error, before the first cell)
    return program
