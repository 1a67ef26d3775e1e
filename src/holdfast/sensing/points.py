"""Points of a sweep: do their settings fit together, several computed as one simulation, and what is recorded of each.

Like `execute`, this needs jax, numpy and scipy only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.outcome import CODES_IN_WORDS, DIVERGED_AT, outcome_codes
from holdfast.core.run import Records
from holdfast.sensing.builder import SensingBuilder
from holdfast.sensing.settings import MEASURED, Settings
from holdfast.sensing.signals import MEANINGS
from holdfast.sensing.simulation import RECORDED, execute


def check_points(shared: Mapping[str, Any], swept: Mapping[str, Sequence[Any]]) -> None:
    """Raise an error if the settings of any point do not fit together.

    Settings of `SWEPT` do not depend on each other, so their values are checked together, not in all combinations.

    Args:
        shared: settings of all points.
        swept: values of settings of `SWEPT`.

    Example:
        >>> check_points({"dimension": 10, "batching": "pooled"}, {"batch_size": (100, 10**7)})
        Traceback (most recent call last):
        ValueError: batch_size must be at most 8388608 for pooled batches, got 10000000
    """
    # One simulation could not have several values of these, but each point of a sweep is a simulation of its own.
    fixed = shared.get("samples_per_environment") is not None
    one_by_one = [*(MEASURED if fixed else ()), *(("batch_size",) if shared.get("oracle", "law") != "law" else ())]
    first: dict[str, Any] = {name: values[0] for name, values in swept.items()}
    together: dict[str, Any] = {name: first[name] if name in one_by_one else swept[name] for name in swept}
    Settings(**shared, **together)
    for name in set(one_by_one) & set(swept):
        for value in swept[name]:
            Settings(**{**shared, **first, name: value})
    if "batch_size" in swept:  # pooled batches have a largest size
        first["batch_size"] = max(swept["batch_size"])
    SensingBuilder.of(Settings(**{**shared, **first}))


def execute_points(points: Sequence[Mapping[str, Any]], seeds: np.ndarray) -> list[Records]:
    """The records of every point, computed as one simulation; the points differ in settings of `SWEPT` only.

    Example:
        >>> shared = {"dimension": 10, "steps": 200, "oracle": "population"}
        >>> points = [{**shared, "bias": 1.0, "heterogeneity": 0.0}, {**shared, "bias": 0.5, "heterogeneity": 6.0}]
        >>> [one.values["spurious"][:, -1].round(1).tolist() for one in execute_points(points, np.arange(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """
    columns = {name: tuple(point[name] for point in points) for name in points[0]}
    swept = {name: tuple(dict.fromkeys(values)) for name, values in columns.items() if len(set(values)) > 1}
    settings = Settings(**{**points[0], **swept}, seeds=len(seeds), seed=int(seeds[0]))
    records = execute(settings, points=list(zip(*(columns[name] for name in settings.axes), strict=True)))
    rows = [slice(begin, begin + len(seeds)) for begin in range(0, len(points) * len(seeds), len(seeds))]
    return [
        Records(records.steps, {name: each[row] for name, each in records.values.items()}, records.diverged_at[row])
        for row in rows
    ]


def recorded_signals(records: Records) -> CellResult:
    """The signals of runs at every record, with their outcomes and the steps at which they diverged.

    Example:
        >>> recorded = recorded_signals(execute(Settings(dimension=10, steps=200, seeds=4, oracle="population")))
        >>> recorded.values["spurious"].shape, recorded.dimensions["spurious"]
        ((4, 21), ('step',))
    """
    dimensions = {name: ("step", "direction")[: values.ndim - 1] for name, values in records.values.items()}
    values = {**records.values, "outcome": outcome_codes(records), "diverged_at": records.diverged_at}
    meanings = {**MEANINGS, "outcome": CODES_IN_WORDS, "diverged_at": DIVERGED_AT}
    return CellResult(values, {**dimensions, "outcome": (), "diverged_at": ()}, {"step": records.steps}, meanings)


def bytes_of_signals(settings: Mapping[str, Any]) -> int:
    """The size of one record of one run.

    Example:
        >>> bytes_of_signals({"invariant_rank": 1, "dtype": "float64"})
        80
    """
    return (RECORDED + settings["invariant_rank"]) * (8 if settings.get("dtype") == "float64" else 4)
