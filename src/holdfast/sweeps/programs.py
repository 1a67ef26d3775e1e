"""Programs: what a cell of a sweep computes. Three of the library, by name, or any user function."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.fingerprint import COMPUTING
from holdfast.core.names import Named, modules_in
from holdfast.core.validation import describe, require, setting_types, suggestion
from holdfast.sensing.settings import SWEPT
from holdfast.sweeps.store.naming import CodeVersion

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

        modules = filter(None, (self.target, self.together, "holdfast.sweeps.recording:reduced"))
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
