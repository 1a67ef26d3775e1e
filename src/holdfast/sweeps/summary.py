"""The numbers of a figure: a quantity of a sweep along its axes, summarised over seeds, and what is missing in it."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.outcome import Code
from holdfast.core.progress import counted
from holdfast.core.statistics import proportion
from holdfast.core.validation import require, suggestion
from holdfast.plots.bands import BAND as LEVELS
from holdfast.sweeps.programs import FAILED, FINISHED, QUANTILE, SECONDS, SEED_DIMENSION, STEP

OverName = Literal["median", "mean", "share"]
OVER: dict[OverName, str] = {
    "median": "from the 10 % to the 90 % quantile",
    "mean": "of two standard errors",
    "share": "of 95 % confidence",
}
"""Statistics over seeds, and the band that each one has."""
BAND = dict(zip(("low", "middle", "high"), LEVELS, strict=True))
ENDS = {"diverged": Code.DIVERGED, "converged": Code.CONVERGED}
"""Quantities that follow from the outcome of a run: 1 if it ended so, else 0."""
OUTCOME, DIVERGED_AT = "outcome", "diverged_at"
# Drawn by default: the first of these that the result has.
USUAL = ("spurious", "test_error")
# The long name of a variable whose numbers are codes looks like this: "0: finished, 1: converged".
CODES = re.compile(r"-?\d+: .+, -?\d+: ")
# Settings are saved in single precision, so --at may miss the ends of an axis by this share.
ROUNDING = 1e-6
# An axis whose ratios are more even than its differences, by this factor, is drawn on a logarithmic scale.
EVEN = 1.2
FEW, NONE_LEFT = "from fewer than half of the runs", "no run left"
"""Marks of points of which few runs are left, or none."""


class SweepSummary(NamedTuple):
    """A quantity of a sweep, ready to be drawn.

    Attributes:
        quantity: its name.
        x, y: the axes to draw it over; y is None for lines.
        over: the statistic over seeds; "share" if the quantity is a share of runs by itself.
        fixed: axis -> the value at which it is fixed: the available one that is nearest to the value asked for.
        band: the numbers of each point: `middle`, NaN where no run is left, and `low` and `high`, the band
            around it; `FEW` and `NONE_LEFT` say where few runs, or none, are left.
        label: the label of the numbers.
        title: what the quantity means, over how many seeds; the axes that are fixed; and the runs that are left out,
            failed or not finished.
        has_band: whether there is a band around the middle.
        log_axes: those to be drawn on a logarithmic scale: such ranges of the design, and geometric lists.

    Example:
        >>> data = xr.Dataset({"spurious": (("bias", "seed"), [[1.0, 2.0, 3.0]])}, {"bias": [0.5]})
        >>> found = summarise_sweep(data, "bias", over="mean")
        >>> found.band.middle.values.tolist(), found.title
        ([2.0], 'spurious: mean over 3 seeds')
    """

    quantity: str
    x: str
    y: str | None
    over: OverName
    fixed: dict[str, Any]
    band: xr.Dataset
    label: str
    title: str
    has_band: bool
    log_axes: frozenset[str]

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares of runs."""
        return self.over == "share"


