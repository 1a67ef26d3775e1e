"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from holdfast.core.validation import require
from holdfast.plots.bands import panel_grid, style
from holdfast.sweeps.designs import POINT, SCALES, ScaleName
from holdfast.sweeps.figures.summary import FEW, NONE_LEFT, OVER, OverName, SweepSummary, summarise_sweep, value_text

# More lines, bands or panels than these hide each other, or are too small.
MOST_LINES, MOST_BANDS, MOST_PANELS, PANELS_ABREAST = 16, 4, 6, 3
# The points of a list are named by their settings if they are few; of more names than this, some have no tick. Names
# with more characters in all are written upwards.
MOST_NAMES, MOST_CHARACTERS = 12, 45
# Values that span more than this factor are drawn on a logarithmic scale. So are those of an axis whose ratios are more
# even than their differences, by the second factor.
WIDE, EVEN = 100.0, 1.2
# Points at the same text share this part of the distance to the next text.
SPREAD = 0.5
MARKS: dict[str, dict[str, Any]] = {
    FEW: {"marker": "o", "markerfacecolor": "white", "linestyle": "none"},
    NONE_LEFT: {"marker": "x", "linestyle": "none"},
}
"""How points are marked from which few runs are left, or none."""


def plot_sweep(
    data: xr.Dataset,
    x: str,
    y: str | None = None,
    *,
    quantity: str | None = None,
    over: OverName = "median",
    threshold: float = 0.5,
    at: Mapping[str, Any] | None = None,
    scale: ScaleName | None = None,
) -> Figure:
    """Draw a quantity of a sweep: lines along x, or colours over x and y.

    A run is left out from the step at which it diverged; the title says how many there are, and how many have no finite
    number, failed or are not finished. A marker is hollow where fewer than half of the runs are left, and a cross
    stands where none is left. The quantities "diverged" and "converged" are shares of all runs, and "diverged_at" is
    about those that diverged. A further axis with several values becomes lines or panels, and so do settings of points
    that are texts. Texts and the points of a list or a random design are not joined by lines.

    Args:
        data: the result of `holdfast.sweeps.open_sweep`.
        x: an axis, "step", or "point" for the points of a list or a random design in their order.
        y: a second axis, for a map.
        quantity: a variable, "diverged" or "converged"; by default "spurious" or "test_error", if there is one.
        over: one of `OVER`; shares of runs do not need it.
        threshold: of the share.
        at: axis, or setting of points -> the value at which it is fixed; the nearest one is taken, and the title says
            which. Steps are fixed at the last one if they are not drawn.
        scale: of the quantity; by default "log" if its numbers span more than a factor of 100.

    Example, a signal that grows with the step size:
        >>> values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        >>> data = xr.Dataset({"spurious": (("step_size", "seed"), values)}, {"step_size": [0.1, 0.2]})
        >>> figure = plot_sweep(data, "step_size")
        >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_xlabel()
        ([2.0, 5.0], 'step size')
    """
    return draw_summary(summarise_sweep(data, x, y, quantity=quantity, over=over, threshold=threshold, at=at), scale)


def draw_summary(found: SweepSummary, scale: ScaleName | None = None) -> Figure:
    """Draw a summary, as `plot_sweep` does.

    Example:
        >>> data = xr.Dataset({"error": (("bias", "seed"), [[1.0, 2.0], [3.0, 5.0]])}, {"bias": [0.0, 1.0]})
        >>> draw_summary(summarise_sweep(data, "bias", over="mean"), "log").axes[0].get_yscale()
        'log'
    """
    require(scale in (None, *SCALES), f"scale must be one of {', '.join(SCALES)}", repr(scale))
    with style():
        return _draw_lines(found, scale) if found.y is None else _draw_map(found, found.y, scale)


