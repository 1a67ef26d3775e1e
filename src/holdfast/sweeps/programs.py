"""What is recorded of a cell: final values, quantiles over seeds, or whole trajectories."""

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.fingerprint import COMPUTING
from holdfast.core.names import Named, modules_in
from holdfast.core.validation import describe, require, setting_types, suggestion
from holdfast.sensing.settings import SWEPT
from holdfast.sweeps.designs import POINT
from holdfast.sweeps.store.naming import CodeVersion

RecordName = Literal["final", "quantiles", "trajectories"]
RECORDS: dict[RecordName, str] = {
    "final": "the last values of every run",
    "quantiles": "quantiles over the seeds at every recorded step",
    "trajectories": "every run at every recorded step",
}
"""What can be recorded, in words."""
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the record "quantiles"."""
STEP, QUANTILE, SEED_DIMENSION = "step", "quantile", "seed"
SECONDS, FINISHED, FAILED = "seconds", "finished", "cell_failed"
"""Variables of a result about its cells; there is no `cell_failed` if no cell failed."""
RESERVED = {POINT, QUANTILE, SEED_DIMENSION, SECONDS, FINISHED, FAILED}
"""Names of the result that no axis, variable or dimension of a program may have."""


def merges_seeds(record: str | None) -> bool:
    """Whether what is recorded of a point is about all of its seeds, so that one cell has them all.

    Example:
        >>> merges_seeds("quantiles"), merges_seeds("final")
        (True, False)
    """
    return record == "quantiles"


def checked(found: Any, seeds: int, axes: Collection[str] = ()) -> CellResult:
    """What a program returned as `CellResult`, or an error that says what is wrong with it.

    Args:
        found: `CellResult`, or a mapping of names to arrays whose first dimension is that of the seeds.
        seeds: their number.
        axes: names that the result has already.

    Example:
        >>> checked({"error": [0.5, 0.25]}, seeds=2).dimensions
        {'error': ()}
        >>> checked({"error": [0.5, 0.25]}, seeds=3)
        Traceback (most recent call last):
        ValueError: the program must return one value of each name for each of 3 seeds, got 2
    """
    if not isinstance(found, CellResult):
        contract = "the program must return a mapping of names to arrays, one value for each seed"
        require(isinstance(found, Mapping) and len(found) > 0, contract, repr(found))
        found = CellResult(found)
    for name in (*found.values, *found.sizes()):
        usable = isinstance(name, str) and name.isidentifier() and name not in RESERVED
        contract = f"the program must return names that are identifiers, and none of {', '.join(sorted(RESERVED))}"
        require(usable, contract, repr(name))
        require(name not in axes, "names of axes and variables must be new ones", f"{name!r}, which is an axis already")
    both = found.values.keys() & found.sizes().keys()
    require(not both, "names of variables and of dimensions must differ", ", ".join(sorted(both)))
    for name, values in found.values.items():
        contract = f"variable {name!r}: values must be real numbers, booleans or text"
        require(values.dtype.kind in "biufOUT", contract, values.dtype)
    each = f"the program must return one value of each name for each of {seeds} seeds"
    require(found.seeds == seeds, each, found.seeds)
    return found


def check_form(first: CellResult, other: CellResult) -> None:
    """Raise a ValueError unless two cells of a sweep have the same variables and coordinates.

    Example:
        >>> check_form(CellResult({"loss": np.ones((2, 3))}), CellResult({"loss": np.ones((2, 4))}))
        Traceback (most recent call last):
        ValueError: variable 'loss' must be the same in every cell, got float64 (loss_1 = 4) after float64 (loss_1 = 3)
    """
    alike = first.dimensions == other.dimensions and all(
        values.dtype == other.values[name].dtype and values.shape == other.values[name].shape
        for name, values in first.values.items()
    )
    for name in () if alike else sorted({*first.values, *other.values}):
        before, now = _described(first, name), _described(other, name)
        require(now == before, f"variable {name!r} must be the same in every cell", f"{now} after {before}")
    for name, labels in first.coordinates.items():
        same = np.array_equal(labels, other.coordinates.get(name, ()))
        require(same, f"coordinates of {name!r} must be the same in every cell", "others than before")


def _described(result: CellResult, name: str) -> str:
    if name not in result.values:
        return "none"
    values = result.values[name]
    kind = "text" if values.dtype.kind in "OUT" else values.dtype.name
    sizes = zip(result.dimensions[name], values.shape[1:], strict=True)
    return f"{kind} ({', '.join(f'{each} = {size}' for each, size in sizes) or 'a number'})"


def reduced(recorded: CellResult, record: RecordName) -> CellResult:
    """What is recorded of all that a program found.

    Quantiles leave out a run from the step on at which it diverged, if the program says so by `diverged_at`; the share
    of such runs is the variable `diverged`. They leave out NaN, too, of which no share is recorded.

    Example, the quantiles of 0, 1, ..., 100 over 101 seeds:
        >>> recorded = CellResult({"signal": np.arange(101.0)[:, None]}, {"signal": ("step",)}, {"step": [200]})
        >>> reduced(recorded, "quantiles").values["signal"].ravel().tolist()
        [5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0]
    """
    if record == "trajectories":
        return recorded
    return _final(recorded) if record == "final" else _quantiles(recorded)


def _final(recorded: CellResult) -> CellResult:
    values: dict[str, np.ndarray] = {}
    dimensions: dict[str, tuple[str, ...]] = {}
    for name, array in recorded.values.items():
        over = recorded.dimensions[name]
        at = (slice(None), *(-1 if each == STEP else slice(None) for each in over))
        values[name], dimensions[name] = array[at], tuple(each for each in over if each != STEP)
    coordinates = {name: labels for name, labels in recorded.coordinates.items() if name != STEP}
    return CellResult(values, dimensions, coordinates, recorded.meanings)


def _quantiles(recorded: CellResult) -> CellResult:
    """With a first dimension of length 1, in the place of the seeds."""
    steps, diverged_at = recorded.coordinates.get(STEP), recorded.values.get("diverged_at")
    values: dict[str, np.ndarray] = {}
    dimensions: dict[str, tuple[str, ...]] = {}
    gone = None
    if steps is not None and diverged_at is not None:
        contract = "the program must leave the name diverged to the share of runs that follows from diverged_at"
        require("diverged" not in recorded.values, contract, "'diverged'")
        gone = (diverged_at[:, None] >= 0) & (np.asarray(steps) >= diverged_at[:, None])
        values["diverged"], dimensions["diverged"] = gone.mean(0, dtype=np.float64)[None], (STEP,)
    for name, array in recorded.values.items():
        over = recorded.dimensions[name]
        if name in ("diverged_at", "outcome"):  # codes have no quantiles; `diverged` says it
            continue
        require(array.dtype.kind in "biuf", f"{name!r} must be numbers to have quantiles", f"type {array.dtype}")
        numbers = array.astype(np.result_type(array.dtype, np.float32))
        if gone is not None and STEP in over:
            others = [axis for axis, name in enumerate(over, 1) if name != STEP]
            numbers = np.where(np.expand_dims(gone, others), np.nan, numbers)
        found = _over_seeds(numbers)
        values[name], dimensions[name] = found.astype(numbers.dtype)[None], (QUANTILE, *over)
    meanings = {"diverged": "share of the runs that have diverged", **recorded.meanings}
    coordinates = {**recorded.coordinates, QUANTILE: np.array(QUANTILES)}
    return CellResult(values, dimensions, coordinates, {name: meanings[name] for name in values if name in meanings})


def _over_seeds(numbers: np.ndarray) -> np.ndarray:
    """Quantiles of what is not NaN along the first dimension; NaN where all are, without NumPy's warning."""
    left_out = np.isnan(numbers)
    if not left_out.any():  # much faster
        return np.quantile(numbers, QUANTILES, axis=0)
    nobody = left_out.all(0)
    return np.where(nobody, np.nan, np.nanquantile(np.where(nobody, 0.0, numbers), QUANTILES, axis=0))