def quantities(data: xr.Dataset) -> list[str]:
    """The names of all quantities that can be drawn.

    Example:
        >>> quantities(xr.Dataset({"spurious": ("seed", [0.5]), "diverged_at": ("seed", [-1])}))
        ['spurious', 'diverged_at', 'diverged']
    """
    numbers = (str(name) for name, values in data.data_vars.items() if values.dtype.kind in "biuf" and values.size)
    known = [name for name in numbers if name not in (FINISHED, SECONDS, FAILED, OUTCOME)]
    sources = {"diverged": {OUTCOME, DIVERGED_AT}, "converged": {OUTCOME}} if QUANTILE not in data.dims else {}
    return [*known, *(name for name in sources if name not in data and sources[name] & {*data})]


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
    """The numbers that `holdfast.sweeps.plot_sweep` draws; it has the same arguments.

    Example:
        >>> data = xr.Dataset({"spurious": (("bias", "seed"), [[1.0, 2.0], [3.0, 5.0]])}, {"bias": [0.0, 1.0]})
        >>> summarise_sweep(data, "bias").band.middle.values.tolist()
        [1.5, 4.0]
    """
    drawn, at = [x, *([y] if y else [])], dict(at or {})
    require(over in OVER, f"over must be one of {', '.join(OVER)}", repr(over))
    require(bool(np.isfinite(threshold)), "threshold must be a finite number", threshold)
    name, known = quantity or usual_quantity(data, (*drawn, *at)), quantities(data)
    require(name in known, f"quantity must be one of {', '.join(known)}", f"{name!r}{suggestion(name, known)}")
    meaning = str(data[name].attrs.get("long_name", name)).removesuffix(", or -1") if name in data else name
    contract = f"over must be share for {name}, which is a code ({meaning}), with a threshold between codes"
    require(over == "share" or not CODES.match(meaning), f"{contract} (--over share --threshold 1.5)", repr(over))
    # a record of quantiles has the share of runs that diverged
    is_end = name not in data or (name in ENDS and QUANTILE in data.dims and QUANTILE not in data[name].dims)
    runs, fixed, where = _select(_runs(data, name, is_end), name, drawn, at)
    over, threshold = ("share", 0.5) if is_end else (over, threshold)
    band = _marked(_band(runs["value"], over, threshold), runs)
    notes = _notes(runs, int(data.attrs.get("seeds", 1)) if QUANTILE in data.dims else 1)
    none = f"none ({'; '.join(notes) or 'all are NaN'})"
    require(bool(band.middle.notnull().any()), f"{name} must have a number to draw", none)
    number = runs.sizes.get(SEED_DIMENSION, data.attrs.get("seeds"))
    seeds = "seeds" if number is None else counted(number, "seed")
    label, what = name.replace("_", " "), name if meaning == name else f"{name}, {meaning}"
    heading = seeds if number == 1 else f"{over} over {seeds}"
    if is_end:
        what = label = f"share of runs that {name}"
        heading = f"{seeds} at each point"
    elif over == "share":
        label, heading = f"share of seeds with {label} > {threshold:g}", f"share of {seeds} above {threshold:g}"
    scales = data.attrs.get("scales", {})
    is_log = {axis: scales[axis] == "log" if axis in scales else _is_geometric(runs[axis].values) for axis in drawn}
    return SweepSummary(
        name, x, y, over, fixed, band, label, "\n".join([f"{what}: {heading}", *where, *notes]),
        has_band=y is None and (runs.sizes.get(SEED_DIMENSION, 1) > 1 or QUANTILE in runs.sizes),
        log_axes=frozenset(axis for axis in drawn if is_log[axis]),
    )  # fmt: skip


def value_text(value: Any) -> str:
    """A value as a label: three digits, and all of those of a larger number.

    Example:
        >>> value_text(0.111803), value_text(20000), value_text("hetero")
        ('0.112', '20000', 'hetero')
    """
    if np.asarray(value).dtype.kind not in "iuf":
        return str(value)
    number = float(value)
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:g}"


def _diverged(data: xr.Dataset, *, by_step: bool) -> xr.DataArray:
    """1 for runs that have diverged, at each step or by the end; -1 in `diverged_at` means never."""
    at = data[DIVERGED_AT]
    return ((at >= 0) & (data[STEP] >= at) if by_step else at >= 0).astype(float)


