"""Single simulations that are saved as they run, so that they resume where they stopped: `simulate` and `jumps`."""

from pathlib import Path

import numpy as np

from holdfast.completion.settings import CompletionSettings
from holdfast.completion.training import LayerPaths, Simulation, problem_of
from holdfast.sensing.settings import Settings
from holdfast.sensing.trajectory import Trajectory
from holdfast.sweeps.designs import Axis
from holdfast.sweeps.programs import SEEDING
from holdfast.sweeps.results import ConflictError, open_sweep, results_path
from holdfast.sweeps.running import run_sweep
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.work import FailedCellsError, Report


def saved_trajectory(
    settings: Settings, out: str | Path, *, overwrite: bool = False, report: Report | None = None
) -> Trajectory:
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
