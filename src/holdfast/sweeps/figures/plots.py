"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from holdfast.core.validation import require
from holdfast.plots.bands import style
from holdfast.sweeps.designs import POINT, SCALES, ScaleName
from holdfast.sweeps.figures.summary import FEW, NONE_LEFT, OVER, OverName, SweepSummary, summarise_sweep, value_text

# More lines, bands or panels than these hide each other, or are too small.
MOST_LINES, MOST_BANDS, MOST_PANELS, PANELS_ABREAST = 16, 4, 6, 3
# The points of a list are named by their settings if they are few; of more names than this, some have no tick.
MOST_NAMES, MOST_TICKS, MOST_CHARACTERS = 12, 10, 70
# Values that span more than this factor are drawn on a logarithmic scale; EVEN forgives settings that are rounded.
WIDE, EVEN = 100.0, 1.05
# Points at the same text share this part of the distance to the next text.
SPREAD = 0.5
# Lines of many points have markers at some of them.
MOST_MARKERS, SPARSE_MARKERS = 30, 6
MARKERS, DASHES = "os^Dv<>P", ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
MARKS: dict[str, dict[str, Any]] = {
    FEW: {"marker": "o", "markerfacecolor": "white", "markeredgecolor": "0.2", "linestyle": "none"},
    NONE_LEFT: {"marker": "x", "markeredgecolor": "0.2", "linestyle": "none"},
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
    x, (frame, further) = found.x, _frame(found, [found.x])
    is_number = frame[x].dtype.kind in "iuf"
    is_joined = is_number and found.band.middle[x].dims == (x,) != (POINT,)
    lines = _groups(frame.assign(at=frame[x] if is_number else _beside(frame[x])), further)
    contract = f"x = {x!r} must leave at most {MOST_LINES} lines; fix other settings with at (--at)"
    require(len(lines) <= MOST_LINES, contract, f"{len(lines)} lines over {', '.join(further)}")
    has_bands = found.has_band and (len(lines) <= MOST_BANDS or not is_joined)
    is_log = _is_log(found, scale, has_bands=has_bands)
    how = f"{'band' if is_joined else 'bars'} {OVER[found.over]}"
    how += ", none where it would reach 0 or less" if is_log and (frame["low"] <= 0).any() else ""
    figure = _figure(6.4, 4.4, found, how if has_bands else f"no bands (more than {MOST_BANDS} lines)")
    axes, crossed = figure.subplots(), 0
    for number, (values, line, look) in enumerate(lines):
        at, middle, low, high = (line[name].to_numpy() for name in ("at", "middle", "low", "high"))
        low = np.where(low <= 0, np.nan, low) if is_log else low
        stride = max(1, len(at) // SPARSE_MARKERS) if is_joined and len(at) >= MOST_MARKERS else 1
        # Each line is thinner than those before it, so that one below another can be seen.
        before = (number + 1) / len(lines)
        look |= {"markersize": 7.0 - 3.0 * before, "linewidth": 3.6 - 2.2 * before}
        bare = look | {"linestyle": "none"}
        axes.plot(
            at, middle, label=", ".join(map(value_text, values)), markevery=(number * stride // len(lines), stride),
            **look if is_joined else bare,
        )  # fmt: skip
        known = np.pad(np.isfinite(middle), 1)
        alone = known[1:-1] & ~(is_joined & (known[:-2] | known[2:]))  # a band needs neighbours
        if has_bands and is_joined:
            axes.fill_between(at, low, high, color=look["color"], alpha=0.15, linewidth=0)
        if has_bands and alone.any():
            axes.vlines(at[alone], low[alone], high[alone], look["color"], linewidth=0.8)
        few, gone = (line[line[mark]][::stride] for mark in (FEW, NONE_LEFT))
        if len(few):
            axes.plot(few["at"], few["middle"], **bare | {"markerfacecolor": "white"})
        if len(gone):  # above the panel, in a row for each line
            height, crossed = np.full(len(gone), 1.02 + 0.03 * crossed), crossed + 1
            above = axes.get_xaxis_transform()
            axes.plot(gone["at"], height, transform=above, clip_on=False, **bare | {"marker": "x"})
    (_numbers if is_number else _names)(axes.xaxis, found, x, frame)
    axes.set(ylabel=found.label, yscale="log" if is_log else "linear")
    if found.is_share and not is_log:
        axes.set_ylim(-0.03, 1.03)  # lines at the ends are whole
    if further:
        title = ", ".join(further).replace("_", " ")
        axes.legend(title=title, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, alignment="left")
    return figure


def _draw_map(found: SweepSummary, y: str, scale: ScaleName | None) -> Figure:
    """A panel for each value of further axes, with cells of equal size; the points of a design are dots."""
    x, middle, (frame, further) = found.x, found.band.middle, _frame(found, [found.x, y])
    dimensions = {middle[x].dims[0], middle[y].dims[0]}
    contract = "x and y must be two axes of the result, or two settings of the points of a list or a random design"
    require(len(dimensions) == 1 or dimensions == {x, y}, contract, f"{x!r} and {y!r}")
    panels = _groups(frame, further)
    contract = f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels; fix other settings with at (--at)"
    require(len(panels) <= MOST_PANELS, contract, f"{len(panels)} panels over {', '.join(further)}")
    rows = -(-len(panels) // PANELS_ABREAST)
    columns = -(-len(panels) // rows)  # four are two by two
    figure = _figure(2.0 + 4.0 * columns, 0.6 + 3.8 * rows, found, "")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    ends = (0.0, 1.0) if found.is_share and scale != "log" else (float(middle.min()), float(middle.max()))
    norm = (LogNorm if _is_log(found, scale, has_bands=False) else Normalize)(*ends)
    for (values, panel, _), axes in zip(panels, grid.flat, strict=False):
        places = []
        for name, axis in ((x, axes.xaxis), (y, axes.yaxis)):
            is_cell = len(dimensions) == 2 or frame[name].dtype.kind not in "iuf"
            (_names if is_cell else _numbers)(axis, found, name, frame)
            places.append(pd.factorize(frame[name])[0][panel.index] if is_cell else panel[name].to_numpy())
        if len(dimensions) == 2:
            table = np.full([frame[name].nunique() for name in (y, x)], np.nan)
            table[places[1], places[0]] = panel["middle"]
            axes.pcolormesh(*map(np.arange, table.shape[::-1]), table, norm=norm, shading="nearest", rasterized=True)
            axes.grid(visible=False)
        else:
            axes.scatter(*places, c=panel["middle"], s=36, edgecolors="0.3", linewidths=0.3, norm=norm)
        for mark, shape in MARKS.items():
            which = panel[mark].to_numpy()
            if which.any():
                axes.plot(*(each[which] for each in places), markersize=min(4.0, 90.0 / len(panel) ** 0.5), **shape)
        titles = (f"{name.replace('_', ' ')} {value_text(value)}" for name, value in zip(further, values, strict=True))
        axes.set_title(", ".join(titles))
        axes.tick_params(labelbottom=True, labelleft=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    label = found.label if found.is_share else f"{found.over} of {found.label}"
    figure.colorbar(ScalarMappable(norm), ax=grid.ravel().tolist(), pad=0.02, label=label)
    return figure


def _frame(found: SweepSummary, drawn: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row for each number; and the further columns that divide a figure, the one with the most values last.

    The points of a short list are named by the settings in which they differ.
    """
    values = found.band.middle
    frame = xr.Dataset({**found.band._asdict(), **found.marks}).to_dataframe().reset_index()
    settings = [str(name) for name in values.coords if values[name].dims == (POINT,) and name != POINT]
    settings = [name for name in settings if frame[name].nunique() > 1]
    if drawn == [POINT] and settings and values.sizes[POINT] <= MOST_NAMES:
        names = ["\n".join(map(value_text, row)) for row in frame[settings].itertuples(index=False)]
        frame.attrs[POINT] = f"{POINT}: {', '.join(settings)}"
        frame = frame.assign(point=names)
    used = {values[name].dims[0] for name in drawn}
    further = [str(name) for name in values.dims if name not in used and name != POINT]
    if POINT in values.dims and POINT not in used:
        further += settings or [POINT]
    elif used == {POINT}:
        further += [name for name in settings if values[name].dtype.kind not in "iuf" and name not in drawn]
    return frame, sorted(further, key=lambda name: frame[name].nunique())


def _groups(frame: pd.DataFrame, further: Sequence[str]) -> list[tuple[tuple, pd.DataFrame, dict[str, Any]]]:
    """The rows for each value of further columns, and their look: colours tell apart the values of the last column."""
    style = {"color": to_hex("C0"), "marker": MARKERS[0], "linestyle": DASHES[0]}
    if not further:
        return [((), frame, style)]
    last = sorted(frame[further[-1]].unique())
    is_ordered = len(last) > 2 and frame[further[-1]].dtype.kind in "iuf"
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    if is_ordered or len(last) > len(colours):
        colours = list(map(to_hex, matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(last)))))
    styles: dict[tuple, int] = {}
    groups = []
    for values, rows in frame.groupby(list(further)):
        # A single column has markers and dashes, too, unless its colours are in order.
        number = styles.setdefault(values[:-1] or values[is_ordered:], len(styles))
        look = {"marker": MARKERS[number % len(MARKERS)], "linestyle": DASHES[number % len(DASHES)]}
        groups.append((values, rows, style | look | {"color": colours[last.index(values[-1])]}))
    return groups


def _beside(texts: pd.Series) -> pd.Series:
    """The positions of texts on an axis; several points at one lie side by side."""
    rank, size = texts.groupby(texts).cumcount(), texts.groupby(texts).transform("size")
    return pd.factorize(texts)[0] + SPREAD * ((rank + 0.5) / size - 0.5)


def _names(axis: Any, found: SweepSummary, name: str, frame: pd.DataFrame) -> None:
    """Label an axis with a tick at each value; there is none at some of many."""
    names = [value_text(text) for text in frame[name].unique()]
    every = -(-len(names) // MOST_NAMES)
    width = sum(1 + max(map(len, each.splitlines() or [""])) for each in names[::every])
    slant = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if width > MOST_CHARACTERS else {}
    axis.set_ticks(range(0, len(names), every), names[::every], **slant if axis.axis_name == "x" else {})
    axis.set_label_text(frame.attrs.get(name, name).replace("_", " "))
    axis.axes.set(**{f"{axis.axis_name}lim": (-0.5, len(names) - 0.5)})


def _numbers(axis: Any, found: SweepSummary, name: str, frame: pd.DataFrame) -> None:
    """Label an axis of numbers: logarithmic for such a range, or for geometric or wide and uneven values."""
    ordered, scale = np.unique(frame[name].astype(float)), found.scales.get(name)
    gaps, is_log = np.diff(ordered), scale == "log"
    if scale is None and len(gaps) > 1 and ordered[0] > 0 and gaps.max() > EVEN * gaps.min():
        factors, is_wide = np.diff(np.log(ordered)), gaps.max() > 2 * gaps.min() and ordered[-1] > WIDE * ordered[0]
        is_log = factors.max() < EVEN * factors.min() or is_wide
    axis.set_label_text(name.replace("_", " "))
    if is_log:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ordered[-1] < 300 * ordered[0] else (1.0,)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: value_text(value))
        gaps = np.diff(np.log(ordered))
    else:
        axis.set_major_locator(MaxNLocator(MOST_TICKS, integer=bool((ordered == ordered.round()).all())))
    is_even = bool(len(gaps)) and gaps.max() < 2 * gaps.min()
    if is_even and len(ordered) <= MOST_TICKS:
        axis.set_ticks(ordered, list(map(value_text, ordered)))


def _is_log(found: SweepSummary, scale: ScaleName | None, *, has_bands: bool) -> bool:
    """Whether the quantity has a logarithmic scale; bands of means that reach below zero need a linear one."""
    least, most = float(found.band.middle.min()), float(found.band.middle.max())
    if scale == "log":
        require(least > 0, "scale must be linear for numbers that are not positive", f"log, and {least:g}")
    if scale is not None or found.is_share:
        return scale == "log"
    return most > WIDE * least > 0 and not (found.over == "mean" and has_bands and bool(found.band.low.min() <= 0))


def _figure(width: float, height: float, found: SweepSummary, how: str) -> Figure:
    """A figure with the title of a summary, which says how the band is drawn, and a legend of the marks that occur."""
    heading, *notes = found.title.splitlines()
    title = [f"{heading}, {how}" if how and found.has_band else heading, *notes]
    figure = Figure(figsize=(width, height))
    figure.suptitle("\n".join(textwrap.fill(line, int(14 * width)) for line in title), x=0.01, ha="left", fontsize=9)
    handles = [Line2D([], [], label=mark, **MARKS[mark]) for mark, where in found.marks.items() if where.any()]
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))
    return figure