ProgramFunction = Callable[[Mapping[str, Any], np.ndarray], CellResult | Mapping[str, Any]]
"""(settings of a point, seeds) -> what is recorded of each seed; a plain mapping of arrays will do."""

SEEDING = ("seeds", "seed")  # settings that a sweep decides on


class SweepProgram(NamedTuple):
    """What a cell computes.

    Attributes:
        target: "module:function" of a `ProgramFunction`.
        settings: "module:class" of its settings, which check themselves; empty for a function that checks its own.
        shaping: settings that change the shape of what is recorded of a step, and so cannot be axes.
        timing: settings with the number of steps of a run and of those between records; empty for a program without
            steps.
        record_bytes: "module:function" of settings -> the size of what is recorded of a step; empty: not known.
        free: settings whose values do not depend on each other, and in which points computed together may differ.
        check: "module:function" of (settings of all points, values of free settings), which raises an error if they do
            not fit together; empty for a program without free settings.
        together: "module:function" of (settings of several points, seeds) -> what is recorded of each, for a program
            that fills an accelerator better with several points at once; empty for others.

    Example:
        >>> PROGRAMS["matrix-sensing"].settings_class().__name__
        'Settings'
    """

    target: str
    settings: str = ""
    shaping: tuple[str, ...] = ()
    timing: tuple[str, ...] = ()
    record_bytes: str = ""
    free: tuple[str, ...] = ()
    check: str = ""
    together: str = ""

    def settings_class(self) -> Any:
        """The class of its settings, or None."""
        return Named(self.settings, "").load() if self.settings else None

    def whole(self) -> set[str]:
        """The settings that take whole numbers only."""
        known = setting_types(self.settings_class()) if self.settings else {}
        return {name for name, kind in known.items() if kind.rule and kind.rule.whole}

    def check_settings(self, shared: Mapping[str, Any], swept: Mapping[str, Sequence[Any]]) -> None:
        """Raise an error if settings of points, and values of free ones, do not fit together."""
        if self.check:
            Named(self.check, "").load()(shared, swept)
        elif self.settings:
            self.settings_class()(**shared)

    def code(self, folder: str = ".") -> CodeVersion:
        """The code that decides its numbers; user modules may lie in a folder."""
        import jax

        modules = filter(None, (self.target, self.together, "holdfast.sweeps.programs:reduced"))
        return CodeVersion(tuple(modules), COMPUTING, folder, jax.default_backend())

    def load(self, folder: str = ".") -> ProgramFunction:
        """Import the function; user modules may lie in a folder."""
        module, _, attribute = self.target.partition(":")
        try:
            with modules_in(folder):
                found = importlib.import_module(module)
        except Exception as error:  # whatever the module of a user does
            contract = "program must name a module that can be imported here"
            raise ValueError(f"{contract}, got {self.target!r}: {describe(error)}") from error
        if not hasattr(found, attribute):
            raise ValueError(f"program must name a function of the module {module}, got {attribute!r}")
        function = getattr(found, attribute)
        require(callable(function), "program must name a function", f"{self.target!r}, {function!r}")
        return function


