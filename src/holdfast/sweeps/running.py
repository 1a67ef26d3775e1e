"""Run a sweep: its missing cells are computed by an engine and saved one by one."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.completion.settings import CompletionSettings
from holdfast.completion.training import LayerPaths, Simulation, problem_of
from holdfast.core.progress import Progress, counted
from holdfast.sensing.settings import Settings
from holdfast.sweeps.cells import CellProgram, cells_together, describe_point, failed_settings
from holdfast.sweeps.designs import Axis
from holdfast.sweeps.engines.local import Engine, check_engine, default_engine
from holdfast.sweeps.programs import SEEDING, RecordName, program_of
from holdfast.sweeps.results import (
    ConflictError,
    export_sweep,
    notes_on,
    open_sweep,
    planned,
    prepare,
    read_results,
    results_path,
)
from holdfast.sweeps.specification import Sweep, specify
from holdfast.sweeps.store.work import CellBatches, FailedCellsError, Report, WorkOutcome, compute

if TYPE_CHECKING:
    import xarray as xr

    from holdfast.sensing.trajectory import Trajectory


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


def saved_trajectory(
    settings: Settings, out: str | Path, *, overwrite: bool = False, report: Report | None = None
) -> "Trajectory":
    """As `holdfast.simulate`, computed cell by cell; what is beside the zarr group already is not computed again.

    Args:
        settings: what to simulate.
        out: NAME.zarr, which `Trajectory.load` reads.
        overwrite: replace a group of other settings; without it, that is an error.
        report: see `holdfast.sweeps.store.work.Report`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "runs.zarr"
        >>> settings = Settings(dimension=10, steps=20, seeds=4, oracle="population", heterogeneity=(1.0, 6.0))
        >>> trajectory = saved_trajectory(settings, path)
        >>> trajectory.data["spurious"].dims, trajectory.settings == settings
        (('heterogeneity', 'seed', 'step'), True)
    """
    from holdfast.sensing.trajectory import Trajectory

    axes = tuple(Axis(name, {name: values}) for name, values in settings.axes.items())
    _run("matrix-sensing", settings, axes, out, overwrite, report)
    return Trajectory.load(results_path(out))


def saved_completion(
    settings: CompletionSettings, out: str | Path, *, overwrite: bool = False, report: Report | None = None
) -> Simulation:
    """As `holdfast.completion.simulate_completion`, computed into a zarr group.

    The fitted matrices are saved, not the layers: the simulation has one layer, A = W_L ... W_1.

    Args:
        settings: what to simulate.
        out: NAME.zarr.
        overwrite: replace a group of other settings; without it, that is an error.
        report: see `holdfast.sweeps.store.work.Report`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "jumps.zarr"
        >>> saved_completion(CompletionSettings(steps=100, seeds=2), path).paths.fitted.shape
        (2, 2, 2, 2)
    """
    _run("holdfast.sweeps.programs:completed_matrices", settings, (), out, overwrite, report)
    data = open_sweep(out)
    paths = LayerPaths(data["step"].values, (data["fitted"].values,), data["diverged_at"].values)
    if "offshoot_error" not in data:
        return Simulation(settings, problem_of(settings), paths, np.zeros(0, int), np.zeros((settings.seeds, 0)))
    return Simulation(settings, problem_of(settings), paths, data["offshoot"].values, data["offshoot_error"].values)


def _run(
    program: str,
    settings: Settings | CompletionSettings,
    axes: tuple[Axis, ...],
    out: str | Path,
    overwrite: bool,
    report: Report | None,
) -> None:
    left_out = {*SEEDING, *(axis.name for axis in axes)}
    shared = {name: value for name, value in settings.asdict().items() if name not in left_out}
    sweep = Sweep(program, shared, axes, settings.seeds, settings.seed, "trajectories")
    try:
        outcome = run_sweep(sweep, out, report=report, overwrite=overwrite)
    except ConflictError as error:
        raise ConflictError(f"{error}; overwrite=True or --overwrite replaces {str(out)!r}") from None
    for reason in outcome.failures:  # all runs have the same settings: what is wrong with one is wrong with all
        raise FailedCellsError(f"the simulation failed: {reason}")
