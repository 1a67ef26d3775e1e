"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from holdfast.core.statistics import proportion
from holdfast.core.validation import require
from holdfast.plots.bands import BAND, style
from holdfast.sensing.outcome import Code
from holdfast.sweeps.programs import suggestion
from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION

OverName = Literal["median", "mean", "share"]
OVER: dict[OverName, str] = {
    "median": "median over seeds, band from the 10 % to the 90 % quantile",
    "mean": "mean over seeds, band of two standard errors",
    "share": "share of the seeds above the threshold, band of 95 %",
}
"""How the seeds of a point become one number, and a band."""
ENDS = {"diverged": Code.DIVERGED, "converged": Code.CONVERGED}
"""Quantities that follow from the outcome of a run: 1 if it ended so, else 0."""
MOST_LINES, MOST_PANELS = 8, 6
# Values that span more than this factor are drawn on a logarithmic scale: settings if evenly spaced on it, colours.
WIDE = 100.0


class _Summary(NamedTuple):
    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray


def plot_sweep(
    data: xr.Dataset,
    x: str,
    y: str | None = None,
    *,
    quantity: str | None = None,
    over: OverName = "median",
    threshold: float = 0.5,
    at: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw a quantity of a sweep: lines along x, or colours over x and y.

    Runs that diverged are left out, except from the quantities "diverged" and "converged". A further axis with several
    values becomes lines of several colours, or panels.

    Args:
        data: of `holdfast.sweeps.open_sweep`.
        x: an axis, or "step".
        y: a second axis, for a map.
        quantity: a variable, "diverged" or "converged"; by default the first of "spurious" and all variables.
        over: one of `OVER`.
        threshold: of the share.
        at: axis -> the value at which it is held; the nearest one is taken.

    Example, a signal that grows with the step size:
        >>> values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> data = xr.Dataset({"spurious": (("step_size", "seed"), values)}, {"step_size": [0.1, 0.2]})
        >>> figure = plot_sweep(data, "step_size")
        >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_xlabel()
        ([2.0, 5.0], 'step size')
    """
    name = quantity or ("spurious" if "spurious" in data else str(next(iter(data.data_vars))))
    values = _chosen(_quantity(data, name), dict(at or {}))
    for axis in (x, *([y] if y else [])):
        known = [each for each in values.coords if values[each].ndim == 1 and each not in (SEED_DIMENSION, QUANTILE)]
        require(
            axis in known, f"x and y must be axes ({', '.join(map(str, known))})", f"{axis!r}{suggestion(axis, known)}"
        )
    require(x != y, "x and y must be different axes", repr(x))
    require(over in OVER, f"over must be one of {', '.join(OVER)}", repr(over))
    summary = _summary(values, over, threshold)
    label = _words(name) if over != "share" else f"share of seeds with {_words(name)} > {threshold:g}"
    with style():
        return _lines(summary, x, label, over) if y is None else _maps(summary.middle, x, y, f"{label}, {over}")


def _quantity(data: xr.Dataset, name: str) -> xr.DataArray:
    if name in ENDS and "outcome" in data:
        values = (data["outcome"] == int(ENDS[name])).astype(float)
    elif name == "diverged" and "diverged_at" in data:
        values = (data["diverged_at"] >= 0).astype(float)
    else:
        known = [str(each) for each in data.data_vars if each not in ("finished", "checksum", "seconds")]
        require(name in known, f"quantity must be one of {', '.join(known)}", f"{name!r}{suggestion(name, known)}")
        values = data[name].astype(float)
        if "diverged_at" in data and SEED_DIMENSION in values.dims:
            values = values.where(data["diverged_at"] < 0)
    return values.where(data["finished"]) if "finished" in data else values


def _chosen(values: xr.DataArray, at: dict[str, Any]) -> xr.DataArray:
    for name, value in at.items():
        require(name in values.dims, f"at must name axes ({', '.join(map(str, values.dims))})", repr(name))
        labels = values[name].values
        position = int(np.abs(labels - value).argmin()) if labels.dtype.kind in "iuf" else labels.tolist().index(value)
        values = values.isel({name: position})
    return values


def _summary(values: xr.DataArray, over: OverName, threshold: float) -> _Summary:
    if QUANTILE in values.dims:
        require(over == "median", "over must be median for quantiles over seeds", repr(over))
        low, middle, high = (values.sel({QUANTILE: level}, method="nearest") for level in BAND)
        return _Summary(middle.drop_vars(QUANTILE), low.drop_vars(QUANTILE), high.drop_vars(QUANTILE))
    if SEED_DIMENSION not in values.dims:  # a share over seeds, such as `diverged` of quantiles
        return _Summary(values, values, values)
    if over == "median":
        found = values.quantile(list(BAND), SEED_DIMENSION)
        low, middle, high = (found.isel(quantile=number, drop=True) for number in range(3))
        return _Summary(middle, low, high)
    counts = values.count(SEED_DIMENSION)
    if over == "mean":
        mean, error = values.mean(SEED_DIMENSION), values.std(SEED_DIMENSION, ddof=0) / np.sqrt(counts)
        return _Summary(mean, mean - 2 * error, mean + 2 * error)
    above = (values > threshold).sum(SEED_DIMENSION)
    bands = [np.full(counts.shape, np.nan) for _ in range(3)]
    for position in np.ndindex(counts.shape):
        if counts.values[position]:
            share = proportion(int(above.values[position]), int(counts.values[position]))
            for band, number in zip(bands, (share.value, share.low, share.high), strict=True):
                band[position] = number
    return _Summary(*(counts.astype(float).copy(data=band) for band in bands))


def _lines(summary: _Summary, x: str, label: str, over: OverName) -> Figure:
    figure = Figure(figsize=(6.4, 4.4))
    axes = figure.subplots()
    middle = summary.middle
    along = middle[x].dims[0]
    if along != x:  # points of a list or a random design
        _cloud(axes, summary, x)
    else:
        others = [str(name) for name in middle.dims if name != x]
        lines = [()] if not others else list(np.ndindex(*(middle.sizes[name] for name in others)))
        what = f"x = {x!r} must leave at most {MOST_LINES} lines; hold other axes with at"
        require(len(lines) <= MOST_LINES, what, f"{len(lines)} lines over {', '.join(others)}")
        positions, ticks = _positions(middle[x].values)
        for number, position in enumerate(lines):
            low, mid, high = (part.isel(dict(zip(others, position, strict=True))) for part in summary._replace())
            mid, low, high = low, mid, high  # the summary has its middle first
            held = ", ".join(f"{_words(name)} {_text(mid[name].values)}" for name in others)
            colour = f"C{number}"
            axes.plot(
                positions, mid.values, color=colour, label=held or None, marker="o" if len(positions) < 30 else ""
            )
            axes.fill_between(positions, low.values, high.values, color=colour, alpha=0.15, linewidth=0)
        _label_axis(axes.xaxis, ticks)
        if others:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    if _is_log(middle[x].values):
        axes.set_xscale("log")
    axes.set(xlabel=_words(x), ylabel=label, title=OVER[over])
    axes.title.set_fontsize(9)
    return figure


def _cloud(axes: Axes, summary: _Summary, x: str) -> None:
    values = summary.middle
    others = [name for name in values.dims if name != values[x].dims[0]]
    require(
        not others,
        "x must be the only axis of a design of points; hold the others with at",
        ", ".join(map(str, others)),
    )
    positions, ticks = _positions(values[x].values)
    below, above = values.values - summary.low.values, summary.high.values - values.values
    axes.errorbar(
        positions, values.values, np.maximum([below, above], 0), fmt="o", markersize=4, elinewidth=0.8, alpha=0.8
    )
    _label_axis(axes.xaxis, ticks)


def _maps(values: xr.DataArray, x: str, y: str, label: str) -> Figure:
    points = values[x].dims == values[y].dims
    used = {values[x].dims[0], values[y].dims[0]}
    others = [str(name) for name in values.dims if name not in used]
    panels = [()] if not others else list(np.ndindex(*(values.sizes[name] for name in others)))
    what = f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels; hold other axes with at"
    require(len(panels) <= MOST_PANELS, what, f"{len(panels)} panels over {', '.join(others)}")
    figure = Figure(figsize=(1.4 + 4.4 * min(len(panels), 3), 4.2 * -(-len(panels) // 3)))
    grid = figure.subplots(-(-len(panels) // 3), min(len(panels), 3), squeeze=False)
    norm = _norm(values.values)
    image: Any = None
    for position, axes in zip(panels, grid.flat, strict=False):
        panel = values.isel(dict(zip(others, position, strict=True)))
        (columns, x_ticks), (rows, y_ticks) = _positions(panel[x].values), _positions(panel[y].values)
        for name, scale in ((x, axes.set_xscale), (y, axes.set_yscale)):
            if _is_log(panel[name].values):
                scale("log")
        if points:
            image = axes.scatter(
                columns, rows, c=panel.values, norm=norm, cmap="viridis", s=28, edgecolors="0.3", lw=0.3
            )
        else:
            edges = [_edges(at, _is_log(panel[name].values)) for name, at in ((x, columns), (y, rows))]
            image = axes.pcolormesh(*edges, panel.transpose(y, x).values, norm=norm, cmap="viridis", rasterized=True)
        _label_axis(axes.xaxis, x_ticks)
        _label_axis(axes.yaxis, y_ticks)
        held = ", ".join(f"{_words(name)} {_text(panel[name].values)}" for name in others)
        axes.set(xlabel=_words(x), ylabel=_words(y), title=held)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=grid.ravel().tolist(), pad=0.02).set_label(f"{label} (white: no run left)")
    return figure


def _norm(values: np.ndarray) -> Normalize:
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > WIDE * finite.min():
        return LogNorm(finite.min(), finite.max())
    return Normalize(finite.min(), finite.max()) if finite.size else Normalize(0.0, 1.0)


def _is_log(values: np.ndarray) -> bool:
    """Whether settings are better read on a logarithmic axis: wide, and not evenly spaced on a linear one."""
    if values.dtype.kind not in "iuf" or len(values) < 3 or values.min() <= 0 or values.max() < WIDE * values.min():
        return False
    gaps = np.diff(np.sort(values.astype(float)))
    return bool(gaps.max() > 2 * gaps.min())


def _positions(values: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Where values lie on an axis, and the labels of those that are no numbers."""
    if values.dtype.kind in "iuf":
        return values.astype(float), None
    names = list(dict.fromkeys(map(str, values)))
    return np.array([names.index(str(value)) for value in values], float), names


def _edges(centres: np.ndarray, logarithmic: bool) -> np.ndarray:
    if len(centres) == 1:
        return centres[0] + np.array([-0.5, 0.5]) * (abs(centres[0]) or 1.0)
    at = np.log(centres) if logarithmic else centres
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.exp(edges) if logarithmic else edges


def _label_axis(axis: Any, names: list[str] | None) -> None:
    if names is not None:
        axis.set_ticks(range(len(names)), names)


def _text(value: Any) -> str:
    return f"{float(value):g}" if np.asarray(value).dtype.kind in "iuf" else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")