def _runs(data: xr.Dataset, name: str, is_end: bool) -> xr.Dataset:
    """A quantity run by run: its `value`, NaN where there is nothing to draw, and why, as a share of the run.

    The shares, each 0 or 1 for a single run, are `left_out` (it diverged), `without_number`, `failed` and `unfinished`.
    Recorded quantiles are about all runs of a point, and leave out those that diverged.
    """
    if name in data:
        value = data[name].astype(float)
    elif name == "diverged" and DIVERGED_AT in data:
        value = _diverged(data, by_step=STEP in data.coords)
    else:
        value = (data[OUTCOME] == int(ENDS[name])).astype(float)
    every = xr.ones_like(value.isel({STEP: 0, QUANTILE: 0}, drop=True, missing_dims="ignore"), bool)
    finished, failed = data.get(FINISHED, every) == 1, data.get(FAILED, ~every) == 1
    left_out = xr.zeros_like(finished, float)
    if name == DIVERGED_AT:  # about the runs that diverged; the others have -1
        value = value.where(value >= 0)
    elif not is_end and DIVERGED_AT in data and SEED_DIMENSION in value.dims:
        left_out = _diverged(data, by_step=STEP in value.dims)
    elif not is_end and {QUANTILE, STEP} <= {*value.dims} and "diverged" in data:
        left_out = data["diverged"]
    value = value.where(np.isfinite(value) & finished)
    empty = value.isnull().all([QUANTILE] if QUANTILE in value.dims else [])
    shares = {
        "left_out": left_out * finished,
        "without_number": empty * finished * (1.0 - left_out),
        "failed": failed & ~finished,
        "unfinished": ~(failed | finished),
    }
    runs = xr.Dataset({"value": value if QUANTILE in value.dims else value.where(left_out == 0), **shares}).drop_attrs()
    return runs.assign_coords({each: runs[each] for each in runs.dims})


def _select(
    runs: xr.Dataset, quantity: str, drawn: Sequence[str], at: Mapping[str, Any]
) -> tuple[xr.Dataset, dict[str, Any], list[str]]:
    """The runs that are drawn, in the order of numbers; the values at which axes are fixed; and those in words.

    Steps that are neither drawn nor fixed are fixed at the last one, and so are axes with a single value.
    """
    axes = [str(name) for name, values in runs.coords.items() if values.ndim == 1 and name != QUANTILE]
    known = [name for name in axes if name != SEED_DIMENSION]
    for start, names, allowed in (("x and y must be", drawn, known), ("at must name", at, axes)):
        for name in names:
            why = '; steps are recorded by record = "trajectories" or "quantiles"' if name == STEP else ""
            contract = f"{start} axes of {quantity} ({', '.join(allowed)}){why}"
            require(name in allowed, contract, f"{name!r}{suggestion(name, known)}")
    require(len(set(drawn)) == len(drawn), "x and y must be different axes", repr(drawn[0]))
    for name in drawn:
        both = name in at or runs[name].dims[0] in at
        require(not both, "x and y must be axes that at (--at) does not fix", f"{name!r} in both")
    fixed = {}
    for name, value in at.items():
        fixed[name] = _nearest(name, runs[name].values, value)
        runs = runs.isel({runs[name].dims[0]: np.flatnonzero(runs[name].values == fixed[name])})
    words = [f"{name.replace('_', ' ')} {value_text(value)}" for name, value in fixed.items()]
    if STEP in runs.dims and STEP not in (*drawn, *at):
        runs = runs.isel({STEP: -1})
        words.append(f"{STEP} {value_text(runs[STEP].item())} (the last)")
    shown = {SEED_DIMENSION, QUANTILE, *(runs[name].dims[0] for name in drawn)}
    single = [str(name) for name, size in runs.sizes.items() if size == 1 and name not in shown]
    words += [f"{name.replace('_', ' ')} {value_text(runs[name].item())}" for name in single if name not in at]
    runs = runs.squeeze(single)
    ordered = runs.sortby([name for name in runs.dims if runs[name].dtype.kind in "iuf"])
    return ordered, fixed, [", ".join(words)] if words else []