def _draw_lines(found: SweepSummary, scale: ScaleName | None) -> Figure:
    """A line, or points with bars where x is not a number, for each value of further axes."""
    x, (table, further) = found.x, _table(found, [found.x])
    is_number = table[x].dtype.kind in "iuf"
    is_joined = is_number and found.band.middle[x].dims == (x,) != (POINT,)
    table["at"] = table[x] if is_number else _beside(table[x])
    lines = _groups(table, further, MOST_LINES, f"x = {x!r} must leave at most {MOST_LINES} lines")
    has_bands = found.has_band and (len(lines) <= MOST_BANDS or not is_joined)
    is_log = _is_log(found, scale)
    band = f"{'band' if is_joined else 'bars'} {OVER[found.over]}"
    band += ", none where it would reach 0 or less" if is_log and (table["low"] <= 0).any() else ""
    figure, (axes,) = panel_grid(1, 1, (6.4, 4.4), (0.0, 0.0))
    _describe(figure, found, band if has_bands else f"no bands (more than {MOST_BANDS} lines)")
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    if len(lines) > len(colours):
        colours = list(map(to_hex, matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(lines)))))
    # Each line is thinner than those before it, so that one below another can be seen.
    widths, crossed = np.linspace(3.4, 1.4, len(lines) + 1)[1:], 0
    for (values, line), colour, width in zip(lines, colours, widths, strict=False):
        at, low, high = line["at"], line["low"].where((line["low"] > 0) | (not is_log)), line["high"]
        look = {"color": colour, "linewidth": width, "markersize": 2.5 + width}
        label = ", ".join(map(value_text, values))
        axes.plot(at, line["middle"], "o-" if is_joined else "o", label=label, **look)
        if has_bands and is_joined:  # its border is the bar of a point without neighbours
            axes.fill_between(at, low, high, facecolor=(colour, 0.15), edgecolor=(colour, 0.5), linewidth=0.8)
        elif has_bands:
            axes.vlines(at, low, high, colour, linewidth=0.8)
        few, gone = line[line[FEW]], line[line[NONE_LEFT]]
        if len(few):
            axes.plot(few["at"], few["middle"], color=colour, **MARKS[FEW])
        if len(gone):  # above the panel, in a row for each line
            height, crossed = np.full(len(gone), 1.02 + 0.03 * crossed), crossed + 1
            above = axes.get_xaxis_transform()
            axes.plot(gone["at"], height, color=colour, transform=above, clip_on=False, **MARKS[NONE_LEFT])
    _label(axes, "x", found, x, table, named=not is_number)
    axes.set(ylabel=found.label, yscale="log" if is_log else "linear")
    if found.is_share and not is_log:
        axes.set_ylim(-0.03, 1.03)  # lines at the ends are whole
    if further:
        title = ", ".join(further).replace("_", " ")
        axes.legend(title=title, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, alignment="left")
    return figure


