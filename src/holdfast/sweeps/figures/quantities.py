"""The quantities that a sweep's result can show, and the runs that have a number for each."""

import re
from collections.abc import Iterable

import numpy as np
import xarray as xr

from holdfast.core.outcome import Code
from holdfast.core.validation import require, suggestion
from holdfast.sweeps.recording import FAILED, QUANTILE, SEED_DIMENSION, STEP

ENDS = {"diverged": Code.DIVERGED, "converged": Code.CONVERGED}
"""Quantities that follow from the outcome of a run: 1 if it ended so, else 0."""
OUTCOME, DIVERGED_AT = "outcome", "diverged_at"
# Drawn by default: the first of these that the result has.
USUAL = ("spurious", "test_error")
# The long name of a variable whose numbers are codes looks like this: "0: finished, 1: converged".
CODES = re.compile(r"-?\d+: .+, -?\d+: ")


def quantities(data: xr.Dataset) -> list[str]:
    """The names of all quantities that can be drawn.

    Example:
        >>> quantities(xr.Dataset({"spurious": ("seed", [0.5]), "diverged_at": ("seed", [-1])}))
        ['spurious', 'diverged_at', 'diverged']
    """
    numbers = (str(name) for name, values in data.data_vars.items() if values.dtype.kind in "biuf" and values.size)
    known = [name for name in numbers if name not in ("finished", "seconds", FAILED, OUTCOME)]
    return [*known, *(each for each in ENDS if each not in data and is_ending(data, each))]


def usual_quantity(data: xr.Dataset, axes: Iterable[str] = ()) -> str:
    """The quantity to draw if none is named: the first one that has these axes.

    Example:
        >>> usual_quantity(xr.Dataset({"residual": ("seed", [1.0]), "spurious": ("seed", [0.5])}))
        'spurious'
        >>> usual_quantity(xr.Dataset({"spurious": ("seed", [0.5]), "rank": (("seed", "step"), [[1.0]])}), ["step"])
        'rank'
    """
    known = quantities(data)
    require(bool(known), "the sweep must have a finished cell with numbers", "none (see `holdfast sweep-status`)")
    wanted = {data[axis].dims[0] if axis in data.coords else axis for axis in axes}
    found = [each for each in (*USUAL, *known) if each in known]
    return next((each for each in found if each in data and wanted <= set(data[each].dims)), found[0])


def is_ending(data: xr.Dataset, name: str) -> bool:
    """Whether a quantity says how runs ended; a record of quantiles has the share of runs that diverged.

    Example:
        >>> is_ending(xr.Dataset({"diverged_at": ("seed", [-1])}), "diverged")
        True
    """
    if QUANTILE in data.dims:
        return name == "diverged" and name in data and QUANTILE not in data[name].dims
    return name in ENDS and (OUTCOME in data or (name == "diverged" and DIVERGED_AT in data))


def is_code(data: xr.Dataset, name: str) -> bool:
    """Whether the numbers of a quantity are codes, of which only shares of runs can be drawn.

    Example:
        >>> is_code(xr.Dataset({"phase": ("seed", [1], {"long_name": "1: growing, 2: grown"})}), "phase")
        True
    """
    return name in data and bool(CODES.match(str(data[name].attrs.get("long_name", ""))))


def runs_of(data: xr.Dataset, name: str) -> xr.Dataset:
    """A quantity run by run: its `value`, NaN where there is nothing to draw, and why, as a share of the run.

    The shares, each 0 or 1 for a single run, are `left_out` (it diverged, or, of `diverged_at`, it did not),
    `without_number`, `failed` and `unfinished`. Recorded quantiles are about all runs of a point.

    Args:
        data: the result of `holdfast.sweeps.open_sweep`.
        name: a variable, "diverged" or "converged".

    Example, one of two runs diverged:
        >>> data = xr.Dataset({"diverged_at": (("bias", "seed"), [[-1, 34]])}, {"bias": [0.0]})
        >>> runs_of(data, "diverged")["value"].values.tolist()
        [[0.0, 1.0]]
    """
    if name in data and (name == OUTCOME or (is_code(data, name) and QUANTILE in data[name].dims)):
        instead = ": draw diverged or converged" if name == OUTCOME else ", of which quantiles were recorded"
        raise ValueError(f"quantity must be numbers that can be drawn, got {name!r}, a code{instead}")
    known = quantities(data)
    require(name in known, f"quantity must be one of {', '.join(known)}", f"{name!r}{suggestion(name, known)}")
    if name in data:
        value = data[name].astype(float)
    elif name == "diverged" and DIVERGED_AT in data:
        value = _diverged(data, by_step=STEP in data.coords)
    else:
        value = (data[OUTCOME] == int(ENDS[name])).astype(float)
    every = xr.ones_like(value.isel({STEP: 0, QUANTILE: 0}, drop=True, missing_dims="ignore"), bool)
    finished = data.get("finished", every) == 1
    failed = data.get(FAILED, ~every) == 1
    left_out = xr.zeros_like(finished, float)
    if name == DIVERGED_AT:
        left_out = (value < 0).astype(float)
    elif not is_ending(data, name) and DIVERGED_AT in data and SEED_DIMENSION in value.dims:
        left_out = _diverged(data, by_step=STEP in value.dims)
    elif not is_ending(data, name) and {QUANTILE, STEP} <= {*value.dims} and "diverged" in data:
        left_out = data["diverged"]
    value = value.where(np.isfinite(value) & finished)
    empty = value.isnull()
    if QUANTILE in value.dims:  # they leave diverged runs out already
        empty = empty.all(QUANTILE)
    else:
        value = value.where(left_out == 0)
    shares = {
        "left_out": left_out * finished,
        "without_number": empty * finished * (1.0 - left_out),
        "failed": failed & ~finished,
        "unfinished": ~(failed | finished),
    }
    runs = xr.Dataset({"value": value, **shares}).drop_attrs()
    return runs.assign_coords({each: runs[each] for each in runs.dims})


def _diverged(data: xr.Dataset, *, by_step: bool) -> xr.DataArray:
    """1 for runs that have diverged, at each step or by the end; -1 in `diverged_at` means never."""
    at = data[DIVERGED_AT]
    return ((at >= 0) & (data[STEP] >= at) if by_step else at >= 0).astype(float)
