"""The numbers of a figure: a quantity of a sweep along its axes, summarised over seeds, and what is missing in it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.progress import counted
from holdfast.core.statistics import proportion
from holdfast.core.validation import require, suggestion
from holdfast.plots.bands import BAND
from holdfast.sweeps.designs import ScaleName
from holdfast.sweeps.figures.quantities import DIVERGED_AT, is_code, is_ending, runs_of, usual_quantity
from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION, STEP

OverName = Literal["median", "mean", "share"]
OVER: dict[OverName, str] = {
    "median": "from the 10 % to the 90 % quantile",
    "mean": "of two standard errors",
    "share": "of 95 % confidence",
}
"""Statistics over seeds, and the band that each one has."""
FEW, NONE_LEFT = "from fewer than half of the runs", "no run left"
# Settings are saved in single precision, so --at may miss the ends of an axis by this share.
ROUNDING = 1e-6


class SeedBand(NamedTuple):
    """The seeds of each point as one number and a band.

    Attributes:
        middle: the statistic, NaN where no run is left.
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
        quantity: its name.
        x, y: the axes to draw it over; y is None for lines.
        over: the statistic over seeds; "share" if the quantity is a share of runs by itself.
        fixed: axis -> the value at which it is fixed: the available one that is nearest to the value asked for.
        band: the numbers.
        label: the label of the numbers.
        title: what the quantity means, over how many seeds; the axes that are fixed; and the runs that are left out,
            failed or not finished.
        has_band: whether there is a band around the middle.
        marks: `FEW` and `NONE_LEFT` -> the points of which few runs, or none, are left.
        scales: axis -> "linear" or "log", for the ranges of a design.

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
    band: SeedBand
    label: str
    title: str
    has_band: bool
    marks: dict[str, xr.DataArray]
    scales: Mapping[str, ScaleName]

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares of runs."""
        return self.over == "share"


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
    name = quantity or usual_quantity(data, (*drawn, *at))
    runs, is_end = runs_of(data, name), is_ending(data, name)
    meaning = str(data[name].attrs.get("long_name", name)).removesuffix(", or -1") if name in data else name
    if is_code(data, name) and over != "share":
        contract = f"over must be share for {name}, which is a code ({meaning}), with a threshold between codes"
        raise ValueError(f"{contract} (--over share --threshold 1.5), got {over!r}")
    _check_axes(data, runs, name, drawn, at)
    runs, fixed, where = _select(runs, drawn, at)
    over, threshold = ("share", 0.5) if is_end else (over, threshold)
    band = _band(runs["value"], over, threshold)
    notes = _notes(runs, name, int(data.attrs.get("seeds", 1)) if QUANTILE in data.dims else 1)
    contract = f"{name} must have a number to draw"
    require(bool(band.middle.notnull().any()), contract, f"none ({'; '.join(notes) or 'all are NaN'})")
    number = runs.sizes.get(SEED_DIMENSION, data.attrs.get("seeds"))
    seeds = "seeds" if number is None else counted(number, "seed")
    what = name if meaning == name else f"{name}, {meaning}"
    label, heading = name.replace("_", " "), seeds if number == 1 else f"{over} over {seeds}"
    if is_end:
        what = label = f"share of runs that {name}"
        heading = f"{seeds} at each point"
    elif over == "share":
        label, heading = f"share of seeds with {label} > {threshold:g}", f"share of {seeds} above {threshold:g}"
    return SweepSummary(
        name, x, y, over, fixed, band, label, "\n".join([f"{what}: {heading}", *where, *notes]),
        has_band=y is None and (runs.sizes.get(SEED_DIMENSION, 1) > 1 or QUANTILE in runs.sizes),
        marks=_marks(runs, band.middle), scales=data.attrs.get("scales", {}),
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


def _check_axes(data: xr.Dataset, runs: xr.Dataset, quantity: str, drawn: Sequence[str], at: Mapping[str, Any]) -> None:
    """Axes must exist, and each must be either drawn or fixed."""
    axes = [str(name) for name, values in runs.coords.items() if values.ndim == 1 and name != QUANTILE]
    known = [name for name in axes if name != SEED_DIMENSION]
    why = ""
    if STEP not in axes:
        no_steps = 'steps are recorded by record = "trajectories" or "quantiles"'
        why = f"; {'it has one value for each run' if STEP in data.dims else no_steps}"
    for start, names, allowed in (("x and y must be", drawn, known), ("at must name", at, axes)):
        for name in names:
            contract = f"{start} axes of {quantity} ({', '.join(allowed)}){why if name == STEP else ''}"
            require(name in allowed, contract, f"{name!r}{suggestion(name, known)}")
    require(len(set(drawn)) == len(drawn), "x and y must be different axes", repr(drawn[0]))
    for name in drawn:
        both = name in at or runs[name].dims[0] in at
        require(not both, "x and y must be axes that at (--at) does not fix", f"{name!r} in both")


def _select(
    runs: xr.Dataset, drawn: Sequence[str], at: Mapping[str, Any]
) -> tuple[xr.Dataset, dict[str, Any], list[str]]:
    """The runs that are drawn, in the order of numbers; the values at which axes are fixed; and those in words.

    Steps that are neither drawn nor fixed are fixed at the last one, and so are axes with a single value.
    """
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


def _notes(runs: xr.Dataset, name: str, seeds: int) -> list[str]:
    """What the title says of runs that are not in the figure; seeds: the runs of each entry of `runs`."""
    # Quantiles do not say how many runs have no number.
    least = "at least " if QUANTILE in runs.dims else ""
    words = {
        "left_out": f"left out: {{}} runs that {'did not diverge' if name == DIVERGED_AT else 'diverged'}",
        "without_number": f"no finite number: {least}{{}} runs",
        "failed": "failed: {} runs",
        "unfinished": "not finished: {} runs",
    }
    each, notes = runs["unfinished"], []
    for reason, text in words.items():
        ever = runs[reason].max([name for name in runs[reason].dims if name not in each.dims])  # at any step
        count = round(float(ever.sum()) * seeds)
        notes += [text.format(f"{count:,} of {each.size * seeds:,}")] if count else []
    return notes


def _marks(runs: xr.Dataset, middle: xr.DataArray) -> dict[str, xr.DataArray]:
    """Where fewer than half of the runs are left, or none of those that are finished."""
    seeds = {*runs.dims} & {SEED_DIMENSION}
    finished = 1.0 - runs["failed"] - runs["unfinished"]
    left = finished - runs["left_out"] - runs["without_number"]
    marks = {FEW: middle.notnull() & (left.mean(seeds) < 0.5), NONE_LEFT: middle.isnull() & (finished.mean(seeds) > 0)}
    return {mark: where.transpose(*middle.dims) for mark, where in marks.items()}


def _band(values: xr.DataArray, over: OverName, threshold: float) -> SeedBand:
    if QUANTILE in values.dims:
        require(over == "median", "over must be median for quantiles over seeds", repr(over))
    elif SEED_DIMENSION not in values.dims:  # a share over seeds, such as `diverged` of quantiles
        return SeedBand(values, values, values)
    elif over == "share":
        above, counts = (values > threshold).sum(SEED_DIMENSION), values.count(SEED_DIMENSION)
        shares = np.vectorize(lambda a, n: tuple(proportion(a, n)) if n else (np.nan,) * 3, otypes=[float] * 3)
        return SeedBand(*xr.apply_ufunc(shares, above, counts, output_core_dims=[[]] * 3))
    with warnings.catch_warnings():  # NaN is right where no run is left, and for the standard error of a single run
        warnings.filterwarnings("ignore", "All-NaN slice|Degrees of freedom", RuntimeWarning)
        if over == "mean":
            mean, deviation = values.mean(SEED_DIMENSION), values.std(SEED_DIMENSION, ddof=1)
            error = deviation / np.sqrt(values.count(SEED_DIMENSION))
            return SeedBand(mean, mean - 2 * error, mean + 2 * error)
        levels = values if QUANTILE in values.dims else values.quantile(BAND, SEED_DIMENSION)
    low, middle, high = (levels.sel({QUANTILE: level}, method="nearest", drop=True) for level in BAND)
    return SeedBand(middle, low, high)
