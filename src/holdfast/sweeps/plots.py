"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from holdfast.core.validation import require
from holdfast.plots.bands import style
from holdfast.sweeps.designs import POINT
from holdfast.sweeps.summary import OverName, SeedBand, in_words, summarise_sweep, value_text

MOST_LINES, MOST_MARKERS, MOST_TICKS = 8, 30, 10
# A little more than 0 to 1, so that lines at the ends are whole.
SHARE_LIMITS = (-0.03, 1.03)
MOST_PANELS, PANELS_IN_A_ROW = 6, 3
# Values that span more than this factor are drawn on a logarithmic scale: settings if not evenly spaced, colours.
WIDE = 100.0
# Values are evenly spaced if their distances differ by less than this factor, which forgives rounded values.
EVEN = 1.05
# Width of a character of a tick label, and height of a line, as shares of an axis.
CHARACTER, LINE = 0.02, 0.05


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

    A run is left out from the step on at which it diverged, whatever was recorded; the title says how many there are.
    The quantities "diverged" and "converged" are shares of all runs. A further axis with several values becomes lines
    of several colours, or panels.

    Args:
        data: of `holdfast.sweeps.open_sweep`.
        x: an axis, "step", or "point" for the numbers of the points of a list or a random design.
        y: a second axis, for a map.
        quantity: a variable, "diverged" or "converged"; by default "spurious" or "test_error", if there is one.
        over: one of `OVER`; shares of runs do not need it.
        threshold: of the share.
        at: axis -> the value at which it is held; the nearest one is taken, and the title says which.

    Example, a signal that grows with the step size:
        >>> values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> data = xr.Dataset({"spurious": (("step_size", "seed"), values)}, {"step_size": [0.1, 0.2]})
        >>> figure = plot_sweep(data, "step_size")
        >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_xlabel()
        ([2.0, 5.0], 'step size')
    """
    found = summarise_sweep(data, x, y, quantity=quantity, over=over, threshold=threshold, at=at)
    with style():
        if y is None:
            return _lines(found.band, x, found.label, found.title, is_share=found.is_share)
        label = found.label if found.is_share else f"{over} of {found.label}"
        return _maps(found.band.middle, x, y, label, found.title, is_share=found.is_share)


def _lines(summary: SeedBand, x: str, label: str, title: str, *, is_share: bool) -> Figure:
    figure = Figure(figsize=(6.4, 4.4))
    axes = figure.subplots()
    middle = summary.middle
    positions, ticks = _positions(middle[x].values)
    if middle[x].dims[0] != x or x == POINT:  # points of a list or a random design
        _cloud(axes, summary, x, positions)
    else:
        others = [str(name) for name in middle.dims if name != x]
        lines = list(np.ndindex(*(middle.sizes[name] for name in others)))
        contract = f"x = {x!r} must leave at most {MOST_LINES} lines; hold other axes with at"
        require(len(lines) <= MOST_LINES, contract, f"{len(lines)} lines over {', '.join(others)}")
        for number, position in enumerate(lines):
            one = SeedBand(*(part.isel(dict(zip(others, position, strict=True))) for part in summary))
            held = ", ".join(f"{in_words(name)} {value_text(one.middle[name].values)}" for name in others)
            marker = "o" if len(positions) < MOST_MARKERS else ""
            axes.plot(positions, one.middle.values, color=f"C{number}", label=held, marker=marker)
            axes.fill_between(positions, one.low.values, one.high.values, color=f"C{number}", alpha=0.15, linewidth=0)
            alone = _alone(one.middle.values)  # a band needs two neighbours
            if alone.any():
                _bars(axes, SeedBand(*(part[alone] for part in one)), positions[alone], fmt="none", color=f"C{number}")
        if others:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    _scale_axis(axes.xaxis, middle[x].values, ticks)
    axes.set(xlabel=in_words(x), ylabel=label)
    if is_share:
        axes.set_ylim(*SHARE_LIMITS)
    axes.set_title(title, fontsize=9)
    return figure


def _cloud(axes: Axes, summary: SeedBand, x: str, positions: np.ndarray) -> None:
    middle = summary.middle
    others = [str(name) for name in middle.dims if name != middle[x].dims[0]]
    require(not others, "at must hold the other axes of a design of points", f"none for {', '.join(others)}")
    _bars(axes, summary, positions, fmt="o", markersize=4)


def _bars(axes: Axes, summary: SeedBand, positions: np.ndarray, **look: Any) -> None:
    """The band of single points, each as a bar."""
    values = summary.middle.values
    lengths = np.maximum([values - summary.low.values, summary.high.values - values], 0)
    axes.errorbar(positions, values, lengths, elinewidth=0.8, alpha=0.8, **look)


def _alone(values: np.ndarray) -> np.ndarray:
    """Which values have neighbours that are NaN, or none."""
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _maps(values: xr.DataArray, x: str, y: str, label: str, title: str, *, is_share: bool) -> Figure:
    used = {values[x].dims[0], values[y].dims[0]}
    others = [str(name) for name in values.dims if name not in used]
    panels = list(np.ndindex(*(values.sizes[name] for name in others)))
    contract = f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels; hold other axes with at"
    require(len(panels) <= MOST_PANELS, contract, f"{len(panels)} panels over {', '.join(others)}")
    columns, rows = min(len(panels), PANELS_IN_A_ROW), -(-len(panels) // PANELS_IN_A_ROW)
    figure = Figure(figsize=(2.0 + 4.0 * columns, 0.6 + 3.8 * rows))
    figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    grid = figure.subplots(rows, columns, squeeze=False)
    norm = Normalize(0.0, 1.0) if is_share else _norm(values.values)
    image: Any = None
    for position, axes in zip(panels, grid.flat, strict=False):
        panel = values.isel(dict(zip(others, position, strict=True)))
        image = _map(axes, panel, x, y, norm)
        held = ", ".join(f"{in_words(name)} {value_text(panel[name].values)}" for name in others)
        axes.set(xlabel=in_words(x), ylabel=in_words(y), title=held)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    white = " (white: no run left)" if np.isnan(values.values).any() else ""
    figure.colorbar(image, ax=grid.ravel().tolist(), pad=0.02).set_label(f"{label}{white}")
    return figure


def _map(axes: Axes, panel: xr.DataArray, x: str, y: str, norm: Normalize) -> Any:
    (right, x_ticks), (up, y_ticks) = _positions(panel[x].values), _positions(panel[y].values)
    look: dict[str, Any] = {"norm": norm, "cmap": "viridis"}
    if panel[x].dims == panel[y].dims:  # points of a list or a random design
        gone = np.isnan(panel.values)
        axes.scatter(right[gone], up[gone], s=28, facecolors="none", edgecolors="0.3", linewidths=0.6)
        image: Any = axes.scatter(right, up, c=panel.values, s=28, edgecolors="0.3", linewidths=0.3, **look)
    else:
        edges = [_edges(at, _is_log(panel[name].values)) for name, at in ((x, right), (y, up))]
        image = axes.pcolormesh(*edges, panel.transpose(y, x).values, rasterized=True, **look)
    _scale_axis(axes.xaxis, panel[x].values, x_ticks)
    _scale_axis(axes.yaxis, panel[y].values, y_ticks)
    return image


def _norm(values: np.ndarray) -> Normalize:
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > WIDE * finite.min():
        return LogNorm(finite.min(), finite.max())
    return Normalize(finite.min(), finite.max()) if finite.size else Normalize(0.0, 1.0)


def _is_log(values: np.ndarray) -> bool:
    """Whether settings are better read on a logarithmic axis: geometric, or wide and not evenly spaced."""
    if values.dtype.kind not in "iuf" or values.min() <= 0:
        return False
    ordered = np.unique(values.astype(float))
    if len(ordered) < 3:
        return False
    gaps, factors = np.diff(ordered), np.diff(np.log(ordered))
    if gaps.max() < EVEN * gaps.min():
        return False
    return bool(
        factors.max() < EVEN * factors.min() or (gaps.max() > 2 * gaps.min() and ordered[-1] > WIDE * ordered[0])
    )


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


def _scale_axis(axis: Any, values: np.ndarray, names: list[str] | None) -> None:
    """A logarithmic axis where it suits the values; ticks at the values if they are few, or have names."""
    if names is not None:
        axis.set_ticks(range(len(names)), names)
        return
    logarithmic, ticks = _is_log(values), np.unique(values).astype(float)
    if logarithmic:
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    if len(ticks) <= (MOST_MARKERS if logarithmic else MOST_TICKS):
        ticks = _thinned(ticks, np.log(ticks) if logarithmic else ticks, upwards=axis.axis_name == "y")
        axis.set_ticks(ticks, list(map(value_text, ticks)))
        axis.set_ticks([], minor=True)


def _thinned(ticks: np.ndarray, positions: np.ndarray, *, upwards: bool) -> np.ndarray:
    """Ticks whose labels do not touch, from the first on."""
    span = np.ptp(positions) or 1.0
    room = span * (LINE if upwards else CHARACTER * (2 + max(len(value_text(tick)) for tick in ticks)))
    chosen: list[int] = []
    for number, position in enumerate(positions):
        if not chosen or position - positions[chosen[-1]] >= room:
            chosen.append(number)
    return ticks[chosen]