def _draw_map(found: SweepSummary, y: str, scale: ScaleName | None) -> Figure:
    """A panel for each value of further axes, with cells of equal size; the points of a design are dots."""
    x, middle, (table, further) = found.x, found.band.middle, _table(found, [found.x, y])
    dimensions = {middle[x].dims[0], middle[y].dims[0]}
    contract = "x and y must be two axes of the result, or two settings of the points of a list or a random design"
    require(len(dimensions) == 1 or dimensions == {x, y}, contract, f"{x!r} and {y!r}")
    is_grid = len(dimensions) == 2
    named = {name: is_grid or table[name].dtype.kind not in "iuf" for name in (x, y)}
    table["across"], table["up"] = (pd.factorize(table[name])[0] if named[name] else table[name] for name in (x, y))
    parts = _groups(table, further, MOST_PANELS, f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels")
    abreast = -(-len(parts) // -(-len(parts) // PANELS_ABREAST))  # of four, two
    figure, panels = panel_grid(len(parts), abreast, (4.0, 3.8), (2.0, 0.6))
    _describe(figure, found, "")
    ends = (0.0, 1.0) if found.is_share and scale != "log" else (float(middle.min()), float(middle.max()))
    norm = (LogNorm if _is_log(found, scale) else Normalize)(*ends)
    fitting = min(4.0, 90.0 / len(parts[0][1]) ** 0.5)  # marks fit into their cells
    for (values, part), axes in zip(parts, panels, strict=True):
        if is_grid:
            cells = part.pivot(index="up", columns="across", values="middle")
            axes.pcolormesh(cells.columns, cells.index, cells, norm=norm, rasterized=True)
            axes.grid(visible=False)
        else:
            axes.scatter(part["across"], part["up"], c=part["middle"], edgecolors="0.3", linewidths=0.3, norm=norm)
        for mark, look in MARKS.items():
            if part[mark].any():
                axes.plot(part["across"][part[mark]], part["up"][part[mark]], color="0.2", **look, markersize=fitting)
        _label(axes, "x", found, x, table, named=named[x])
        _label(axes, "y", found, y, table, named=named[y])
        titles = (f"{name.replace('_', ' ')} {value_text(value)}" for name, value in zip(further, values, strict=True))
        axes.set_title(", ".join(titles))
    for axes in panels[1:]:
        axes.sharex(panels[0])
        axes.sharey(panels[0])
    label = found.label if found.is_share else f"{found.over} of {found.label}"
    figure.colorbar(ScalarMappable(norm), ax=panels, pad=0.02, label=label)
    return figure


def _table(found: SweepSummary, drawn: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row for each number; and the further columns that divide a figure, the one with the most values last.

    The points of a short list are named by the settings in which they differ.
    """
    values = found.band.middle
    table = xr.Dataset({**found.band._asdict(), **found.marks}).to_dataframe().reset_index()
    settings = [str(name) for name in values.coords if values[name].dims == (POINT,) and name != POINT]
    settings = [name for name in settings if table[name].nunique() > 1]
    if drawn == [POINT] and settings and values.sizes[POINT] <= MOST_NAMES:
        table[POINT] = ["\n".join(map(value_text, row)) for row in table[settings].itertuples(index=False)]
        table.attrs[POINT] = f"{POINT}: {', '.join(settings)}"
    used = {values[name].dims[0] for name in drawn}
    further = [str(name) for name in values.dims if name not in used and name != POINT]
    if POINT in values.dims and POINT not in used:
        further += settings or [POINT]
    elif used == {POINT}:
        further += [name for name in settings if values[name].dtype.kind not in "iuf" and name not in drawn]
    return table, sorted(further, key=lambda name: table[name].nunique())


def _groups(table: pd.DataFrame, further: Sequence[str], most: int, contract: str) -> list[tuple[tuple, pd.DataFrame]]:
    """The rows for each value of further columns."""
    if not further:
        return [((), table)]
    groups = list(table.groupby(list(further)))
    found = f"{len(groups)} over {', '.join(further)}"
    require(len(groups) <= most, f"{contract}; fix other settings with at (--at)", found)
    return groups


def _beside(texts: pd.Series) -> pd.Series:
    """The positions of texts on an axis; several points at one lie side by side."""
    rank, size = texts.groupby(texts).cumcount(), texts.groupby(texts).transform("size")
    return pd.factorize(texts)[0] + SPREAD * ((rank + 0.5) / size - 0.5)


def _label(
    axes: Axes, which: Literal["x", "y"], found: SweepSummary, name: str, table: pd.DataFrame, *, named: bool
) -> None:
    """Label an axis: names at whole numbers, or a scale, logarithmic for such a range or for geometric values."""
    axis, values = {"x": axes.xaxis, "y": axes.yaxis}[which], table[name].unique()
    axis.set_label_text(table.attrs.get(name, name).replace("_", " "))
    if named:
        every = -(-len(values) // MOST_NAMES)
        names = list(map(value_text, values[::every]))
        axis.set_ticks(range(0, len(values), every), names)
        if which == "x" and sum(map(len, names)) > MOST_CHARACTERS:
            axis.set_tick_params(rotation=90)
        axes.set(**{f"{which}lim": (-0.5, len(values) - 0.5)})
    elif found.scales.get(name) == "log" or (name not in found.scales and _is_geometric(values)):
        axes.set(**{f"{which}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if values.max() < 300 * values.min() else (1.0,)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: value_text(value))
    else:
        axis.set_major_locator(MaxNLocator(10, integer=bool((values == values.round()).all())))


def _is_geometric(values: np.ndarray) -> bool:
    """Whether the ratios of neighbours are more even than their differences."""
    if len(values) < 3 or values.min() <= 0:
        return False
    ratios, differences = np.diff(np.log(np.sort(values))), np.diff(np.sort(values))
    return bool(EVEN * ratios.max() / ratios.min() < differences.max() / differences.min())


def _is_log(found: SweepSummary, scale: ScaleName | None) -> bool:
    """Whether the quantity has a logarithmic scale; bands of means that reach below zero need a linear one."""
    least, most = float(found.band.middle.min()), float(found.band.middle.max())
    if scale == "log":
        require(least > 0, "scale must be linear for numbers that are not positive", f"log, and {least:g}")
    if scale is not None or found.is_share:
        return scale == "log"
    return most > WIDE * least > 0 and not (found.over == "mean" and found.has_band and bool(found.band.low.min() <= 0))


def _describe(figure: Figure, found: SweepSummary, how: str) -> None:
    """The title of a summary, which says how the band is drawn, and a legend of the marks that occur."""
    heading, *notes = found.title.splitlines()
    title = [f"{heading}, {how}" if how and found.has_band else heading, *notes]
    lines = [textwrap.fill(line, int(14 * figure.get_figwidth())) for line in title]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9)
    marks = [mark for mark, where in found.marks.items() if where.any()]
    if marks:
        handles = [Line2D([], [], color="0.2", label=mark, **MARKS[mark]) for mark in marks]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))