_STEPS = ("steps", "every")
PROGRAMS = {
    "matrix-sensing": SweepProgram(
        "holdfast.sweeps.programs:matrix_sensing",
        settings="holdfast.sensing.settings:Settings",
        shaping=("invariant_rank", "dtype"),
        timing=_STEPS,
        record_bytes="holdfast.sensing.simulation:bytes_of_signals",
        free=SWEPT,
        check="holdfast.sensing.simulation:check_points",
        together="holdfast.sweeps.programs:matrix_sensing_together",
    ),
    "matrix-completion": SweepProgram(
        "holdfast.sweeps.programs:matrix_completion",
        settings="holdfast.completion.settings:CompletionSettings",
        shaping=("offshoots",),
        timing=_STEPS,
        record_bytes="holdfast.completion.summary:bytes_of_ranks",
    ),
    "quadratic-network": SweepProgram(
        "holdfast.sweeps.programs:quadratic_network",
        settings="holdfast.sensing.network:QuadraticNetworkSettings",
        shaping=("invariant_rank",),
        timing=_STEPS,
        record_bytes="holdfast.sensing.simulation:bytes_of_signals",
    ),
}
"""Programs of the library."""


def program_of(program: str | Callable) -> SweepProgram:
    """The program of a name, of "module:function", or of a function that can be imported.

    Example:
        >>> program_of("matrix-sensing").target
        'holdfast.sweeps.programs:matrix_sensing'
        >>> program_of("my_module:my_function").settings_class() is None
        True
    """
    if callable(program):
        name = f"{program.__module__}:{program.__qualname__}"
        importable = "<" not in name and program.__module__ != "__main__"
        own = program.__name__ if program.__name__.isidentifier() else "my_function"
        way_out = f"put it into a file such as mine.py and pass mine.{own}"
        require(importable, f"program must be a function of a module, which workers can import ({way_out})", name)
        return SweepProgram(name)
    require(isinstance(program, str), "program must be a string", repr(program))
    if program in PROGRAMS:
        return PROGRAMS[program]
    module, _, attribute = program.partition(":")
    if not (all(part.isidentifier() for part in module.split(".")) and attribute.isidentifier()):
        allowed = f'{", ".join(PROGRAMS)} or "module:function"'
        raise ValueError(f"program must be {allowed}, got {program!r}{suggestion(program, PROGRAMS)}")
    return SweepProgram(program)


