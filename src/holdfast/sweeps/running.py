"""Run a sweep: its missing cells are computed by an engine and saved one by one."""

import os
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.core.addresses import is_address
from holdfast.core.progress import Progress, counted
from holdfast.core.versions import COMPUTING, installed_version
from holdfast.core.writing import check_output_folder
from holdfast.sensing.settings import Settings
from holdfast.sweeps.blocks import cells_together, layout_of
from holdfast.sweeps.cell_program import CellProgram
from holdfast.sweeps.cost import checked_size
from holdfast.sweeps.engines.base import Engine, check_engine
from holdfast.sweeps.engines.options import default_engine
from holdfast.sweeps.failures import describe_point, failed_settings
from holdfast.sweeps.programs import code_of, program_of
from holdfast.sweeps.recording import RecordName, merges_seeds
from holdfast.sweeps.results import read_results, results_path
from holdfast.sweeps.specification import Sweep, specify
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.header import ConflictError
from holdfast.sweeps.store.layout import Layout
from holdfast.sweeps.store.leases import Leases
from holdfast.sweeps.store.occupancy import is_replaceable, occupied, replace_grid
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

    The result lies in `out`/results.zarr. If the call is interrupted, the same call resumes; one with more values or
    seeds computes only what is new.

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
    check_engine(engine)
    specified = specify(settings, axes, seeds=seeds, record=record, program=program)
    report = None if progress is None else lambda done, total, *_: progress(done, total or done)
    cells = prepare(specified, out)
    outcome = _compute(specified, cells, engine, report)
    for reason, points in failed_settings(cells, outcome.failures).items():
        number, where = len(outcome.failures[reason]), "; ".join(map(describe_point, points))
        said = f"{counted(number, 'cell')} failed: {reason} (at {where}); the same call tries again"
        warnings.warn(said, stacklevel=2)
    return read_results(cells)


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    engine: Engine | None = None,
    report: Report | None = None,
    *,
    overwrite: bool = False,
) -> WorkOutcome:
    """Compute the cells of a sweep that are missing.

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
    return _compute(sweep, prepare(sweep, out, overwrite=overwrite), engine, report)


def _compute(sweep: Sweep, cells: GridCells, engine: Engine | None = None, report: Report | None = None) -> WorkOutcome:
    """Compute what is missing of the cells that `prepare` made for a sweep."""
    import jax

    # Counting a million cells takes a second, which a new sweep can do without.
    total = sum(1 for _ in cells.missing(verify=False)) if cells.has_finished_cells else cells.requested.cells
    function = CellProgram(
        cells,
        sweep.program,
        sweep.settings,
        sweep.record,
        folder=os.getcwd(),
        code=code_of(program_of(sweep.program)),
    )
    most = cells_together(sweep, jax.default_backend())
    batches = CellBatches(most, function.kind, function.together) if most > 1 else None
    if report is not None:
        report = _of_all(report, cells.requested.cells)
        report(0, total, 0.0, None, {})  # what is finished already, before the first cell is
    with occupied(Leases(cells.files, cells.expires)):
        outcome = compute(cells, function, engine or default_engine(), report, total=total, batches=batches)
    damaged = len(cells.damaged)
    return outcome._replace(damaged=damaged, finished_before=cells.requested.cells - total - damaged)


def _of_all(report: Report, cells: int) -> Report:
    """A report on the missing cells as one on all cells of a sweep, those that were finished before included."""

    def of_all(
        done: int, total: int | None, rate: float, seconds_left: float | None, failures: Mapping[str, int]
    ) -> None:
        missing = cells if total is None else total  # more than at the beginning, if damaged cells were found
        report(done + cells - missing, cells, rate, seconds_left, failures)

    return of_all


def prepare(sweep: Sweep, out: str | Path, *, overwrite: bool = False) -> GridCells:
    """The cells of a sweep in a folder, new or resumed; an error is raised before anything is written."""
    path = results_path(out)
    layout, identity = _requested(sweep)
    _check_writable(sweep, path)
    versions = {"holdfast": __version__, **identity["packages"], "python": platform.python_version()}
    notes = {"versions": {**versions, "platform": identity["platform"]}, "scales": dict(sweep.scales)}
    try:
        return GridCells.at(path, layout, identity=identity, notes=notes)
    except ConflictError:  # any other error says that the request is wrong, and must not cost what is there
        if not overwrite and not is_replaceable(path):
            raise
        replace_grid(path, layout, identity=identity, overwrite=overwrite)
        return GridCells.at(path, layout, identity=identity, notes=notes)


def _check_writable(sweep: Sweep, path: str) -> None:
    """Raise an error for a folder that takes no files, unless nothing would have to be written there."""
    if is_address(path):
        return
    try:
        check_output_folder(Path(path).parent)
    except ValueError:
        if not is_finished(sweep, path):
            raise


def planned(sweep: Sweep, out: str | Path) -> GridCells | None:
    """The cells that `prepare` would make or find; None if it would replace what is there. Nothing is written."""
    path = results_path(out)
    layout, identity = _requested(sweep)
    try:
        return GridCells.planned(path, layout, identity=identity)
    except ConflictError:
        if not is_replaceable(path):
            raise
        return None


def _requested(sweep: Sweep) -> tuple[Layout, dict[str, Any]]:
    """The cells of a sweep, and all that decides their values, once they are known to be possible."""
    import jax

    backend = jax.default_backend()
    checked_size(sweep)
    program = program_of(sweep.program)
    program.load()
    identity: dict[str, Any] = {
        "program": program.target,
        "settings": dict(sweep.settings),
        "seed": sweep.seed,
        "record": sweep.record,
        "platform": backend,
        "code": code_of(program),
        "packages": {name: installed_version(name) for name in COMPUTING},
    }
    if merges_seeds(sweep.record):  # with more seeds the values would be others
        identity["seeds"] = sweep.seeds
    return layout_of(sweep, backend), identity


def is_finished(sweep: Sweep, out: str | Path) -> bool:
    """Whether a folder has all that a sweep needs; nothing is written.

    Example:
        >>> import tempfile
        >>> chosen = specify({"dimension": 10, "steps": 10, "oracle": "population"}, {"bias": [0.0, 1.0]}, seeds=2)
        >>> folder = tempfile.mkdtemp()
        >>> is_finished(chosen, folder), run_sweep(chosen, folder).computed, is_finished(chosen, folder)
        (False, 2, True)
    """
    cells = planned(sweep, out)
    return cells is not None and next(cells.missing(verify=False), None) is None
