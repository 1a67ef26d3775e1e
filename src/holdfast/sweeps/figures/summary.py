"""The numbers of a sweep: a quantity over some of its axes, with a band over the seeds."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.statistics import proportion
from holdfast.core.validation import require
from holdfast.plots.bands import BAND
from holdfast.sweeps.designs import ScaleName
from holdfast.sweeps.figures.labels import in_words
from holdfast.sweeps.figures.quantities import DIVERGED_AT, Quantity, find_quantity, is_code, usual_quantity
from holdfast.sweeps.figures.selection import ResultSlice, select
from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION, STEP

OverName = Literal["median", "mean", "share"]
OVER: dict[OverName, str] = {
    "median": "from the 10 % to the 90 % quantile",
    "mean": "of two standard errors",
    "share": "of 95 % confidence",
}
"""How the seeds of a point become one number, and the band around it."""
FEW, NONE_LEFT, NONE_DIVERGED, NOT_COMPUTED, NO_NUMBER = (
    "from fewer than half of the runs", "all runs diverged", "no run diverged", "not computed", "no number",
)  # fmt: skip


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

    def isel(self, indexers: Mapping[str, Any]) -> "SeedBand":
        """A part of it, as `isel` of an array."""
        return SeedBand(*(part.isel(indexers) for part in self))

    def bounded(self, which: xr.DataArray) -> "SeedBand":
        """Without the band where a condition does not hold."""
        return SeedBand(self.middle, self.low.where(which), self.high.where(which))


class SweepSummary(NamedTuple):
    """A quantity of a sweep, ready to be drawn.

    Attributes:
        quantity: its name.
        x, y: the axes to draw it over; without y along one.
        over: how seeds became one number; "share" where the quantity is a share of runs by itself.
        fixed: axis -> the value at which it is fixed, which may not be the one that was asked for.
        band: the numbers.
        label: what they are.
        heading: what the quantity means, and over how many seeds.
        notes: where axes are fixed, and which runs are left out, failed or not finished.
        is_share: whether the numbers are shares of runs.
        is_end: whether they are shares of runs that ended in some way.
        has_band: whether the band is more than its middle.
        marks: what is special about a number, or why there is none -> where that is so.
        scales: axis -> "linear" or "log", for those that a design has as ranges.

    Example:
        >>> data = xr.Dataset({"spurious": (("bias", "seed"), [[1.0, 2.0, 3.0]])}, {"bias": [0.5]})
        >>> found = summarise_sweep(data, "bias", over="mean")
        >>> found.band.middle.values.tolist(), found.title
        ([2.0], 'spurious: mean over 3 seeds, band of two standard errors')
    """

    quantity: str
    x: str
    y: str | None
    over: OverName
    fixed: dict[str, Any]
    band: SeedBand
    label: str
    heading: str
    notes: tuple[str, ...]
    is_share: bool
    is_end: bool
    has_band: bool
    marks: dict[str, xr.DataArray]
    scales: Mapping[str, ScaleName]

    @property
    def title(self) -> str:
        """Heading, band and notes."""
        return self.titled(f"band {self.interval}")

    @property
    def interval(self) -> str:
        """What the band is."""
        return OVER[self.over]

    def titled(self, band: str, *notes: str) -> str:
        """The title of a figure that shows the band as these words say, if there is one, with further notes."""
        heading = ", ".join(filter(None, (self.heading, band if self.has_band else "")))
        return "\n".join(filter(None, (heading, *self.notes, *notes)))


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
    drawn, fixed = [x, *([y] if y else [])], dict(at or {})
    require(over in OVER, f"over must be one of {', '.join(OVER)}", repr(over))
    require(bool(np.isfinite(threshold)), "threshold must be a finite number", threshold)
    name = quantity or usual_quantity(data, (*drawn, *fixed))
    found = find_quantity(data, name, by_step=STEP in (*drawn, *fixed))
    if is_code(data, name) and over != "share":
        contract = f"over must be share for {name}, which is a code ({found.meaning}), with a threshold between codes"
        raise ValueError(f"{contract} (--over share --threshold 1.5), got {over!r}")
    chosen = select(found, drawn, fixed)
    values = chosen.apply(found.values)
    if found.is_end:
        over, threshold, label = "share", 0.5, f"share of runs that {name}"  # each is 0 or 1
    else:
        label = in_words(name) if over != "share" else f"share of seeds with {in_words(name)} > {threshold:g}"
    band = _summary(values, over, threshold)
    has_band = y is None and (values.sizes.get(SEED_DIMENSION, 1) > 1 or QUANTILE in values.dims)
    runs = _Runs.of(found, chosen, int(data.attrs.get("seeds", 1)) if QUANTILE in data.dims else 1)
    excluded = runs.notes(found, drawn)
    notes = tuple(filter(None, (chosen.in_words, *excluded)))
    contract = f"{name} must have a number to draw"
    require(bool(band.middle.notnull().any()), contract, f"none ({'; '.join(excluded) or 'all are NaN'})")
    heading = _heading(data, found, values, over, threshold, runs, fixed)
    marks = {what: where.transpose(*band.middle.dims) for what, where in _marks(found, chosen, band.middle).items()}
    return SweepSummary(
        name, x, y, over, {axis: chosen.values[axis] for axis in fixed}, band, label, heading, notes,
        is_share=found.is_end or over == "share", is_end=found.is_end, has_band=has_band,
        marks=marks, scales=data.attrs.get("scales", {}),
    )  # fmt: skip


class _Runs(NamedTuple):
    """How many of the runs of a figure there are, and of each kind; somewhere: where some have no number."""

    all: int
    finished: int
    failed: int
    left_out: int
    without_number: int
    somewhere: str

    @classmethod
    def of(cls, found: Quantity, chosen: ResultSlice, seeds: int) -> "_Runs":
        """Each value of `finished` is for one run, or for all seeds where quantiles over them are recorded."""
        finished, failed = chosen.apply(found.finished), chosen.apply(found.failed)
        left_out, lost, somewhere = xr.zeros_like(finished, float), xr.zeros_like(finished), ""
        if found.left_out is not None:
            left_out = chosen.apply(found.left_out)
            left_out = (left_out.isel({STEP: -1}) if STEP in left_out.dims else left_out).where(finished, 0.0)
        if {SEED_DIMENSION, QUANTILE} & {*found.values.dims}:
            lost = chosen.apply(_without_number(found))
            further = [str(each) for each in lost.dims if each not in finished.dims]
            somewhere = f" at some {' or '.join(map(in_words, further))}" if further else ""
            lost = lost.max(further)
        kinds = (finished, failed & ~finished, left_out, lost)
        done, broken, out, without = (round(float(kind.sum()) * seeds) for kind in kinds)
        return cls(finished.size * seeds, done, broken, out, without, somewhere)

    def notes(self, found: Quantity, drawn: Sequence[str]) -> list[str]:
        """What the title of a figure says of runs that are not in it."""
        which = " that had diverged by then" if STEP in found.values.dims else " that diverged"
        which = ", each from the step at which it diverged" if STEP in drawn else which
        kind = "no finite number" if found.is_infinite else "no number"
        waiting = self.all - self.finished - self.failed
        least = "at least " if QUANTILE in found.values.dims else ""
        diverged = f"left out: {self.left_out:,} of {self.finished:,} runs{which}"
        return [
            *([diverged] if self.left_out and found.name != DIVERGED_AT else []),
            *(["no run diverged"] if found.name == DIVERGED_AT and self.left_out == self.finished > 0 else []),
            *(
                [f"{kind}{self.somewhere}: {least}{self.without_number:,} of {self.finished:,} runs"]
                if self.without_number
                else []
            ),
            *([f"failed: {self.failed:,} of {self.all:,} runs"] if self.failed else []),
            *([f"not finished: {waiting:,} of {self.all:,} runs"] if waiting else []),
        ]


def _without_number(found: Quantity) -> xr.DataArray:
    """The share of runs that are finished and not left out for how they ended, and still have no number.

    Quantiles do not say how many of them there are, unless no run has a number.
    """
    expected = found.finished * (1.0 if found.left_out is None else 1.0 - found.left_out)
    missing = found.values.isnull()
    return expected * (missing.all(QUANTILE) if QUANTILE in missing.dims else missing)


def _marks(found: Quantity, chosen: ResultSlice, middle: xr.DataArray) -> dict[str, xr.DataArray]:
    """What is special about a number, or why there is none."""
    finished, missing = chosen.apply(xr.ones_like(found.values, bool) & found.finished), middle.isnull()
    out = found.left_out if found.left_out is not None else xr.zeros_like(found.values).drop_attrs()
    out = chosen.apply(xr.zeros_like(found.values).drop_attrs() + out)
    # Quantiles are NaN where all runs are left out; otherwise each is about the same runs.
    used = xr.where(finished & chosen.apply(found.values).notnull(), 1.0 - out, 0.0)
    over = [each for each in (SEED_DIMENSION, QUANTILE) if each in finished.dims]
    computed, gone = finished.any(over), (out == 1).where(finished, True).all(over)
    left = used.mean(SEED_DIMENSION) if SEED_DIMENSION in over else used.max(over)
    return {
        FEW: ~missing & (left < 0.5),
        NONE_DIVERGED if found.name == DIVERGED_AT else NONE_LEFT: missing & computed & gone,
        NOT_COMPUTED: ~computed,
        NO_NUMBER: missing & computed & ~gone,
    }


def _heading(
    data: xr.Dataset,
    found: Quantity,
    values: xr.DataArray,
    over: OverName,
    threshold: float,
    runs: _Runs,
    fixed: Mapping[str, Any],
) -> str:
    """What is drawn, and how it comes from how many seeds."""
    number = values.sizes[SEED_DIMENSION] if SEED_DIMENSION in values.dims else data.attrs.get("seeds")
    seeds = "1 seed" if number == 1 else f"{number:,} seeds" if number else "seeds"
    if found.is_end:
        return f"share of runs that {found.name}, {seeds} at each point"
    if over == "share":
        how = f"share of {seeds} above {threshold:g}"
    elif found.name == DIVERGED_AT:
        how = f"{over} over the {runs.finished - runs.left_out:,} of {runs.finished:,} runs that diverged"
    else:
        how = seeds if number == 1 else f"{over} over {seeds}"
    meaning = "" if found.meaning == found.name else found.meaning
    if SEED_DIMENSION in fixed and over != "share":  # the notes say which
        return f"{found.name}: {meaning}" if meaning else found.name
    return f"{found.name}: {meaning}\n{how}" if meaning else f"{found.name}: {how}"


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
