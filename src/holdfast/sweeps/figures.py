"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axis import XAxis, YAxis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from holdfast.core.validation import require
from holdfast.plots.bands import panel_grid, style
from holdfast.sweeps.designs import POINT, SCALES, ScaleName
from holdfast.sweeps.summary import FEW, NONE_LEFT, OVER, OverName, SweepSummary, summarise_sweep, value_text

# Values that span more than this factor are drawn on a logarithmic scale.
WIDE = 100.0
# More lines, bands or panels than these hide each other, or are too small.
MOST_LINES, MOST_BANDS, MOST_PANELS, PANELS_ABREAST = 16, 4, 6, 3
# Of more names than this on an axis, some have no tick. Names with more characters in all are written upwards.
MOST_NAMES, MOST_CHARACTERS = 12, 45
# Points at the same text share this part of the distance to the next text.
SPREAD = 0.5
# Together with the five colours of the style, these tell twenty lines apart, also where they coincide.
DASHES, MARKERS = ("-", "--", "-.", ":"), "osD^"
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
    least, most = float(found.band.middle.min()), float(found.band.middle.max())
    require(
        scale != "log" or least > 0, "scale must be linear for numbers that are not positive", f"log, and {least:g}"
    )
    is_log = scale == "log" or (scale is None and not found.is_share and most > WIDE * least > 0)
    with style():
        return _draw_lines(found, is_log) if found.y is None else _draw_map(found, found.y, is_log)


def _draw_lines(found: SweepSummary, is_log: bool) -> Figure:
    """A line, or points with bars where x is not a number, for each value of further axes."""
    x, (table, further) = found.x, _table(found, [found.x])
    is_named = table[x].dtype.kind not in "iuf" or x == POINT
    is_joined = not is_named and found.band.middle[x].dims == (x,)
    rank, size = table.groupby(x).cumcount(), table.groupby(x)[x].transform("size")  # at one text, side by side
    table["at"] = pd.factorize(table[x])[0] + SPREAD * ((rank + 0.5) / size - 0.5) if is_named else table[x]
    lines = _groups(table, further, MOST_LINES, f"x = {x!r} must leave at most {MOST_LINES} lines")
    has_bands = found.has_band and (len(lines) <= MOST_BANDS or not is_joined)
    how = f"{'band' if is_joined else 'bars'} {OVER[found.over]}"
    figure, (axes,) = panel_grid(1, 1, (6.4, 4.4), (0.0, 0.0))
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    looks = zip(cycle(colours), cycle(DASHES if is_joined else ["none"]), cycle(MARKERS), strict=False)
    level = 0.99
    for (label, line), (colour, dash, marker) in zip(lines, looks, strict=False):
        axes.plot(line["at"], line["middle"], color=colour, linestyle=dash, marker=marker, markersize=4, label=label)
        if has_bands and is_joined:  # its border is the bar of a point without neighbours
            axes.fill_between(line["at"], line["low"], line["high"], color=(colour, 0.15), edgecolor=(colour, 0.5))
        elif has_bands:
            axes.vlines(line["at"], line["low"], line["high"], colour, linewidth=0.8)
        few, gone = line[line[FEW]], line[line[NONE_LEFT]]
        if len(few):
            axes.plot(few["at"], few["middle"], color=colour, **MARKS[FEW] | {"marker": marker})
        if len(gone):  # above the panel, in a row for each line
            level, above = level + 0.03, axes.get_xaxis_transform()
            axes.plot(
                gone["at"], 0 * gone["at"] + level, color=colour, transform=above, clip_on=False, **MARKS[NONE_LEFT]
            )
    _label(axes.xaxis, x, found, table, is_named)
    axes.set(ylabel=found.label, yscale="log" if is_log else "linear")
    if found.is_share and not is_log:
        axes.set_ylim(-0.03, 1.03)  # lines at the ends are whole
    if further:
        title = ", ".join(further).replace("_", " ")
        axes.legend(title=title, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, alignment="left")
    return _described(figure, found, how if has_bands else "")


