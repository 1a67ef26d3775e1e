"""Figures of a sweep along one axis: lines with bands, or points with bars."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from holdfast.core.validation import require
from holdfast.sweeps.designs import POINT, ScaleName
from holdfast.sweeps.figures.frames import axis_scale, is_logarithmic, name_marks, new_frame
from holdfast.sweeps.figures.labels import Divider, dividers
from holdfast.sweeps.figures.scales import Scale
from holdfast.sweeps.figures.summary import FEW, NONE_LEFT, SeedBand, SweepSummary

# More bands than this hide each other.
MOST_LINES, MOST_BANDS, MOST_MARKERS = 16, 4, 30
# The style has this many colours; more lines take theirs from maps of ten or twenty, and numbers from one in order.
COLOURS_OF_STYLE, TEN_COLOURS, MORE_COLOURS = 5, "tab10", "tab20"
COLOURS_IN_ORDER, LIGHTEST = "viridis", 0.88
MARKERS, DASHES = "os^Dv<>P", ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
LINE_WIDTH, MARKER = 1.5, 5.0
# Lines of many points have about this many markers, each line at others, so that one below another can be seen.
SPARSE_MARKERS = 6
# Two lines are the same where they differ by less than this share of the axis. Then all are set side by side, over
# this share of the smallest distance between two values of x for each line, or over half of it.
NEAR, SPREAD_OF_A_LINE = 0.002, 0.07
# A little more than 0 to 1, so that lines at the ends are whole.
SHARE_LIMITS = (-0.03, 1.03)
# Several points with the same string share this part of the distance to the next string.
SPREAD = 0.5
# Where the crosses of the first line lie above its panel, and those of the next ones above them, as shares of it.
ABOVE, ROW = 1.02, 0.03


def draw_lines(found: SweepSummary, scale: ScaleName | None = None) -> Figure:
    """Draw a quantity along its x, with a line, or points, for each value of further axes.

    Args:
        found: numbers along x.
        scale: of the quantity; None: as the numbers need it.

    Example:
        >>> import xarray as xr
        >>> from holdfast.sweeps.figures.summary import summarise_sweep
        >>> data = xr.Dataset({"error": (("a", "b", "seed"), np.ones((2, 2, 3)))}, {"a": [0.0, 1.0], "b": [0.0, 1.0]})
        >>> legend = draw_lines(summarise_sweep(data, "a")).axes[0].get_legend()
        >>> legend.get_title().get_text(), [text.get_text() for text in legend.get_texts()]
        ('b', ['0', '1'])
    """
    middle, x = found.band.middle, found.x
    divided = dividers(middle, [x])
    lines = list(itertools.product(*(range(len(each.labels)) for each in divided)))
    contract = f"x = {x!r} must leave at most {MOST_LINES} lines; fix other settings with at (--at)"
    require(len(lines) <= MOST_LINES, contract, f"{len(lines)} lines over {', '.join(each.name for each in divided)}")
    across, x_label = axis_scale(found, x)
    is_joined = across.names is None and middle[x].dims == (x,) and x != POINT
    has_bands = found.has_band and (len(lines) <= MOST_BANDS or not is_joined)
    is_log, notes = is_logarithmic(found, scale, has_bands=has_bands), []
    bands = [found.band.isel(_indexers(divided, line)) for line in lines]
    positions = list(_positions(across, str(middle[x].dims[0]), divided, lines))
    if is_joined and len(across.positions) < MOST_MARKERS and _coincide([one.middle.values for one in bands], is_log):
        positions = list(_spread(across, len(lines)))
        notes.append("markers are set side by side, since lines coincide")
    if has_bands and is_log and any((one.low <= 0).any() for one in bands):
        bands = [one.bounded(one.low > 0) for one in bands]
        notes.append("no band where it would reach 0 or less")
    shape = "band" if is_joined else "bars"
    how = f"{shape} {found.interval}" if has_bands else f"no bands (more than {MOST_BANDS} lines)"
    figure = new_frame(6.4, 4.4, found.titled(how, *notes))
    axes = figure.subplots()
    looks = _Looks.of(divided, is_joined=is_joined)
    marks = _LineMarks(axes, 1 + middle.sizes[x] // MOST_MARKERS if is_joined else 1)
    for number, (line, one, where) in enumerate(zip(lines, bands, positions, strict=True)):
        look = looks.of_line(line, number / max(len(lines) - 1, 1))
        if is_joined:
            _curve(axes, one, where, look, has_band=has_bands)
        else:
            _bars(axes, one, where, look)
        at = _indexers(divided, line)
        marks.add(where, one.middle.values, {name: each.isel(at).values for name, each in found.marks.items()}, look)
    looks.legend(axes)
    name_marks(figure, marks.met)
    axes.update_datalim([(position, 0.0) for position in across.positions], updatey=False)  # where no number is, too
    across.apply(axes.xaxis)
    axes.set(xlabel=x_label, ylabel=found.label)
    if is_log:
        axes.set_yscale("log")
    elif found.is_share:
        axes.set_ylim(*SHARE_LIMITS)
    axes.autoscale_view()
    return figure


def _indexers(divided: Sequence[Divider], line: Sequence[int]) -> dict[str, Any]:
    """Where the numbers of a line lie, as `isel` takes it."""
    chosen = (each.indexers[place] for each, place in zip(divided, line, strict=True))
    return {dimension: place for indexers in chosen for dimension, place in indexers.items()}


def _coincide(lines: Sequence[np.ndarray], is_log: bool) -> bool:
    """Whether one line hides another: two of them are the same at most of their points."""
    table = np.log(lines) if is_log else np.array(lines)
    near = NEAR * (np.nanmax(table) - np.nanmin(table))
    pairs = itertools.combinations(table, 2)
    return any(np.sum(np.abs(one - other) <= near) > np.isfinite(one - other).sum() / 2 for one, other in pairs)


def _spread(across: Scale, lines: int) -> Iterator[np.ndarray]:
    """The positions of lines, side by side around the values of x."""
    at = np.log(across.positions) if across.is_log else across.positions
    gap = np.diff(at).min(initial=np.inf)
    spread = min(SPREAD, SPREAD_OF_A_LINE * lines)
    for number in range(lines):
        shifted = at + (spread * gap * ((number + 0.5) / lines - 0.5) if np.isfinite(gap) else 0.0)
        yield np.exp(shifted) if across.is_log else shifted


class _Look(NamedTuple):
    """Of a line: colour, marker, dashes, the share of the lines that come before it, and what it is."""

    color: Any
    marker: str
    dashes: Any
    before: float
    label: str


class _Looks(NamedTuple):
    """What tells lines apart: colours the values of the longest divider, markers and dashes those of the others."""

    divided: Sequence[Divider]
    coloured: int
    is_joined: bool

    @classmethod
    def of(cls, divided: Sequence[Divider], *, is_joined: bool) -> "_Looks":
        """Of a figure that is divided so, with lines or with single points."""
        longest = max(range(len(divided)), key=lambda each: len(divided[each].labels), default=0)
        return cls(divided, longest, is_joined)

    def of_line(self, line: Sequence[int], before: float) -> _Look:
        """Of the line at these values of the dividers; before: the share of the lines that are drawn before it."""
        if not line:
            return _Look(to_hex("C0"), MARKERS[0], DASHES[0], before, "")
        divider, number = self.divided[self.coloured], line[self.coloured]
        kinds = [len(each.labels) for each in self._styled()]
        numbers = [place for each, place in enumerate(line) if each != self.coloured]
        style = int(np.ravel_multi_index(numbers, kinds)) if kinds else 0 if divider.is_number else number
        label = ", ".join(f"{each.name} {each.labels[place]}" for each, place in zip(self.divided, line, strict=True))
        return _styled(style, _colour(divider, number), before, label)

    def legend(self, axes: Axes) -> None:
        """Beside the panel, with the names of the dividers above their values."""
        if not self.divided:
            return
        divider, styled = self.divided[self.coloured], self._styled()
        beside: dict[str, Any] = {"borderaxespad": 0.0, "alignment": "left"}
        if styled:
            labels = map(", ".join, itertools.product(*(each.labels for each in styled)))
            looks = [_styled(style, "0.3", 0.0, label) for style, label in enumerate(labels)]
            title = ", ".join(each.name for each in styled)
            handles = [self._handle(look) for look in looks]
            below = axes.legend(handles=handles, title=title, loc="lower left", bbox_to_anchor=(1.02, 0.0), **beside)
            axes.add_artist(below).set_clip_on(False)  # clipped artists get no room in the layout
        looks = [
            _styled(0 if styled or divider.is_number else number, _colour(divider, number), 0.0, label)
            for number, label in enumerate(divider.labels)
        ]
        handles = [self._handle(look, has_marker=not (styled and self.is_joined)) for look in looks]
        axes.legend(handles=handles, title=divider.name, loc="upper left", bbox_to_anchor=(1.02, 1.0), **beside)

    def _styled(self) -> list[Divider]:
        return [each for number, each in enumerate(self.divided) if number != self.coloured]

    def _handle(self, look: _Look, *, has_marker: bool = True) -> Line2D:
        dashes: Any = look.dashes if self.is_joined else "none"
        marker = look.marker if has_marker else ""
        return Line2D([], [], color=look.color, label=look.label, linestyle=dashes, marker=marker, markersize=MARKER)


def _styled(style: int, color: Any, before: float, label: str) -> _Look:
    return _Look(color, MARKERS[style % len(MARKERS)], DASHES[style % len(DASHES)], before, label)


def _colour(divider: Divider, number: int) -> Any:
    """Of a value, looked up here since the style ends before the figure is saved."""
    count = len(divider.labels)
    if divider.is_number and count > 2:
        return to_hex(matplotlib.colormaps[COLOURS_IN_ORDER](LIGHTEST * number / (count - 1)))
    if count <= COLOURS_OF_STYLE:
        return to_hex(f"C{number}")
    return to_hex(matplotlib.colormaps[TEN_COLOURS if count <= 10 else MORE_COLOURS](number))


@dataclass
class _LineMarks:
    """Marks of points along lines from which few runs, or none, are left.

    Attributes:
        axes: of the figure.
        every: how many points of a line there are for each that is marked.
        crossed: lines that have crosses, each in a row of its own above the panel.
        met: the marks that occurred.
    """

    axes: Axes
    every: int
    crossed: int = 0
    met: list[str] = field(default_factory=list)

    def add(self, positions: np.ndarray, values: np.ndarray, marks: Mapping[str, np.ndarray], look: _Look) -> None:
        """Those of one line."""
        shape: dict[str, Any] = {"color": look.color, "linestyle": "none", "zorder": 3}
        few = np.flatnonzero(marks[FEW])[:: self.every]
        if few.size:
            hollow: dict[str, Any] = {
                "marker": look.marker,
                "markersize": MARKER,
                "markerfacecolor": "white",
            }
            self.axes.plot(positions[few], values[few], **shape, **hollow)
            self.met = list(dict.fromkeys([*self.met, FEW]))
        gone = np.flatnonzero(marks.get(NONE_LEFT, []))[:: self.every]
        if gone.size:
            above, in_panel = np.full(gone.size, ABOVE + ROW * self.crossed), self.axes.get_xaxis_transform()
            cross: dict[str, Any] = {"marker": "x", "markersize": MARKER, "transform": in_panel, "clip_on": False}
            self.axes.plot(positions[gone], above, **shape, **cross)
            self.crossed += 1
            self.met = [*(each for each in self.met if each != NONE_LEFT), NONE_LEFT]


def _positions(
    across: Scale, dimension: str, divided: Sequence[Divider], lines: Sequence[tuple[int, ...]]
) -> Iterator[np.ndarray]:
    """Of the points of each line; some dividers choose points, and the lines of the others lie next to each other."""
    others = [number for number, each in enumerate(divided) if dimension not in each.indexers[0]]
    rows = list(itertools.product(*(range(len(divided[number].labels)) for number in others)))
    table = _side_by_side(across, len(rows))
    for line in lines:
        indexers = [each.indexers[place] for each, place in zip(divided, line, strict=True)]
        points = next((each[dimension] for each in indexers if dimension in each), slice(None))
        yield table[rows.index(tuple(line[number] for number in others))][points]


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


def _curve(axes: Axes, band: SeedBand, positions: np.ndarray, look: _Look, *, has_band: bool) -> None:
    marker: dict[str, Any] = {"marker": look.marker, "markersize": MARKER}
    if len(positions) >= MOST_MARKERS:
        stride = len(positions) // SPARSE_MARKERS
        marker |= {"markevery": (int(look.before * (stride - 1)), stride)} if look.label else {"marker": ""}
    line: dict[str, Any] = {"color": look.color, "linestyle": look.dashes, "linewidth": LINE_WIDTH}
    axes.plot(positions, band.middle.values, label=look.label, **line, **marker)
    if not has_band:
        return
    axes.fill_between(positions, band.low.values, band.high.values, color=look.color, alpha=0.15, linewidth=0)
    alone = _alone(band.middle.values)  # a band needs two neighbours
    if alone.any():
        bare = look._replace(marker="none", label="")
        _bars(axes, SeedBand(*(part[alone] for part in band)), positions[alone], bare)


def _bars(axes: Axes, band: SeedBand, positions: np.ndarray, look: _Look) -> None:
    """Single points, each with its band as a bar."""
    values = band.middle.values
    lengths = np.maximum([values - band.low.values, band.high.values - values], 0)
    shape: dict[str, Any] = {"fmt": look.marker, "markersize": MARKER, "elinewidth": 0.8}
    axes.errorbar(positions, values, lengths, color=look.color, label=look.label, **shape)


def _alone(values: np.ndarray) -> np.ndarray:
    """Which values have neighbours that are NaN, or none."""
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]