def _nearest(name: str, labels: np.ndarray, value: Any) -> Any:
    """The label at which an axis is fixed."""
    if labels.dtype.kind in "iuf" and isinstance(value, int | float):
        contract = f"{name} must be fixed between {value_text(labels.min())} and {value_text(labels.max())}"
        rounding = ROUNDING * np.abs(labels).max()
        require(bool(labels.min() - rounding <= value <= labels.max() + rounding), contract, f"{value:g}")
        return labels[np.abs(labels - value).argmin()]
    texts = {str(label): label for label in labels.tolist()}
    require(str(value) in texts, f"{name} must be fixed at one of {', '.join(texts)}", repr(value))
    return texts[str(value)]


def _is_geometric(values: np.ndarray) -> bool:
    """Whether the ratios of neighbours are more even than their differences."""
    values = np.unique(values) if values.dtype.kind in "iuf" else values[:0]
    if len(values) < 3 or values[0] <= 0:
        return False
    ratios, differences = np.diff(np.log(values)), np.diff(values)
    return bool(EVEN * ratios.max() / ratios.min() < differences.max() / differences.min())


def _notes(runs: xr.Dataset, seeds: int) -> list[str]:
    """What the title says of runs that are not in the figure; seeds: the runs of each entry of `runs`."""
    words = {
        "left_out": "left out: {} runs that diverged",
        # quantiles do not say how many runs have none
        "without_number": f"no finite number: {'at least ' if QUANTILE in runs.dims else ''}{{}} runs",
        "failed": "failed: {} runs",
        "unfinished": "not finished: {} runs",
    }
    each, notes = runs["unfinished"], []
    for reason, text in words.items():
        ever = runs[reason].max([name for name in runs[reason].dims if name not in each.dims])  # at any step
        count = round(float(ever.sum()) * seeds)
        notes += [text.format(f"{count:,} of {each.size * seeds:,}")] if count else []
    return notes


def _marked(band: xr.Dataset, runs: xr.Dataset) -> xr.Dataset:
    """With the points of which fewer than half of the runs are left, or none of those that are finished."""
    seeds, finished = {*runs.dims} & {SEED_DIMENSION}, 1.0 - runs["failed"] - runs["unfinished"]
    left, is_there = finished - runs["left_out"] - runs["without_number"], band["middle"].notnull()
    return band.assign({FEW: is_there & (left.mean(seeds) < 0.5), NONE_LEFT: ~is_there & (finished.mean(seeds) > 0)})


def _band(values: xr.DataArray, over: OverName, threshold: float) -> xr.Dataset:
    if QUANTILE in values.dims:
        require(over == "median", "over must be median for quantiles over seeds", repr(over))
    elif SEED_DIMENSION not in values.dims:  # a share over seeds, such as `diverged` of quantiles
        return xr.Dataset(dict.fromkeys(BAND, values))
    elif over == "share":
        above, counts = (values > threshold).sum(SEED_DIMENSION), values.count(SEED_DIMENSION)
        shares = np.vectorize(lambda a, n: tuple(proportion(a, n)) if n else (np.nan,) * 3, otypes=[float] * 3)
        found = xr.apply_ufunc(shares, above, counts, output_core_dims=[[]] * 3)
        return xr.Dataset(dict(zip(("middle", "low", "high"), found, strict=True)))
    with warnings.catch_warnings():  # NaN is right where no run is left, and for the standard error of a single run
        warnings.filterwarnings("ignore", "All-NaN slice|Degrees of freedom", RuntimeWarning)
        if over == "mean":
            mean, deviation = values.mean(SEED_DIMENSION), values.std(SEED_DIMENSION, ddof=1)
            error = deviation / np.sqrt(values.count(SEED_DIMENSION))
            return xr.Dataset({"low": mean - 2 * error, "middle": mean, "high": mean + 2 * error})
        levels = values if QUANTILE in values.dims else values.quantile(list(BAND.values()), SEED_DIMENSION)
    return xr.Dataset({name: levels.sel({QUANTILE: at}, method="nearest", drop=True) for name, at in BAND.items()})
