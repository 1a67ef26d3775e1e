"""A simulation as labelled values of each run: its ranks, errors and jumps, or the fitted matrices themselves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.completion.jumps import rank_paths
from holdfast.completion.training import Simulation
from holdfast.core.cell_result import CellResult
from holdfast.core.outcome import DIVERGED_AT

VARIABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "rank": (("step",), "rank of the fitted matrix"),
    "ratio": (("step",), "second singular value over the first"),
    "train_error": (("step",), "mean square error on the observed entries"),
    "test_error": (("step",), "mean square error on the hidden entries"),
    "jumps": ((), "changes of the rank before the run diverged"),
    "offshoot_error": (("offshoot",), "test error at the end of an offshoot"),
    "diverged_at": ((), DIVERGED_AT),
    "fitted": (("step", "row", "column"), "A = W_L ... W_1"),
}
"""The dimensions of what is recorded of a run, and what it is in words."""


def recorded_ranks(simulation: Simulation) -> CellResult:
    """Rank, ratio of singular values and errors at every record, and the number of jumps.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> recorded = recorded_ranks(simulate_completion(CompletionSettings(steps=200, every=50, seeds=2)))
        >>> recorded.values["rank"].shape, recorded.values["jumps"].tolist()
        ((2, 5), [0, 0])
    """
    fitted, steps, diverged_at = simulation.paths.fitted, simulation.paths.steps, simulation.paths.diverged_at
    found = rank_paths(fitted, steps, diverged_at, simulation.problem.scale)
    values = {
        "rank": found.rank.astype(np.int32),
        "ratio": found.ratio,
        "train_error": simulation.problem.train_error(fitted),
        "test_error": simulation.problem.test_error(fitted),
        "jumps": np.array(list(map(len, found.jumps)), np.int32),
        "diverged_at": diverged_at,
    }
    return _recorded(simulation, values)


def bytes_of_ranks(settings: Mapping[str, Any]) -> int:
    """The size of one record of `recorded_ranks`: the rank, and three numbers of double precision.

    Example:
        >>> bytes_of_ranks({"dimension": 20})
        28
    """
    return 4 + 3 * 8


def recorded_matrices(simulation: Simulation) -> CellResult:
    """The fitted matrices themselves, from which `holdfast jumps` makes its summary.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> simulation = simulate_completion(CompletionSettings(steps=200, every=50, seeds=2))
        >>> recorded_matrices(simulation).values["fitted"].shape
        (2, 5, 2, 2)
    """
    return _recorded(simulation, {"fitted": simulation.paths.fitted, "diverged_at": simulation.paths.diverged_at})


def _recorded(simulation: Simulation, values: dict[str, np.ndarray]) -> CellResult:
    """With the errors of offshoots, if there are any."""
    coordinates = {"step": simulation.paths.steps}
    if len(simulation.offshoot_steps):
        values = {**values, "offshoot_error": simulation.offshoot_errors}
        coordinates["offshoot"] = simulation.offshoot_steps
    dimensions = {name: VARIABLES[name][0] for name in values}
    return CellResult(values, dimensions, coordinates, {name: VARIABLES[name][1] for name in values})
