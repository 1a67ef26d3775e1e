"""Forest plots: the effect of a feature in each environment with its interval, and what they have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from scipy.stats import t

from holdfast.core.statistics import UPPER
from holdfast.plots.bands import COLOURS, legend_of_all, panel_grid

# What is said about a feature: its colour, and the words of the legend. Features are drawn in this order: those that
# vary are what a reader looks for, and are few in most tables.
VERDICTS = {
    "varies": (COLOURS["spurious"], "effect varies"),
    "same": (COLOURS["invariant"], "same effect everywhere"),
    "one environment only": ("#8fb8d6", "one environment only"),
    "cannot be compared": ("#8fb8d6", "cannot be compared"),
    "not needed": (COLOURS["residual"], "not needed"),
}
# More rows would not be legible: those furthest from the mean are drawn, and the rest is counted.
MOST_ENVIRONMENTS = 50
# Panels of a figure unless features are named, those of one with more rows than fit on a screen, and panels abreast.
MOST_PANELS, MOST_TALL_PANELS, PANELS_ABREAST = 12, 6, 3
TALL = 20  # environments
# Inches, since the number of rows decides the size: a row, what is above and below the rows of a panel, a panel, a
# letter of a label, the legend, and a column of it.
ROW, ABOVE, PANEL, LETTER, BELOW, LEGEND_COLUMN = 0.22, 1.2, 3.2, 0.075, 0.5, 1.8
# Letters of a label, of a title and of the label of an axis, above which the middle of a name is left out.
LONGEST_LABEL, LONGEST_TITLE, LONGEST_AXIS = 30, 30, 40
# Steps of an axis: with more, long numbers would meet; and the share of it at either end without a number, which would
# meet that of the next panel.
STEPS, EDGE = 5, 0.07
MINUS = "\N{MINUS SIGN}"
# An interval that is this many times the median one does not stretch the axis; an arrow says that it goes on.
WIDE = 3.0
SMALLEST_MARK, LARGEST_MARK = 3.0, 7.5


def draw_forest(tables: Any, features: Sequence[str] | None = None, response: str | Mapping[str, str] = "y") -> Figure:
    """For each feature a panel: its effect in each environment with a 95 % interval, and their mean as a diamond.

    The size of a square is the weight of the environment in the mean. The band is one standard deviation between
    environments to either side of the mean, without the sampling error. Intervals use Student's law.

    Args:
        tables: effects, errors, degrees and stability; see `holdfast.estimators.effects.EffectTables`.
        features: their names; None: the first twelve, or six of more than 20 environments, those whose effects vary
            first; a line below the figure says how many more there are.
        response: what the effects are measured in, for all features or for each of them.

    Example:
        >>> from types import SimpleNamespace
        >>> columns = ["coefficient", "effect", "effect_error", "between", "i_squared", "significance"]
        >>> stability = pd.DataFrame([[1.0, 1.0, 0.1, 0.0, 0.0, 0.9]], ["light"], columns)
        >>> effects = pd.DataFrame({"light": [0.9, 1.1]}, ["north", "south"])
        >>> stability = stability.assign(selected=True, varies=False)
        >>> tables = SimpleNamespace(
        ...     effects=effects, errors=effects * 0 + 0.1, degrees=effects * 0 + 50, stability=stability
        ... )
        >>> [label.get_text() for label in draw_forest(tables).axes[0].get_yticklabels()]
        ['north', 'south', 'mean']
    """
    stability = tables.stability
    words = _verdicts(stability)
    more = 0
    if features is None:
        ranked = sorted(stability.index, key=lambda name: list(VERDICTS).index(words[name]))
        measured = [name for name in ranked if tables.effects[name].notna().any()]
        features = measured[: MOST_TALL_PANELS if len(tables.effects) > TALL else MOST_PANELS]
        more = len(measured) - len(features)
    unknown = [str(name) for name in features if name not in stability.index]
    if unknown or not features:
        known = ", ".join(map(str, stability.index))
        raise ValueError(f"features must be among {known}, got {', '.join(unknown) or 'none'}")
    forests = [_forest(tables, name) for name in features]
    columns = 2 if len(forests) == 4 else min(PANELS_ABREAST, len(forests))  # four make a square
    same_rows = len({tuple(forest.estimates.index) for forest in forests}) == 1
    longest = max(len(str(label)) for forest in forests for label in forest.estimates.index)
    labels = LETTER * min(longest, LONGEST_LABEL)
    size = (PANEL + (not same_rows) * labels, ABOVE + ROW * (max(len(forest.estimates) for forest in forests) + 1.5))
    figure, panels = panel_grid(len(forests), columns, size, (same_rows * labels, BELOW))
    units = dict.fromkeys(features, response) if isinstance(response, str) else response
    for number, (axes, forest) in enumerate(zip(panels, forests, strict=True)):
        _panel(axes, forest, VERDICTS[words[forest.name]][0], units[forest.name])
        if same_rows and number % columns:
            axes.tick_params(labelleft=False)
    legend_of_all(figure, _handles(forests, words), max(1, int(figure.get_figwidth() / LEGEND_COLUMN)), more)
    return figure


class _Forest(NamedTuple):
    """What is drawn of one feature; the environments in the order of the rows."""

    name: str
    estimates: pd.Series
    half_widths: pd.Series
    weights: pd.Series
    summary: pd.Series
    mean_half_width: float
    measured: int


def _forest(tables: Any, name: str) -> _Forest:
    measured = tables.effects[name].notna()
    b, error, degrees = (part.loc[measured, name] for part in (tables.effects, tables.errors, tables.degrees))
    summary = tables.stability.loc[name]
    spread = np.sqrt(error**2 + summary["between"] ** 2)
    drawn = ((b - summary["effect"]) / spread).abs().sort_values(ascending=False).index[:MOST_ENVIRONMENTS]
    rows = [label for label in b.index if label in set(drawn)]
    if len(b) > MOST_ENVIRONMENTS:
        rows = list(b[rows].sort_values().index)
    half = pd.Series(t.ppf(UPPER, degrees) * error, b.index)
    quantile = t.ppf(UPPER, len(b) - 1) if len(b) > 1 else t.ppf(UPPER, degrees.iloc[0])
    weights = (1 / spread**2) / (1 / spread**2).max()
    mean_half = float(quantile * summary["effect_error"])
    return _Forest(name, b[rows], half[rows], weights[rows], summary, mean_half, len(b))


def _panel(axes: Axes, forest: _Forest, colour: str, response: str) -> None:
    b, half, summary = forest.estimates, forest.half_widths, forest.summary
    rows = np.arange(len(b))
    low, high = _limits(forest)
    mean, between = summary["effect"], summary["between"]
    if between > 0:
        axes.axvspan(mean - between, mean + between, color=colour, alpha=0.1, linewidth=0)
    if low < 0 < high:
        axes.axvline(0, color="0.55", linewidth=0.8, zorder=1)
    axes.axvline(mean, color=colour, linewidth=0.9, linestyle=(0, (4, 3)), alpha=0.8, zorder=1)
    if summary["coefficient"] != 0:
        axes.plot(summary["coefficient"], len(b) + 0.62, "^", color="0.15", markersize=5, clip_on=False, zorder=5)
    axes.hlines(rows, np.maximum(b - half, low), np.minimum(b + half, high), color="0.35", linewidth=1.1, zorder=2)
    for edge, marker, beyond in ((low, "<", b - half < low), (high, ">", b + half > high)):
        if beyond.any():  # nothing is drawn at (0, 0), which the layout would leave room for
            axes.plot(np.full(beyond.sum(), edge), rows[beyond], marker, color="0.35", markersize=3.5, clip_on=False)
    sizes = SMALLEST_MARK + (LARGEST_MARK - SMALLEST_MARK) * np.sqrt(forest.weights)
    inside = (b >= low) & (b <= high)
    axes.scatter(b[inside], rows[inside], s=sizes[inside] ** 2, marker="s", color=colour, linewidths=0, zorder=3)
    ends = np.clip([mean - forest.mean_half_width, mean + forest.mean_half_width], low, high)
    bottom = len(b) + 0.1
    axes.fill([ends[0], mean, ends[1], mean], [bottom, bottom - 0.34, bottom, bottom + 0.34], color=colour, zorder=4)
    axes.axhline(len(b) - 0.5, color="0.85", linewidth=0.8)
    axes.set_yticks([*rows, bottom], [*(_shortened(str(label), LONGEST_LABEL) for label in b.index), "mean"])
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(low, high), ylim=(len(b) + 0.8, -0.7))
    axes.set_xticks(*_ticks(low, high))
    axes.set_xlabel(_axis_label(response, forest.name))
    share = f"{len(b)} of {forest.measured} environments, furthest from the mean\n"
    facts = f"{mean:.3g} ± {forest.mean_half_width:.2g},  τ = {between:.2g},  I² = {summary['i_squared']:.0%}"
    above = (share if len(b) < forest.measured else "") + facts
    axes.annotate(
        above, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=8.5, color="0.3"
    )
    name = _shortened(forest.name, LONGEST_TITLE)
    axes.set_title(name, loc="left", fontsize=10.5, fontweight="bold", pad=18 + 12 * above.count("\n"))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _axis_label(response: str, name: str) -> str:
    """In one line if the response fits next to the name, however short this becomes; otherwise in two."""
    between = " per unit of "
    if len(response) <= max(LONGEST_AXIS // 2, LONGEST_AXIS - len(between + name)):
        return response + between + _shortened(name, LONGEST_AXIS - len(response + between))
    return f"{_shortened(response, LONGEST_AXIS)}\n{between.strip()} {_shortened(name, LONGEST_TITLE)}"


def _shortened(name: str, width: int) -> str:
    """A name of at most this many letters, its middle left out."""
    front = (width - 1) // 2
    return name if len(name) <= width else f"{name[:front]}…{name[len(name) - (width - 1 - front) :]}"


def _ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Round numbers away from the ends of the axis, with as many digits as it takes to tell them apart."""
    ticks = np.asarray(MaxNLocator(STEPS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    span = high - low
    inside = ticks[(ticks > low + EDGE * span) & (ticks < high - EDGE * span)]
    inside = np.where(np.abs(inside) < 1e-9 * span, 0.0, inside)
    digits = max(5, 2 + int(np.ceil(np.log10(np.abs([low, high]).max() / span))))
    return inside.tolist(), [f"{value:.{digits}g}".replace("-", MINUS) for value in inside]


def _limits(forest: _Forest) -> tuple[float, float]:
    """The ends of the axis: the mean, the coefficient, and all intervals but those much wider than the others."""
    b, half, summary = forest.estimates, forest.half_widths, forest.summary
    usual = WIDE * half.median()
    mean_half = min(forest.mean_half_width, usual)
    mean = summary["effect"] + mean_half * np.array([-1, 1])
    points = np.concatenate([(b - half)[half <= usual], (b + half)[half <= usual], mean])
    if summary["coefficient"] != 0:
        points = np.append(points, summary["coefficient"])
    low, high = float(points.min()), float(points.max())
    margin = 0.04 * (high - low or 1.0)
    return low - margin, high + margin


def _verdicts(stability: pd.DataFrame) -> dict[str, str]:
    selected, varies = stability["selected"], stability["varies"]
    once = selected & stability["between"].isna() & stability["effect"].notna()
    never = stability["effect"].isna() & ~varies
    cases = [once, never, selected, varies]
    words = np.select(cases, ["one environment only", "cannot be compared", "same", "varies"], "not needed")
    return dict(zip(stability.index, words.tolist(), strict=True))


def _handles(forests: list[_Forest], words: dict[str, str]) -> list[Line2D]:
    """The entries of the legend that something in the figure needs."""
    used = {words[forest.name] for forest in forests}
    handles = [
        Line2D([], [], marker="s", linestyle="", color=colour, label=title)
        for word, (colour, title) in VERDICTS.items()
        if word in used
    ]
    handles.append(Line2D([], [], color="0.35", label="95 % interval"))
    handles.append(Line2D([], [], marker="D", linestyle="", color="0.4", label="mean, 95 % interval"))
    if any(forest.summary["between"] > 0 for forest in forests):
        handles.append(Line2D([], [], color="0.4", alpha=0.15, linewidth=8, label="± τ around the mean"))
    if any(forest.summary["coefficient"] != 0 for forest in forests):
        handles.append(Line2D([], [], marker="^", linestyle="", color="0.15", label="coefficient of the fit"))
    return handles
