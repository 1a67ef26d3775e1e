"""Programs: what a cell of a sweep computes. Three of the library, by name, or any function of the user's."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from holdfast.core.errors import describe
from holdfast.core.names import Named
from holdfast.core.validation import require, suggestion
from holdfast.execution.recorded import Recorded
from holdfast.sensing.settings import SWEPT

ProgramFunction = Callable[[Mapping[str, Any], np.ndarray], Recorded | Mapping[str, Any]]
"""(settings of a point, seeds) -> what is recorded of each seed; a plain mapping of arrays will do."""

SEEDING = ("seeds", "seed")  # settings that a sweep decides on


class SweepProgram(NamedTuple):
    """What a cell computes.

    Attributes:
        target: "module:function" of a `ProgramFunction`.
        settings: "module:class" of its settings, which check themselves; empty for a function that checks its own.
        shaping: settings that change the shape of what is recorded, and so cannot be axes.
        words: what it is.
        together: "module:function" of (settings of several points, seeds) -> what is recorded of each, for a program
            that fills an accelerator better with several points at once; empty for others.
        free: settings in which these points may differ.

    Example:
        >>> PROGRAMS["matrix-sensing"].settings_class().__name__
        'Settings'
    """

    target: str
    settings: str = ""
    shaping: tuple[str, ...] = ()
    words: str = ""
    together: str = ""
    free: tuple[str, ...] = ()

    def settings_class(self) -> Any:
        """The class of its settings, or None."""
        return Named(self.settings, "").load() if self.settings else None

    def whole(self) -> set[str]:
        """The settings that take whole numbers only."""
        known = fields(self.settings_class()) if self.settings else ()
        return {field.name for field in known if field.type is int or int in get_args(field.type)}

    def load(self, folder: str = ".") -> ProgramFunction:
        """Import the function; modules of the user's may lie in a folder."""
        module, _, attribute = self.target.partition(":")
        path = str(Path(folder).resolve())
        if path not in sys.path:
            sys.path.insert(0, path)
        try:
            found = importlib.import_module(module)
        except Exception as error:  # whatever the module of a user does
            contract = "program must name a module that can be imported here"
            raise ValueError(f"{contract}, got {self.target!r}: {describe(error)}") from error
        if not hasattr(found, attribute):
            raise ValueError(f"program must name a function of the module {module}, got {attribute!r}")
        function = getattr(found, attribute)
        require(callable(function), "program must name a function", f"{self.target!r}, {function!r}")
        return function


