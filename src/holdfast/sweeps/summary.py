"""The numbers of a sweep: a quantity over some of its axes, with a band over the seeds."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.statistics import proportion
from holdfast.core.validation import require, suggestion
from holdfast.plots.bands import BAND
from holdfast.sensing.outcome import Code
from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION, STEP

OverName = Literal["median", "mean", "share"]
OVER: dict[OverName, str] = {
    "median": "from the 10 % to the 90 % quantile",
    "mean": "of two standard errors",
    "share": "of 95 %",
}
"""How the seeds of a point become one number, and the band around it."""
ENDS = {"diverged": Code.DIVERGED, "converged": Code.CONVERGED}
"""Quantities that follow from the outcome of a run: 1 if it ended so, else 0."""
OF_ALL_RUNS = ("outcome", "diverged_at")
"""Quantities that are about runs that diverged, too."""
# What is drawn if nothing is named, the first that the result has.
USUAL = ("spurious", "test_error")


class SeedBand(NamedTuple):
    """The seeds of each point as one number and a band.

    Attributes:
        middle: over the axes that are not fixed; NaN where no run is left.
        low, high: the band around it.

    Example:
        >>> SeedBand(*(xr.DataArray(value) for value in (1.0, 0.5, 2.0))).high.item()
        2.0
    """

    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray


class SweepSummary(NamedTuple):
    """A quantity of a sweep, ready to be drawn.

    Attributes:
        band: its numbers.
        label: what they are.
        title: what the quantity means, over how many seeds, what the band is, where axes are fixed, and how many runs
            are left out or not finished.
        is_share: whether the numbers are shares of runs.
        has_band: whether the band is more than its middle.
        left: the share of its runs from which each number comes, without those that diverged or are not computed yet;
            NaN where none is computed yet.

    Example:
        >>> data = xr.Dataset({"spurious": (("bias", "seed"), [[1.0, 2.0, 3.0]])}, {"bias": [0.5]})
        >>> found = summarise_sweep(data, "bias", over="mean")
        >>> found.band.middle.values.tolist(), found.title
        ([2.0], 'spurious: mean over 3 seeds, band of two standard errors')
    """

    band: SeedBand
    label: str
    title: str
    is_share: bool
    has_band: bool
    left: xr.DataArray


def summarise_sweep(
    data: xr.Dataset,
    x: str,
    y: str | None = None,
    *,
    quantity: str | None = None,
    over: OverName = "median",
    threshold: float = 0.5,
    at: Mapping[str, Any] | None = None,
) -> SweepSummary:
    """The numbers that `holdfast.sweeps.plot_sweep` draws; its arguments are the same.

    Example:
        >>> data = xr.Dataset({"spurious": (("bias", "seed"), [[1.0, 2.0], [3.0, 5.0]])}, {"bias": [0.0, 1.0]})
        >>> summarise_sweep(data, "bias").band.middle.values.tolist()
        [1.5, 4.0]
    """
    name, held = quantity or usual_quantity(data), dict(at or {})
    everything = _quantity(data, name, by_step=STEP in (x, y, *held))
    values = _chosen(everything, held)
    known = [str(each) for each in values.coords if values[each].ndim == 1 and each not in (SEED_DIMENSION, QUANTILE)]
    for axis in (x, *([y] if y else [])):
        contract = f"x and y must be axes ({', '.join(known)})"
        require(axis in known, contract, f"{axis!r}{suggestion(axis, known)}")
    require(x != y, "x and y must be different axes", repr(x))
    require(over in OVER, f"over must be one of {', '.join(OVER)}", repr(over))
    is_end = _is_end(data, name)
    of_all = is_end or name in OF_ALL_RUNS
    left = _left(data, everything, held, of_all=of_all)
    ordered = [axis for axis in values.dims if axis in (x, y) and values[axis].dtype.kind in "iuf"]
    values, left = values.sortby(ordered), left.sortby(ordered)
    if is_end:
        over, threshold, label = "share", 0.5, f"share of runs that {name}"  # each is 0 or 1
    else:
        label = in_words(name) if over != "share" else f"share of seeds with {in_words(name)} > {threshold:g}"
    band = _summary(values, over, threshold)
    has_band = y is None and (SEED_DIMENSION in values.dims or QUANTILE in values.dims)
    about = (
        _heading(data, values, name, over, threshold, has_band=has_band),
        ", ".join(f"{in_words(axis)} {value_text(values[axis].values)}" for axis in held),
        "" if of_all else _left_out(data, values, held),
        _unfinished(data),
    )
    title = "\n".join(filter(None, about))
    return SweepSummary(band, label, title, is_end or over == "share", has_band, left.transpose(*band.middle.dims))


def usual_quantity(data: xr.Dataset) -> str:
    """What is drawn of a result if nothing is named.

    Example:
        >>> usual_quantity(xr.Dataset({"residual": ("seed", [1.0]), "spurious": ("seed", [0.5])}))
        'spurious'
    """
    known = _variables(data)
    require(bool(known), "the sweep must have a finished cell with numbers", "none")
    return next(each for each in (*USUAL, *known) if each in data)


def quantities(data: xr.Dataset) -> list[str]:
    """What can be drawn of a result.

    Example:
        >>> quantities(xr.Dataset({"spurious": ("seed", [0.5]), "diverged_at": ("seed", [-1])}))
        ['spurious', 'diverged_at', 'diverged']
    """
    return [*_variables(data), *(each for each in ENDS if each not in data and _is_end(data, each))]


def _is_end(data: xr.Dataset, name: str) -> bool:
    """Whether a quantity says how runs ended; quantiles have the share of those that diverged."""
    if QUANTILE in data.dims:
        return name == "diverged" and name in data and QUANTILE not in data[name].dims
    return name in ENDS and ("outcome" in data or (name == "diverged" and "diverged_at" in data))


def _quantity(data: xr.Dataset, name: str, *, by_step: bool) -> xr.DataArray:
    if _is_end(data, name) and name not in data:
        if name == "diverged" and "diverged_at" in data:
            values = _diverged(data, by_step=by_step and STEP in data.coords).astype(float)
        else:
            values = (data["outcome"] == int(ENDS[name])).astype(float).drop_attrs()
    else:
        known = quantities(data)
        require(name in known, f"quantity must be one of {', '.join(known)}", f"{name!r}{suggestion(name, known)}")
        values = data[name].astype(float)
        if "diverged_at" in data and SEED_DIMENSION in values.dims and name not in OF_ALL_RUNS:
            values = values.where(~_diverged(data, by_step=STEP in values.dims))
    unnamed = [each for each in values.dims if each not in values.coords and each != SEED_DIMENSION]
    values = values.assign_coords({each: np.arange(values.sizes[each]) for each in unnamed})
    return values.where(_finished(data)) if "finished" in data else values


def _finished(data: xr.Dataset) -> xr.DataArray:
    """As it was saved: whoever masks a result makes numbers of it."""
    return data["finished"] == 1


def _diverged(data: xr.Dataset, *, by_step: bool) -> xr.DataArray:
    """Which runs have diverged, at every step or at all."""
    at = data["diverged_at"].drop_attrs()
    return (at >= 0) & (data[STEP] >= at) if by_step else at >= 0


def _left(data: xr.Dataset, values: xr.DataArray, at: dict[str, Any], *, of_all: bool) -> xr.DataArray:
    """The share of its runs from which each number comes; NaN where none is computed yet."""
    left = xr.ones_like(values).drop_attrs()
    if "diverged_at" in data and SEED_DIMENSION in values.dims and not of_all:
        left = left.where(~_diverged(data, by_step=STEP in values.dims), 0.0)
    elif QUANTILE in values.dims and STEP in values.dims and "diverged" in data:
        left = left * (1.0 - data["diverged"].drop_attrs())
    finished = xr.ones_like(left, bool) & (_finished(data) if "finished" in data else True)
    left, finished = _chosen(left.where(finished, 0.0), at), _chosen(finished, at)
    over = [each for each in (SEED_DIMENSION, QUANTILE) if each in left.dims]  # all quantiles have the same runs
    return left.mean(over).where(finished.any(over))


def _heading(
    data: xr.Dataset, values: xr.DataArray, name: str, over: OverName, threshold: float, *, has_band: bool
) -> str:
    """What is drawn, and how it comes from how many seeds."""
    number = values.sizes[SEED_DIMENSION] if SEED_DIMENSION in values.dims else data.attrs.get("seeds")
    seeds = "1 seed" if number == 1 else f"{number:,} seeds" if number else "seeds"
    band = f", band {OVER[over]}" if has_band else ""
    if _is_end(data, name):
        return f"share of runs that {name}, {seeds} at each point{band}"
    how = f"share of {seeds} above {threshold:g}" if over == "share" else f"{over} over {seeds}"
    meaning = values.attrs.get("long_name", name)
    return f"{name}: {how}{band}" if meaning == name else f"{name}: {meaning}\n{how}{band}"


def _left_out(data: xr.Dataset, values: xr.DataArray, at: dict[str, Any]) -> str:
    """How many of the runs of a figure have diverged by its last step."""
    by_step = STEP in data.coords and (STEP in values.dims or STEP in at)
    if "diverged_at" in data:
        gone = _diverged(data, by_step=by_step).astype(float)
    elif _is_end(data, "diverged"):
        gone = data["diverged"]
    else:
        return ""
    runs = _runs_of_a_value(data)
    gone = gone.where(_finished(data)) if "finished" in data else gone
    gone = _chosen(gone, {name: value for name, value in at.items() if name in gone.dims})
    gone = gone.isel({STEP: -1}) if STEP in gone.dims else gone
    count, total = round(float(gone.sum()) * runs), int(gone.count()) * runs
    since = ", each from the step on at which it did" if by_step else ""
    return f"left out: {count:,} of {total:,} runs that diverged{since}" if count else ""


def _runs_of_a_value(data: xr.Dataset) -> int:
    """1, or the number of seeds where quantiles over them are recorded."""
    return int(data.attrs.get("seeds", 1)) if QUANTILE in data.dims else 1


def _unfinished(data: xr.Dataset) -> str:
    """How many runs of the whole sweep are not computed yet, or failed."""
    if "finished" not in data or bool(_finished(data).all()):
        return ""
    runs = _runs_of_a_value(data)
    missing, total = int((~_finished(data)).sum()) * runs, data["finished"].size * runs
    return f"not finished: {missing:,} of {total:,} runs"


def _variables(data: xr.Dataset) -> list[str]:
    """Those that are numbers."""
    numbers = (str(name) for name, values in data.data_vars.items() if values.dtype.kind in "biuf" and values.size)
    return [name for name in numbers if name not in ("finished", "seconds")]


def _chosen(values: xr.DataArray, at: dict[str, Any]) -> xr.DataArray:
    for name, value in at.items():
        require(name in values.dims, f"at must name axes ({', '.join(map(str, values.dims))})", repr(name))
        labels = values[name].values
        numbers = labels.dtype.kind in "iuf" and isinstance(value, int | float)
        if numbers:
            contract = f"{name} must be fixed between {value_text(labels.min())} and {value_text(labels.max())}"
            rounding = 1e-6 * np.abs(labels).max()  # of values that are saved in single precision
            require(bool(labels.min() - rounding <= value <= labels.max() + rounding), contract, f"{value:g}")
        known = ", ".join(map(value_text, labels))
        require(numbers or value in labels.tolist(), f"{name} must be fixed at one of {known}", repr(value))
        position = int(np.abs(labels - value).argmin()) if numbers else labels.tolist().index(value)
        values = values.isel({name: position})
    return values


def _summary(values: xr.DataArray, over: OverName, threshold: float) -> SeedBand:
    if QUANTILE in values.dims:
        require(over == "median", "over must be median for quantiles over seeds", repr(over))
        low, middle, high = (values.sel({QUANTILE: level}, method="nearest") for level in BAND)
        return SeedBand(middle.drop_vars(QUANTILE), low.drop_vars(QUANTILE), high.drop_vars(QUANTILE))
    if SEED_DIMENSION not in values.dims:  # a share over seeds, such as `diverged` of quantiles
        return SeedBand(values, values, values)
    if over == "median":
        with warnings.catch_warnings():  # NaN where no run is left is what we want
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            found = values.quantile(list(BAND), SEED_DIMENSION)
        low, middle, high = (found.isel(quantile=number, drop=True) for number in range(3))
        return SeedBand(middle, low, high)
    counts = values.count(SEED_DIMENSION)
    if over == "mean":
        with warnings.catch_warnings():  # one run has no standard error: NaN, and no band
            warnings.filterwarnings("ignore", "Degrees of freedom", RuntimeWarning)
            mean, error = values.mean(SEED_DIMENSION), values.std(SEED_DIMENSION, ddof=1) / np.sqrt(counts)
        return SeedBand(mean, mean - 2 * error, mean + 2 * error)
    above = (values > threshold).sum(SEED_DIMENSION)
    bands = [np.full(counts.shape, np.nan) for _ in range(3)]
    for position in np.ndindex(counts.shape):
        if counts.values[position]:
            share = proportion(int(above.values[position]), int(counts.values[position]))
            for band, number in zip(bands, (share.value, share.low, share.high), strict=True):
                band[position] = number
    return SeedBand(*(counts.astype(float).copy(data=band) for band in bands))


def value_text(value: Any) -> str:
    """A value as a label: three digits, and all of those of a larger number."""
    if np.asarray(value).dtype.kind not in "iuf":
        return str(value)
    number = float(value)
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:g}"


def in_words(name: str) -> str:
    """The name of an axis or a quantity, for labels."""
    return name.replace("_", " ")
