"""Run a sweep: its missing cells are computed by an engine, saved one by one, and read as one data set."""

import functools
import importlib.metadata
import os
import platform
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import __version__
from holdfast.core.addresses import is_address
from holdfast.core.progress import Progress
from holdfast.core.validation import require
from holdfast.execution.cells import Index
from holdfast.execution.engines.base import Engine, check_engine
from holdfast.execution.engines.devices import DeviceEngine
from holdfast.execution.engines.threads import ThreadEngine
from holdfast.execution.fingerprint import fingerprint
from holdfast.execution.grid import GridCells
from holdfast.execution.header import ConflictError
from holdfast.execution.layout import Layout
from holdfast.execution.leases import Leases
from holdfast.execution.occupancy import occupied
from holdfast.execution.recorded import Recorded
from holdfast.execution.replacing import is_vacant, make_way
from holdfast.execution.work import Report, Together, WorkOutcome, compute
from holdfast.execution.zarr_format import METADATA
from holdfast.sensing.settings import Settings
from holdfast.sweeps.failures import describe_point, failed_settings
from holdfast.sweeps.planning import cells_together, checked_size, layout_of
from holdfast.sweeps.programs import SweepProgram, program_of
from holdfast.sweeps.recording import SEED_DIMENSION, checked, reduced
from holdfast.sweeps.specification import Sweep, specify

if TYPE_CHECKING:
    import xarray as xr

RESULTS = "results.zarr"
"""The result inside of the folder of a sweep."""
# Packages whose versions decide the last bits of a result.
PACKAGES = ("jax", "jaxlib", "numpy")