PROGRAMS = {
    "matrix-sensing": SweepProgram(
        "holdfast.sweeps.programs:matrix_sensing",
        "holdfast.sensing.settings:Settings",
        ("invariant_rank", "dtype"),
        "what `holdfast simulate` computes",
        "holdfast.sweeps.programs:matrix_sensing_together",
        SWEPT,
    ),
    "matrix-completion": SweepProgram(
        "holdfast.sweeps.programs:matrix_completion",
        "holdfast.completion.settings:CompletionSettings",
        ("offshoots",),
        "what `holdfast jumps` computes",
    ),
    "quadratic-network": SweepProgram(
        "holdfast.sweeps.programs:quadratic_network",
        "holdfast.sensing.network:QuadraticNetworkSettings",
        ("invariant_rank",),
        "Algorithm 4 on a two-layer network with quadratic activation",
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
        require(importable, "program must be a function of a module, which workers can import", name)
        return SweepProgram(name)
    require(isinstance(program, str), "program must be a text", repr(program))
    if program in PROGRAMS:
        return PROGRAMS[program]
    module, _, attribute = program.partition(":")
    if not (all(part.isidentifier() for part in module.split(".")) and attribute.isidentifier()):
        allowed = f'{", ".join(PROGRAMS)} or "module:function"'
        raise ValueError(f"program must be {allowed}, got {program!r}{suggestion(program, PROGRAMS)}")
    return SweepProgram(program)


def matrix_sensing(settings: Mapping[str, Any], seeds: np.ndarray) -> Recorded:
    """The signals of matrix sensing at every record, the outcome and the step of divergence.

    Example:
        >>> recorded = matrix_sensing({"dimension": 10, "steps": 200, "oracle": "population"}, np.arange(4))
        >>> recorded.values["spurious"].shape, recorded.dimensions["spurious"]
        ((4, 21), ('step',))
    """
    from holdfast.sensing.settings import Settings
    from holdfast.sensing.simulation import execute

    return _of_signals(execute(Settings(**settings, seeds=len(seeds), seed=int(seeds[0]))))


def matrix_sensing_together(points: Sequence[Mapping[str, Any]], seeds: np.ndarray) -> list[Recorded]:
    """As `matrix_sensing` of every point, computed as one simulation; the points differ in settings of `SWEPT` only.

    Example:
        >>> shared = {"dimension": 10, "steps": 200, "oracle": "population"}
        >>> points = [{**shared, "bias": 1.0, "heterogeneity": 0.0}, {**shared, "bias": 0.5, "heterogeneity": 6.0}]
        >>> [one.values["spurious"][:, -1].round(1).tolist() for one in matrix_sensing_together(points, np.arange(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """
    from holdfast.core.run import Records
    from holdfast.sensing.settings import Settings
    from holdfast.sensing.simulation import execute

    columns = {name: tuple(point[name] for point in points) for name in points[0]}
    swept = {name: tuple(dict.fromkeys(values)) for name, values in columns.items() if len(set(values)) > 1}
    settings = Settings(**{**points[0], **swept}, seeds=len(seeds), seed=int(seeds[0]))
    records = execute(settings, points=list(zip(*(columns[name] for name in settings.axes), strict=True)))
    rows = [slice(begin, begin + len(seeds)) for begin in range(0, len(points) * len(seeds), len(seeds))]
    return [
        _of_signals(
            Records(records.steps, {name: each[row] for name, each in records.values.items()}, records.diverged_at[row])
        )
        for row in rows
    ]


def quadratic_network(settings: Mapping[str, Any], seeds: np.ndarray) -> Recorded:
    """The signals of a network with quadratic activation at every record, the outcome and the step of divergence.

    Example:
        >>> recorded = quadratic_network({"dimension": 6, "batch_size": 100, "steps": 10}, np.arange(2))
        >>> recorded.values["invariant"].shape
        (2, 2)
    """
    from holdfast.sensing.network import QuadraticNetworkSettings, execute_network

    return _of_signals(execute_network(QuadraticNetworkSettings(**settings, seeds=len(seeds), seed=int(seeds[0]))))


def _of_signals(records: Any) -> Recorded:
    from holdfast.sensing.outcome import CODES_IN_WORDS, outcome_codes
    from holdfast.sensing.signals import MEANINGS

    dimensions = {name: ("step", "direction")[: values.ndim - 1] for name, values in records.values.items()}
    values = {**records.values, "outcome": outcome_codes(records), "diverged_at": records.diverged_at}
    meanings = {**MEANINGS, "outcome": CODES_IN_WORDS, "diverged_at": DIVERGED_AT}
    return Recorded(values, {**dimensions, "outcome": (), "diverged_at": ()}, {"step": records.steps}, meanings)


DIVERGED_AT = "step at which the run diverged, or -1"


def matrix_completion(settings: Mapping[str, Any], seeds: np.ndarray) -> Recorded:
    """Rank, ratio of singular values and errors of matrix completion at every record, and the number of jumps.

    Example:
        >>> recorded = matrix_completion({"steps": 200, "every": 50}, np.arange(2))
        >>> recorded.values["rank"].shape, recorded.values["jumps"].tolist()
        ((2, 5), [0, 0])
    """
    from holdfast.completion.jumps import before_divergence, jumps, ranks

    done = _completed(settings, seeds)
    fitted, steps, diverged_at = done.paths.fitted, done.paths.steps, done.paths.diverged_at
    singular_values = np.linalg.svd(fitted, compute_uv=False)
    largest, second = singular_values[..., 0], singular_values[..., 1] if singular_values.shape[-1] > 1 else 0.0
    path = ranks(singular_values, done.problem.scale).astype(np.int32)
    moving = before_divergence(steps, diverged_at)
    values = {
        "rank": path,
        "ratio": second / np.where(largest > 0, largest, 1),
        "train_error": done.problem.train_error(fitted),
        "test_error": done.problem.test_error(fitted),
    }
    ends = {
        "jumps": np.array(
            [len(jumps(steps[row], each[row])) for each, row in zip(path, moving, strict=True)], np.int32
        ),
        "diverged_at": diverged_at,
    }
    branches = {"offshoot_error": done.offshoot_errors} if len(done.offshoot_steps) else {}
    meanings = {
        "rank": "rank of the fitted matrix",
        "ratio": "second singular value over the first",
        "train_error": "mean square error on the observed entries",
        "test_error": "mean square error on the hidden entries",
        "jumps": "changes of the rank before the run diverged",
        "offshoot_error": "test error at the end of an offshoot",
        "diverged_at": DIVERGED_AT,
    }
    over = {**dict.fromkeys(values, ("step",)), **dict.fromkeys(ends, ()), **dict.fromkeys(branches, ("offshoot",))}
    coordinates = {"step": steps, **({"offshoot": done.offshoot_steps} if branches else {})}
    return Recorded({**values, **ends, **branches}, over, coordinates, {name: meanings[name] for name in over})


def completed_matrices(settings: Mapping[str, Any], seeds: np.ndarray) -> Recorded:
    """The fitted matrices of matrix completion themselves, from which `holdfast jumps` makes its summary.

    Example:
        >>> completed_matrices({"steps": 200, "every": 50}, np.arange(2)).values["fitted"].shape
        (2, 5, 2, 2)
    """
    done = _completed(settings, seeds)
    values = {
        "fitted": done.paths.fitted,
        "diverged_at": done.paths.diverged_at,
        "offshoot_error": done.offshoot_errors,
    }
    over = {"fitted": ("step", "row", "column"), "diverged_at": (), "offshoot_error": ("offshoot",)}
    coordinates = {"step": done.paths.steps, "offshoot": done.offshoot_steps}
    meanings = {"fitted": "A = W_L ... W_1", "diverged_at": DIVERGED_AT}
    if not len(done.offshoot_steps):
        del values["offshoot_error"], over["offshoot_error"], coordinates["offshoot"]
    return Recorded(values, over, coordinates, meanings)


def _completed(settings: Mapping[str, Any], seeds: np.ndarray) -> Any:
    from holdfast.completion.settings import CompletionSettings
    from holdfast.completion.training import simulate_completion

    return simulate_completion(CompletionSettings(**settings, seeds=len(seeds), seed=int(seeds[0])))