def _draw_map(found: SweepSummary, y: str, is_log: bool) -> Figure:
    """A panel for each value of further axes, with cells of equal size."""
    x, middle, (table, further) = found.x, found.band.middle, _table(found, [found.x, y])
    contract = "x and y must be two axes of the result (xarray's Dataset.plot.scatter draws the points of a design)"
    require({x, y} <= {*middle.dims}, contract, f"{x!r} and {y!r}")
    table["across"], table["up"] = (pd.factorize(table[name])[0] for name in (x, y))
    parts = _groups(table, further, MOST_PANELS, f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels")
    abreast = -(-len(parts) // -(-len(parts) // PANELS_ABREAST))  # of four, two
    figure, panels = panel_grid(len(parts), abreast, (4.0, 3.8), (2.0, 0.6))
    ends = (0.0, 1.0) if found.is_share and not is_log else (float(middle.min()), float(middle.max()))
    norm = (LogNorm if is_log else Normalize)(*ends)
    for (title, part), axes in zip(parts, panels, strict=True):
        cells = part.pivot(index="up", columns="across", values="middle")
        axes.pcolormesh(cells.columns, cells.index, cells, norm=norm, rasterized=True)
        axes.grid(visible=False)
        for mark, look in MARKS.items():
            if part[mark].any():  # marks fit into their cells
                marked, size = part[part[mark]], min(4.0, 90.0 / cells.size**0.5)
                axes.plot(marked["across"], marked["up"], color="0.2", markersize=size, **look)
        axes.set_title(f"{', '.join(further)} {title}".replace("_", " ").strip())
        _label(axes.xaxis, x, found, table, True)
        _label(axes.yaxis, y, found, table, True)
    label = found.label if found.is_share else f"{found.over} of {found.label}"
    figure.colorbar(ScalarMappable(norm), ax=panels, pad=0.02, label=label)
    return _described(figure, found, "")


def _table(found: SweepSummary, drawn: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row for each number; and the further columns that divide a figure, the one with the most values last.

    The points of a short list are named by the settings in which they differ.
    """
    values = found.band.middle
    table = found.band.to_dataframe().reset_index()
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


def _groups(table: pd.DataFrame, further: Sequence[str], most: int, contract: str) -> list[tuple[str, pd.DataFrame]]:
    """The rows for each value of further columns, with a label."""
    if not further:
        return [("", table)]
    groups = list(table.groupby(list(further)))
    found = f"{len(groups)} over {', '.join(further)}"
    require(len(groups) <= most, f"{contract}; fix other settings with at (--at)", found)
    return [(", ".join(map(value_text, values)), rows) for values, rows in groups]


def _label(axis: XAxis | YAxis, name: str, found: SweepSummary, table: pd.DataFrame, is_named: bool) -> None:
    """Label an axis and its ticks: names, at whole numbers; values, on a logarithmic scale; or as matplotlib does."""
    axis.set_label_text(table.attrs.get(name, name).replace("_", " "))
    is_log = name in found.log_axes and not is_named
    if is_log:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if is_named or (is_log and POINT not in found.band[name].dims):
        values = table[name].unique()
        some = slice(None, None, -(-len(values) // MOST_NAMES))
        names = list(map(value_text, values[some]))
        axis.set_ticks(np.arange(len(values))[some] if is_named else values[some], names)
        axis.set_tick_params(rotation=90 * (axis.axis_name == "x" and sum(map(len, names)) > MOST_CHARACTERS))
        axis.set_minor_locator(NullLocator())


def _described(figure: Figure, found: SweepSummary, band: str) -> Figure:
    """The figure with a title that says how the band is drawn, and with a legend of the marks that occur."""
    heading, *notes = found.title.splitlines()
    title = [f"{heading}, {band}" if band else heading, *notes]
    lines = [textwrap.fill(line, int(14 * figure.get_figwidth())) for line in title]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9)
    marks = [mark for mark in MARKS if found.band[mark].any()]
    if marks:
        handles = [Line2D([], [], color="0.2", label=mark, **MARKS[mark]) for mark in marks]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))
    return figure
