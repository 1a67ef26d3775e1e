"""What is recorded of a cell: final values, quantiles over seeds, or whole trajectories."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.validation import require
from holdfast.sweeps.designs import POINT

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
