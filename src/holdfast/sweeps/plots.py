"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from holdfast.core.validation import require
from holdfast.plots.bands import style
from holdfast.sweeps.designs import POINT
from holdfast.sweeps.scales import Scale
from holdfast.sweeps.summary import OverName, SeedBand, SweepSummary, in_words, summarise_sweep, value_text

MOST_LINES, MOST_MARKERS = 8, 30
# The style has this many colours; more lines take theirs from a map of ten.
COLOURS_OF_STYLE, MORE_COLOURS = 5, "tab10"
# A little more than 0 to 1, so that lines at the ends are whole.
SHARE_LIMITS = (-0.03, 1.03)
MOST_PANELS, PANELS_IN_A_ROW = 6, 3
# Values that span more than this factor are drawn on a logarithmic scale, in colours and upwards.
WIDE = 100.0
# Several points with the same string share this part of the distance to the next string.
SPREAD = 0.5
# Sizes of markers, and the side of a panel of a map, in points.
MARKER, POINT_SIZE, PANEL = 5.0, 6.0, 200.0
# Where the crosses of the first line lie above its panel, and those of the next ones above them, as shares of it.
ABOVE, ROW = 1.02, 0.03
TITLE_SIZE, CHARACTERS_AN_INCH = 9, 14

FEW, NONE_LEFT, NOT_COMPUTED, NO_NUMBER = (
    "from fewer than half of the runs", "all finished runs diverged", "not computed yet", "no number",
)  # fmt: skip
MARKS: dict[str, dict[str, Any]] = {
    FEW: {"marker": "o", "markerfacecolor": "white", "markeredgecolor": "0.2"},
    NONE_LEFT: {"marker": "x", "markeredgecolor": "0.2"},
    NOT_COMPUTED: {"marker": "s", "markerfacecolor": "white", "markeredgecolor": "0.6"},
    NO_NUMBER: {"marker": "_", "markeredgecolor": "0.2"},
}
"""How points that are not like the others are marked; a legend names those that occur."""


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
    A marker is hollow where fewer than half of the runs are left, and a cross stands where all of them diverged. The
    quantities "diverged" and "converged" are shares of all runs. A further axis with several values becomes lines of
    several colours, or panels. Strings and the points of a list or a random design are not joined by lines.

    Args:
        data: of `holdfast.sweeps.open_sweep`.
        x: an axis, "step", or "point" for the numbers of the points of a list or a random design.
        y: a second axis, for a map.
        quantity: a variable, "diverged" or "converged"; by default "spurious" or "test_error", if there is one.
        over: one of `OVER`; shares of runs do not need it.
        threshold: of the share.
        at: axis -> the value at which it is fixed; the nearest one is taken, and the title says which.

    Example, a signal that grows with the step size:
        >>> values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> data = xr.Dataset({"spurious": (("step_size", "seed"), values)}, {"step_size": [0.1, 0.2]})
        >>> figure = plot_sweep(data, "step_size")
        >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_xlabel()
        ([2.0, 5.0], 'step size')
    """
    found = summarise_sweep(data, x, y, quantity=quantity, over=over, threshold=threshold, at=at)
    known, middle = data.attrs.get("scales", {}), found.band.middle
    scales = {name: Scale.of(middle[name], known.get(name)) for name in (x, y) if name}
    with style():
        if y is None:
            return _lines(found, x, scales[x])
        label = found.label if found.is_share else f"{over} of {found.label}"
        return _maps(found, x, y, scales, label)


def _figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height))
    lines = (textwrap.fill(line, int(width * CHARACTERS_AN_INCH)) for line in title.splitlines())
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=TITLE_SIZE)
    return figure


def _name_marks(figure: Figure, found: SweepSummary, names: Iterable[str]) -> None:
    """A legend of those marks that occur, below the panels."""
    marked = _marked(found.band.middle.values, found.left.values)
    met = [name for name in names if marked[name].any()]
    if met:
        handles = [Line2D([], [], linestyle="none", label=name, **MARKS[name]) for name in met]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def _marked(values: np.ndarray, left: np.ndarray) -> dict[str, np.ndarray]:
    """Which numbers have which of `MARKS`, from the shares of their runs that are left."""
    missing = np.isnan(values)
    return {
        FEW: ~missing & (left < 0.5),
        NONE_LEFT: missing & (left == 0),
        NOT_COMPUTED: np.isnan(left),
        NO_NUMBER: missing & (left > 0),
    }


def _lines(found: SweepSummary, x: str, scale: Scale) -> Figure:
    middle = found.band.middle
    others = [str(name) for name in middle.dims if name != middle[x].dims[0]]
    lines = list(np.ndindex(*(middle.sizes[name] for name in others)))
    contract = f"x = {x!r} must leave at most {MOST_LINES} lines; fix other settings with at"
    require(len(lines) <= MOST_LINES, contract, f"{len(lines)} lines over {', '.join(others)}")
    figure = _figure(6.4, 4.4, found.title)
    axes = figure.subplots()
    is_joined = scale.names is None and middle[x].dims == (x,) and x != POINT
    draw, every = (_curve, 1 + middle.sizes[x] // MOST_MARKERS) if is_joined else (_bars, 1)
    marked = _LineMarks(axes, every)
    for number, (where, positions) in enumerate(zip(lines, _side_by_side(scale, len(lines)), strict=True)):
        at = dict(zip(others, where, strict=True))
        one, left = SeedBand(*(part.isel(at) for part in found.band)), found.left.isel(at)
        fixed = ", ".join(f"{in_words(name)} {value_text(one.middle[name].values)}" for name in others)
        colour = _colour(number, len(lines))
        draw(axes, one, positions, color=colour, label=fixed)
        marked.add(positions, one.middle.values, left.values, colour)
    if others:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    _name_marks(figure, found, (FEW, NONE_LEFT))
    scale.apply(axes.xaxis)
    axes.set(xlabel=in_words(x), ylabel=found.label)
    if found.is_share:
        axes.set_ylim(*SHARE_LIMITS)
    elif _is_wide(middle.values):
        axes.set_yscale("log")
    return figure


@dataclass
class _LineMarks:
    """Marks of points along lines from which few runs, or none, are left.

    Attributes:
        axes: of the figure.
        every: how many points of a line there are for each that is marked.
        crossed: lines that have crosses, each in a row of its own above the panel.
    """

    axes: Axes
    every: int
    crossed: int = 0

    def add(self, positions: np.ndarray, values: np.ndarray, left: np.ndarray, colour: Any) -> None:
        """Those of one line."""
        marked = _marked(values, left)
        few, gone = (np.flatnonzero(marked[name])[:: self.every] for name in (FEW, NONE_LEFT))
        look: dict[str, Any] = {"color": colour, "linestyle": "none", "markersize": MARKER, "zorder": 3}
        if few.size:
            self.axes.plot(positions[few], values[few], **look, marker="o", markerfacecolor="white")
        if gone.size:
            above, in_panel = np.full(gone.size, ABOVE + ROW * self.crossed), self.axes.get_xaxis_transform()
            self.axes.plot(positions[gone], above, **look, marker="x", transform=in_panel, clip_on=False)
            self.crossed += 1


def _colour(number: int, count: int) -> Any:
    """Of a line, looked up here since the style ends before the figure is saved."""
    return to_hex(f"C{number}") if count <= COLOURS_OF_STYLE else matplotlib.colormaps[MORE_COLOURS](number)


def _side_by_side(scale: Scale, lines: int) -> np.ndarray:
    """The positions of each line; those of the same string lie next to each other."""
    if scale.names is None:
        return np.tile(scale.positions, (lines, 1))
    text = scale.positions.astype(int)
    size, order = np.bincount(text), np.argsort(text, kind="stable")
    rank = np.empty(len(text), int)
    rank[order] = np.arange(len(text)) - (np.cumsum(size) - size)[text[order]]
    share = (lines * rank + np.arange(lines)[:, None] + 0.5) / (lines * size[text])
    return text + SPREAD * (share - 0.5)


def _curve(axes: Axes, band: SeedBand, positions: np.ndarray, *, color: Any, label: str) -> None:
    marker = "o" if len(positions) < MOST_MARKERS else ""
    axes.plot(positions, band.middle.values, color=color, label=label, marker=marker, markersize=MARKER)
    axes.fill_between(positions, band.low.values, band.high.values, color=color, alpha=0.15, linewidth=0)
    alone = _alone(band.middle.values)  # a band needs two neighbours
    if alone.any():
        _bars(axes, SeedBand(*(part[alone] for part in band)), positions[alone], color=color, fmt="none")


def _bars(axes: Axes, band: SeedBand, positions: np.ndarray, **look: Any) -> None:
    """Single points, each with its band as a bar."""
    values = band.middle.values
    lengths = np.maximum([values - band.low.values, band.high.values - values], 0)
    axes.errorbar(positions, values, lengths, **{"fmt": "o", "markersize": MARKER, "elinewidth": 0.8, **look})


def _alone(values: np.ndarray) -> np.ndarray:
    """Which values have neighbours that are NaN, or none."""
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _maps(found: SweepSummary, x: str, y: str, scales: Mapping[str, Scale], label: str) -> Figure:
    values = found.band.middle
    used = {values[x].dims[0], values[y].dims[0]}
    contract = "x and y must be two axes of the result, or two settings of the points of a list or a random design"
    require(len(used) == 1 or used == {x, y}, contract, f"{x!r} and {y!r}")
    others = [str(name) for name in values.dims if name not in used]
    panels = list(np.ndindex(*(values.sizes[name] for name in others)))
    contract = f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels; fix other settings with at"
    require(len(panels) <= MOST_PANELS, contract, f"{len(panels)} panels over {', '.join(others)}")
    rows = -(-len(panels) // PANELS_IN_A_ROW)
    columns = -(-len(panels) // rows)  # four are two by two
    figure = _figure(2.0 + 4.0 * columns, 0.6 + 3.8 * rows, found.title)
    grid = figure.subplots(rows, columns, squeeze=False)
    norm = Normalize(0.0, 1.0) if found.is_share else _norm(values.values)
    image: Any = None
    for position, axes in zip(panels, grid.flat, strict=False):
        at = dict(zip(others, position, strict=True))
        panel = values.isel(at)
        image = _map(axes, panel, found.left.isel(at), x, y, scales, norm)
        fixed = ", ".join(f"{in_words(name)} {value_text(panel[name].values)}" for name in others)
        axes.set(xlabel=in_words(x), ylabel=in_words(y), title=fixed)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=grid.ravel().tolist(), pad=0.02).set_label(label)
    _name_marks(figure, found, MARKS)
    return figure


def _map(
    axes: Axes, panel: xr.DataArray, left: xr.DataArray, x: str, y: str, scales: Mapping[str, Scale], norm: Normalize
) -> Any:
    right, up = scales[x].positions, scales[y].positions
    look: dict[str, Any] = {"norm": norm, "cmap": "viridis"}
    is_grid = panel[x].dims != panel[y].dims
    if is_grid:
        panel, left = panel.transpose(y, x), left.transpose(y, x)
        image: Any = axes.pcolormesh(scales[x].edges(), scales[y].edges(), panel.values, rasterized=True, **look)
        axes.grid(visible=False)
        right, up = np.meshgrid(right, up)
    else:  # points of a list or a random design
        image = axes.scatter(right, up, c=panel.values, s=POINT_SIZE**2, edgecolors="0.3", linewidths=0.3, **look)
    for name, which in _marked(panel.values, left.values).items():
        if which.any() and not (is_grid and name == NOT_COMPUTED):  # the cell stays empty
            # Smaller than a cell, and than a point whose colour is to be seen around it.
            size = PANEL / 2 / max(panel.shape) if is_grid else POINT_SIZE / 2 if name == FEW else MARKER
            size = min(size, MARKER)
            shape: dict[str, Any] = {"linestyle": "none", "markersize": size, "markeredgewidth": size / MARKER}
            axes.plot(right[which], up[which], **shape, **MARKS[name])
    scales[x].apply(axes.xaxis)
    scales[y].apply(axes.yaxis)
    return image


def _is_wide(values: np.ndarray) -> bool:
    """Whether numbers are better read on a logarithmic scale."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and finite.min() > 0 and finite.max() > WIDE * finite.min())


def _norm(values: np.ndarray) -> Normalize:
    finite = values[np.isfinite(values)]
    if _is_wide(values):
        return LogNorm(finite.min(), finite.max())
    return Normalize(finite.min(), finite.max()) if finite.size else Normalize(0.0, 1.0)