def sweep(
    settings: Settings | Mapping[str, Any],
    axes: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    out: str | Path,
    seeds: int | None = None,
    record: str = "final",
    program: str | Callable = "matrix-sensing",
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> "xr.Dataset":
    """Run a program over a grid, a list or a random design of settings times seeds.

    The result lies in `out`/results.zarr. Whatever ends the call, the same call goes on from there, and one with more
    values or seeds computes what is new.

    Args:
        settings: those that all points share; `seed` is that of the first run.
        axes: name -> list of values, or start, stop, count and perhaps scale = "log"; or a list of points; or
            design = "random" with count, seed, and low and high of each name.
        out: folder, or its URL (s3://...).
        seeds: runs of each point, 16 by default.
        record: "final" (last values), "quantiles" (over seeds, at every recorded step) or "trajectories".
        program: one of `holdfast.sweeps.PROGRAMS`, "module:function", or a function of a module:
            (settings, seeds) -> mapping of names to arrays, one value for each seed.
        engine: where cells are computed, see `holdfast.execution.engines`; by default in threads, one for each core.
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
    cells = prepare(specified, results_path(out))
    outcome = _compute(specified, cells, engine, report)
    for reason, points in failed_settings(cells, outcome.failures).items():
        number, where = len(outcome.failures[reason]), "; ".join(map(describe_point, points))
        count = f"{number} cell{'' if number == 1 else 's'}"
        warnings.warn(f"{count} failed: {reason} (at {where}); the same call tries again", stacklevel=2)
    return _read_sweep(cells)


def run_sweep(
    sweep: Sweep,
    path: str | Path,
    engine: Engine | None = None,
    report: Report | None = None,
    *,
    overwrite: bool = False,
) -> WorkOutcome:
    """Compute the cells of a sweep that are missing.

    Args:
        sweep: what is swept.
        path: of the zarr group, or its URL.
        engine: where cells are computed; by default in threads, one for each core.
        report: see `holdfast.execution.work.Report`.
        overwrite: replace a zarr group of something else; without it, that is an error.

    Example:
        >>> import tempfile
        >>> settings = {"dimension": 10, "steps": 10, "oracle": "population"}
        >>> chosen, path = specify(settings, {"bias": [0.0, 1.0]}, seeds=2), Path(tempfile.mkdtemp()) / "results.zarr"
        >>> run_sweep(chosen, path).computed, run_sweep(chosen, path).computed
        (2, 0)
    """
    check_engine(engine)
    return _compute(sweep, prepare(sweep, path, overwrite=overwrite), engine, report)


def _compute(sweep: Sweep, cells: GridCells, engine: Engine | None = None, report: Report | None = None) -> WorkOutcome:
    """Compute what is missing of the cells that `prepare` made for a sweep."""
    import jax

    # Counting a million cells takes a second, which a new sweep can do without.
    total = sum(1 for _ in cells.missing(verify=False)) if cells.begun else cells.asked.cells
    function = CellProgram(
        cells,
        sweep.program,
        sweep.settings,
        sweep.seed,
        _in_one(sweep),
        sweep.record,
        folder=os.getcwd(),
        code=code_of(program_of(sweep.program)),
    )
    most = cells_together(sweep, jax.default_backend())
    together = Together(most, function.kind, function.together) if most > 1 else None
    with occupied(Leases(cells.files, cells.expires)):
        outcome = compute(cells, function, engine or default_engine(), report, total=total, together=together)
    return outcome._replace(damaged=len(cells.damaged))


def default_engine() -> Engine:
    """Threads, one for each core; on accelerators one for each of them, since a cell fills one.

    Example:
        >>> default_engine().name.endswith(("thread", "threads"))
        True
    """
    import jax

    return ThreadEngine() if jax.default_backend() == "cpu" else DeviceEngine()


def prepare(sweep: Sweep, path: str | Path, *, overwrite: bool = False) -> GridCells:
    """The cells of a sweep in a folder, new or resumed; an error is raised before anything is written."""
    layout, identity = _requested(sweep)
    versions = {"holdfast": __version__, **identity["packages"], "python": platform.python_version()}
    notes = {"versions": {**versions, "platform": identity["platform"]}, "scales": dict(sweep.scales)}
    try:
        return GridCells.at(path, layout, identity=identity, notes=notes)
    except ConflictError:  # any other error says that the request is wrong, and must not cost what is there
        if not overwrite and not is_vacant(path):
            raise
        make_way(path, layout, identity=identity, overwrite=overwrite)
        return GridCells.at(path, layout, identity=identity, notes=notes)


def planned(sweep: Sweep, path: str | Path) -> GridCells | None:
    """The cells that `prepare` would make or find; None if it would replace what is there. Nothing is written."""
    layout, identity = _requested(sweep)
    try:
        return GridCells.planned(path, layout, identity=identity)
    except ConflictError:
        if not is_vacant(path):
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
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    if sweep.record == "quantiles":  # they would be others with more seeds
        identity["seeds"] = sweep.seeds
    return layout_of(sweep, backend), identity


def is_finished(sweep: Sweep, path: str | Path) -> bool:
    """Whether a folder has all that a sweep asks for; nothing is written.

    Example:
        >>> import tempfile
        >>> chosen = specify({"dimension": 10, "steps": 10, "oracle": "population"}, {"bias": [0.0, 1.0]}, seeds=2)
        >>> path = Path(tempfile.mkdtemp()) / "results.zarr"
        >>> is_finished(chosen, path), run_sweep(chosen, path).computed, is_finished(chosen, path)
        (False, 2, True)
    """
    cells = planned(sweep, path)
    return cells is not None and next(cells.missing(verify=False), None) is None


def code_of(program: SweepProgram) -> str:
    """A checksum of the code that decides the numbers of a program; a folder goes on with no other.

    Example:
        >>> len(code_of(program_of("matrix-sensing")))
        16
    """
    functions = (program.target, program.together, "holdfast.sweeps.recording:reduced")
    return fingerprint(tuple(filter(None, functions)))[:16]


def _in_one(sweep: Sweep) -> int | None:
    return sweep.seeds if sweep.record == "quantiles" else None


@dataclass(frozen=True)
class CellProgram:
    """What a worker computes for a cell. Picklable.

    Attributes:
        cells: that say what a cell is.
        program: by name.
        settings: those that all cells share.
        seed: of the first run of each point.
        seeds: of one cell, where it does not have a block of them but all.
        record: what is recorded.
        folder: of the command, in which modules of the user's may lie.
        code: checksum of the program, see `code_of`.
    """

    cells: GridCells
    program: str
    settings: Mapping[str, Any]
    seed: int
    seeds: int | None
    record: Any
    folder: str
    code: str

    def __call__(self, index: Index) -> Recorded:
        """The records of one cell."""
        function, seeds = self._function(program_of(self.program).target), self._seeds(index)
        return reduced(checked(function(self._settings(index), seeds), len(seeds)), self.record)

    def kind(self, index: Index) -> Hashable:
        """What cells must have in common to be computed together: the seeds, and settings that shape the program."""
        free = program_of(self.program).free
        own = self.cells.settings(index).items()
        return index[-1], tuple((name, value) for name, value in own if name not in free)

    def together(self, indices: Sequence[Index]) -> list[Recorded]:
        """The records of several cells of one kind."""
        function, seeds = self._function(program_of(self.program).together), self._seeds(indices[0])
        found = function([self._settings(index) for index in indices], seeds)
        return [reduced(checked(each, len(seeds)), self.record) for each in found]

    def _function(self, target: str) -> Callable:
        return _loaded(program_of(self.program), target, self.folder, self.code)

    def _settings(self, index: Index) -> dict[str, Any]:
        return {**self.settings, **self.cells.settings(index)}

    def _seeds(self, index: Index) -> np.ndarray:
        return self.seed + (self.cells.block(index) if self.seeds is None else np.arange(self.seeds))


@functools.cache
def _loaded(program: SweepProgram, target: str, folder: str, code: str) -> Callable:
    """A function of a program, if it is the one that the command has: a worker that lives on may know an older one."""
    function = program._replace(target=target).load(folder)
    if code_of(program) != code:
        module = target.partition(":")[0]
        raise RuntimeError(f"a worker knows another version of {module} than the command; restart the workers")
    return function


def results_path(out: str | Path) -> str:
    """The zarr group in the folder of a sweep, or the group itself where it is given.

    Example:
        >>> results_path("phase"), results_path("s3://bucket/phase/"), results_path("runs.zarr")
        ('phase/results.zarr', 's3://bucket/phase/results.zarr', 'runs.zarr')
    """
    text = os.fspath(out).rstrip("/")
    require(bool(text), "out must be a folder for the result", repr(os.fspath(out)))
    return text if text.endswith(".zarr") else f"{text}/{RESULTS}"


def existing_results(out: str | Path) -> str:
    """As `results_path`, for a sweep that must be there; that of a URL is not looked for.

    Example:
        >>> existing_results("phase")
        Traceback (most recent call last):
        ValueError: the folder of the sweep must exist, got 'phase'
    """
    path = results_path(out)
    if not is_address(path) and not Path(path, METADATA).is_file():
        require(Path(out).exists(), "the folder of the sweep must exist", repr(os.fspath(out)))
        raise ValueError(f"the folder must be that of a sweep, with {RESULTS} in it, got {os.fspath(out)!r}")
    return path


def open_sweep(out: str | Path) -> "xr.Dataset":
    """The result of a sweep, verified by checksums: NaN, and False in `finished`, where a cell is not finished yet.

    Args:
        out: folder of the sweep, or its URL.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10, "seed": 7}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> open_sweep(folder)["spurious"].seed.values.tolist()
        [7, 8]
    """
    return _read_sweep(GridCells.open(existing_results(out)))


def _read_sweep(cells: GridCells) -> "xr.Dataset":
    from holdfast.execution.grid_dataset import read_cells

    data = read_cells(cells)
    if data.attrs.get("record") == "quantiles":  # one cell has all seeds of its point
        return data.isel({SEED_DIMENSION: 0}, drop=True)
    return data.assign_coords({SEED_DIMENSION: data[SEED_DIMENSION] + data.attrs.get("seed", 0)})