def matrix_sensing(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """The signals of matrix sensing at every record, the outcome and the step of divergence.

    Example:
        >>> recorded = matrix_sensing({"dimension": 10, "steps": 200, "oracle": "population"}, np.arange(4))
        >>> recorded.values["spurious"].shape, recorded.dimensions["spurious"]
        ((4, 21), ('step',))
    """
    from holdfast.sensing.settings import Settings
    from holdfast.sensing.simulation import execute, recorded_signals

    return recorded_signals(execute(Settings(**settings, **_seeding(seeds))))


def matrix_sensing_together(points: Sequence[Mapping[str, Any]], seeds: np.ndarray) -> list[CellResult]:
    """As `matrix_sensing` of every point, computed as one simulation; the points differ in settings of `SWEPT` only.

    Example:
        >>> shared = {"dimension": 10, "steps": 200, "oracle": "population"}
        >>> points = [{**shared, "bias": 1.0, "heterogeneity": 0.0}, {**shared, "bias": 0.5, "heterogeneity": 6.0}]
        >>> [one.values["spurious"][:, -1].round(1).tolist() for one in matrix_sensing_together(points, np.arange(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """
    from holdfast.sensing.simulation import execute_points, recorded_signals

    return list(map(recorded_signals, execute_points(points, seeds)))


def quadratic_network(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """The signals of a network with quadratic activation at every record, the outcome and the step of divergence.

    Example:
        >>> recorded = quadratic_network({"dimension": 6, "batch_size": 100, "steps": 10}, np.arange(2))
        >>> recorded.values["invariant"].shape
        (2, 2)
    """
    from holdfast.sensing.network import QuadraticNetworkSettings, execute_network
    from holdfast.sensing.simulation import recorded_signals

    return recorded_signals(execute_network(QuadraticNetworkSettings(**settings, **_seeding(seeds))))


def matrix_completion(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """Rank, ratio of singular values and errors of matrix completion at every record, and the number of jumps.

    Example:
        >>> recorded = matrix_completion({"steps": 200, "every": 50}, np.arange(2))
        >>> recorded.values["rank"].shape, recorded.values["jumps"].tolist()
        ((2, 5), [0, 0])
    """
    from holdfast.completion.settings import CompletionSettings
    from holdfast.completion.summary import recorded_ranks
    from holdfast.completion.training import simulate_completion

    return recorded_ranks(simulate_completion(CompletionSettings(**settings, **_seeding(seeds))))


def completed_matrices(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """The fitted matrices of matrix completion themselves, from which `holdfast jumps` makes its summary.

    Example:
        >>> completed_matrices({"steps": 200, "every": 50}, np.arange(2)).values["fitted"].shape
        (2, 5, 2, 2)
    """
    from holdfast.completion.settings import CompletionSettings
    from holdfast.completion.summary import recorded_matrices
    from holdfast.completion.training import simulate_completion

    return recorded_matrices(simulate_completion(CompletionSettings(**settings, **_seeding(seeds))))


def _seeding(seeds: np.ndarray) -> dict[str, Any]:
    """The settings that a block of consecutive seeds decides."""
    return {"seeds": len(seeds), "seed": int(seeds[0])}
