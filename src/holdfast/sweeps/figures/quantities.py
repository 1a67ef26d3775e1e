"""What can be drawn of the result of a sweep, and which of its runs have a number to draw."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.outcome import Code
from holdfast.core.validation import require, suggestion
from holdfast.sweeps.recording import FAILED, QUANTILE, SEED_DIMENSION, STEP

ENDS = {"diverged": Code.DIVERGED, "converged": Code.CONVERGED}
"""Quantities that follow from the outcome of a run: 1 if it ended so, else 0."""
OUTCOME, DIVERGED_AT = "outcome", "diverged_at"
# What is drawn if nothing is named, the first that the result has.
USUAL = ("spurious", "test_error")
# Numbers that stand for something else have a meaning of this form: "0: finished, 1: converged".
CODES = re.compile(r"-?\d+: .+, -?\d+: ")


class Quantity(NamedTuple):
    """A quantity of every run of a sweep.

    Attributes:
        name: of it.
        meaning: in words; the name if there are none.
        values: over axes and seeds; NaN where a run has none to draw.
        finished: whether runs are computed.
        failed: whether their computation failed.
        left_out: the share of runs that are left out for how they ended: those that diverged, from the step at which
            they did, or for `diverged_at` the others. None: no run is.
        is_end: whether it is 1 for runs that ended in some way, and 0 for others, or the share of such runs.
        is_infinite: whether some of the numbers are infinite, and so not drawn.
        has_steps: whether the result has steps, of this quantity or of others.

    Example:
        >>> data = xr.Dataset({"error": (("bias", "seed"), [[1.0, np.nan]])}, {"bias": [0.0]})
        >>> find_quantity(data, "error").values.count().item()
        1
    """

    name: str
    meaning: str
    values: xr.DataArray
    finished: xr.DataArray
    failed: xr.DataArray
    left_out: xr.DataArray | None
    is_end: bool
    is_infinite: bool
    has_steps: bool


def find_quantity(data: xr.Dataset, name: str, *, by_step: bool = False) -> Quantity:
    """A quantity by its name.

    Args:
        data: of `holdfast.sweeps.open_sweep`.
        name: a variable, "diverged" or "converged".
        by_step: whether runs count as diverged only from the step at which they did, for "diverged".

    Example, how many of two runs diverged:
        >>> data = xr.Dataset({"diverged_at": (("bias", "seed"), [[-1, 34]])}, {"bias": [0.0]})
        >>> find_quantity(data, "diverged").values.values.tolist()
        [[0.0, 1.0]]
    """
    _refuse_codes(data, name)
    is_end, left_out = says_end(data, name), None
    if is_end and name not in data:
        if name == "diverged" and DIVERGED_AT in data:
            values = _diverged(data, by_step=by_step and STEP in data.coords).astype(float)
        else:
            values = (data[OUTCOME] == int(ENDS[name])).astype(float).drop_attrs()
    else:
        known = quantities(data)
        require(name in known, f"quantity must be one of {', '.join(known)}", f"{name!r}{suggestion(name, known)}")
        values = data[name].astype(float)
        left_out = _left_out(data, values)
    is_infinite = bool(np.isinf(values).any())
    finished = data["finished"] == 1 if "finished" in data else xr.ones_like(_runs(values), bool)
    failed = data[FAILED] == 1 if FAILED in data else xr.zeros_like(finished)
    usable = np.isfinite(values) & finished
    # The quantiles are already without the runs that diverged.
    values = values.where(usable if left_out is None or QUANTILE in values.dims else usable & (left_out == 0))
    unnamed = [each for each in values.dims if each not in values.coords and each != SEED_DIMENSION]
    values = values.assign_coords({each: np.arange(values.sizes[each]) for each in unnamed})
    meaning = str(values.attrs.get("long_name", name)).removesuffix(", or -1")  # which is not drawn
    return Quantity(
        name, meaning, values, finished.drop_attrs(), failed.drop_attrs(), left_out,
        is_end=is_end, is_infinite=is_infinite, has_steps=STEP in data.dims,
    )  # fmt: skip


def usual_quantity(data: xr.Dataset, axes: Iterable[str] = ()) -> str:
    """What is drawn of a result if nothing is named: the first that has these axes.

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


def quantities(data: xr.Dataset) -> list[str]:
    """What can be drawn of a result.

    Example:
        >>> quantities(xr.Dataset({"spurious": ("seed", [0.5]), "diverged_at": ("seed", [-1])}))
        ['spurious', 'diverged_at', 'diverged']
    """
    numbers = (str(name) for name, values in data.data_vars.items() if values.dtype.kind in "biuf" and values.size)
    known = [name for name in numbers if name not in ("finished", "seconds", FAILED, OUTCOME)]
    return [*known, *(each for each in ENDS if each not in data and says_end(data, each))]


def says_end(data: xr.Dataset, name: str) -> bool:
    """Whether a quantity says how runs ended; quantiles have the share of those that diverged.

    Example:
        >>> says_end(xr.Dataset({"diverged_at": ("seed", [-1])}), "diverged")
        True
    """
    if QUANTILE in data.dims:
        return name == "diverged" and name in data and QUANTILE not in data[name].dims
    return name in ENDS and (OUTCOME in data or (name == "diverged" and DIVERGED_AT in data))


def is_code(data: xr.Dataset, name: str) -> bool:
    """Whether the numbers of a quantity stand for something else, so that shares of runs are all that can be drawn.

    Example:
        >>> is_code(xr.Dataset({"phase": ("seed", [1], {"long_name": "1: growing, 2: grown"})}), "phase")
        True
    """
    return name in data and bool(CODES.match(str(data[name].attrs.get("long_name", ""))))


def _refuse_codes(data: xr.Dataset, name: str) -> None:
    if name in data and (name == OUTCOME or (is_code(data, name) and QUANTILE in data[name].dims)):
        instead = ": draw diverged or converged" if name == OUTCOME else ", of which quantiles were recorded"
        raise ValueError(f"quantity must be numbers that can be drawn, got {name!r}, a code{instead}")


def _diverged(data: xr.Dataset, *, by_step: bool) -> xr.DataArray:
    """Which runs have diverged, at every step or at all."""
    at = data[DIVERGED_AT].drop_attrs()
    return (at >= 0) & (data[STEP] >= at) if by_step else at >= 0


def _left_out(data: xr.Dataset, values: xr.DataArray) -> xr.DataArray | None:
    """See `Quantity`."""
    if values.name == DIVERGED_AT:
        return (values < 0).astype(float).drop_attrs()
    if DIVERGED_AT in data and SEED_DIMENSION in values.dims:
        return _diverged(data, by_step=STEP in values.dims).astype(float)
    if QUANTILE in values.dims and STEP in values.dims and "diverged" in data:
        return data["diverged"].drop_attrs()
    return None


def _runs(values: xr.DataArray) -> xr.DataArray:
    """One value for each run, of a result that does not say which are finished."""
    return values.isel({each: 0 for each in (STEP, QUANTILE) if each in values.dims}, drop=True)
