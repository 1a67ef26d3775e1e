"""Figures of a fitted table: forests and curves of its effects, and errors where it was not fitted.

A forest has the effect of a feature in each environment with its interval, and what they have in common. A curve is
what the response does along a column, in each environment and in the fit.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from scipy.stats import t
from sklearn.base import is_classifier

from holdfast.core.statistics import UPPER
from holdfast.plots.bands import COLOURS, legend_of_all, panel_grid, save, style

# The colour and the marker of each verdict, which differ in print as well; the worst first.
VERDICTS = {
    "dangerous": (COLOURS["spurious"], "X"),
    "varies": ("#d99a2b", "s"),
    "cannot be told": (COLOURS["residual"], "p"),
    "holds": (COLOURS["invariant"], "o"),
}
# More rows would not be legible: those furthest from the mean are drawn, and the rest is counted.
MOST_ENVIRONMENTS = 50
# Panels of a figure unless features are named, those of one with more rows than fit on a screen, and panels abreast.
MOST_PANELS, MOST_TALL_PANELS, PANELS_ABREAST = 12, 6, 3
TALL = 20  # environments
# Inches, since the number of rows decides the size: a row, what is above and below the rows of a panel, a panel, a
# letter of a label, the legend, and a column of it.
ROW, ABOVE, PANEL, LETTER, BELOW, LEGEND_COLUMN = 0.22, 1.35, 3.2, 0.075, 0.5, 2.1
# Letters of a name, above which its middle is left out, and of a line below an axis.
LONGEST_NAME, LINE = 30, 40
# Steps of an axis: with more, long numbers would meet; and the share of it at either end without a number, which would
# meet that of the next panel.
STEPS, EDGE = 5, 0.07
MINUS = "\N{MINUS SIGN}"
# An interval that is this many times the median one does not stretch the axis; an arrow says that it goes on.
WIDE = 3.0
SMALLEST_MARK, LARGEST_MARK = 3.0, 7.5
# Environments with a line of their own.
MOST_LINES = 8
# Inches of a panel, and beside and below all of them.
CURVE_PANEL, CURVE_ROOM = (3.0, 2.5), (0.5, 0.9)
FITTED = "0.1"
# More rows would not be legible; those that matter most are drawn.
MOST_FEATURES = 30
MARKERS = "osD^vPX*"


def draw_forest(
    tables: Any,
    features: Sequence[str] | None = None,
    response: str | Mapping[str, str] = "y",
    scale: np.ndarray | float = 1.0,
) -> Figure:
    """For each feature a panel: its effect in each environment with a 95 % interval, and their mean as a diamond.

    Effects are those of one standard deviation of a feature, and all panels have the same axis, so that sampling error
    does not look like variation. The size of a mark is the weight of the environment in the mean. The band is one
    standard deviation between environments to either side of the mean, without the sampling error. Intervals use
    Student's law.

    Args:
        tables: effects, errors, degrees and relations; see `holdfast.estimators.effects.EffectTables`.
        features: their names; None: the twelve most dangerous, or six of more than 20 environments; a line below the
            figure says how many more there are.
        response: what the effects are measured in, for all features or for each of them.
        scale: (features,), their standard deviations.

    Example:
        >>> from types import SimpleNamespace
        >>> relations = pd.DataFrame({"coefficient": 1.0, "effect": 1.0, "low": 0.8, "high": 1.2}, ["light"])
        >>> relations = relations.assign(between=0.0, i_squared=0.0, verdict="holds", danger=0.01, rank=1)
        >>> effects = pd.DataFrame({"light": [0.9, 1.1]}, ["north", "south"])
        >>> tables = SimpleNamespace(
        ...     effects=effects, errors=effects * 0 + 0.1, degrees=effects * 0 + 50, relations=relations
        ... )
        >>> [label.get_text() for label in draw_forest(tables, scale=2.0).axes[0].get_yticklabels()]
        ['north', 'south', 'mean']
    """
    units = pd.Series(scale, tables.effects.columns, dtype=float)
    known = tables.relations[tables.effects.notna().any().to_numpy()].sort_values("rank", kind="stable")
    most = MOST_TALL_PANELS if len(tables.effects) > TALL else MOST_PANELS
    drawn = list(known.index[:most] if features is None else features)
    _check_names("features", drawn, known.index)
    forests = [_forest(tables, name, units[name]) for name in drawn]
    columns = 2 if len(forests) == 4 else min(PANELS_ABREAST, len(forests))  # four make a square
    same_rows = len({tuple(forest.rows.index) for forest in forests}) == 1
    longest = max(len(str(label)) for forest in forests for label in forest.rows.index)
    labels = LETTER * min(longest, LONGEST_NAME)
    size = (PANEL + (not same_rows) * labels, ABOVE + ROW * (max(len(forest.rows) for forest in forests) + 1.5))
    figure, panels = panel_grid(len(forests), columns, size, (same_rows * labels, BELOW))
    limits = _limits(forests)
    for number, (axes, forest) in enumerate(zip(panels, forests, strict=True)):
        _panel(axes, forest, limits, response if isinstance(response, str) else response[forest.name])
        if same_rows and number % columns:
            axes.tick_params(labelleft=False)
    handles, more = _handles(forests), len(known) - len(drawn) if features is None else 0
    legend_of_all(figure, handles, max(1, int(figure.get_figwidth() / LEGEND_COLUMN)), more)
    return figure


def _check_names(argument: str, names: Sequence[str], known: Collection[str]) -> None:
    unknown = [str(name) for name in names if name not in known]
    if unknown or not names:
        raise ValueError(f"{argument} must be among {', '.join(map(str, known))}, got {', '.join(unknown) or 'none'}")


class _Forest(NamedTuple):
    """What is drawn of one feature.

    Attributes:
        name: of the feature.
        rows: environments x (estimate, half_width of its interval, weight in the mean).
        summary: its row of the relations.
        mean_half_width: of the interval of the mean.
        measured: how many environments measure it.
        scale: its standard deviation, by which effects are multiplied.
    """

    name: str
    rows: pd.DataFrame
    summary: pd.Series
    mean_half_width: float
    measured: int
    scale: float


def _forest(tables: Any, name: str, scale: float) -> _Forest:
    effects, errors = tables.effects[name] * scale, tables.errors[name] * scale
    parts = {"estimate": effects, "error": errors, "degrees": tables.degrees[name]}
    rows, summary = pd.DataFrame(parts).dropna(subset="estimate"), tables.relations.loc[name].copy()
    measured = ["coefficient", "effect", "low", "high", "between"]
    summary[measured] *= scale
    spread = np.hypot(rows["error"], summary["between"])
    rows["weight"] = (spread.min() / spread) ** 2
    rows["half_width"] = t.ppf(UPPER, rows["degrees"]) * rows["error"]
    furthest = ((rows["estimate"] - summary["effect"]) / spread).abs().nlargest(MOST_ENVIRONMENTS).index
    shown = rows if len(rows) <= MOST_ENVIRONMENTS else rows.loc[furthest].sort_values("estimate")
    return _Forest(name, shown, summary, (summary["high"] - summary["low"]) / 2, len(rows), scale)


def _panel(axes: Axes, forest: _Forest, limits: tuple[float, float], response: str) -> None:
    b, half, summary = forest.rows["estimate"], forest.rows["half_width"], forest.summary
    rows, (low, high) = np.arange(len(b)), limits
    colour, mark = VERDICTS[summary["verdict"]]
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
    sizes = SMALLEST_MARK + (LARGEST_MARK - SMALLEST_MARK) * np.sqrt(forest.rows["weight"])
    inside = (b >= low) & (b <= high)
    axes.scatter(b[inside], rows[inside], s=sizes[inside] ** 2, marker=mark, color=colour, linewidths=0, zorder=3)
    ends = np.clip([mean - forest.mean_half_width, mean + forest.mean_half_width], low, high)
    bottom = len(b) + 0.1
    axes.fill([ends[0], mean, ends[1], mean], [bottom, bottom - 0.34, bottom, bottom + 0.34], color=colour, zorder=4)
    axes.axhline(len(b) - 0.5, color="0.85", linewidth=0.8)
    axes.set_yticks([*rows, bottom], [*map(shortened, b.index), "mean"])
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(low, high), ylim=(len(b) + 0.8, -0.7))
    axes.set_xticks(*_ticks(low, high))
    axes.set_xlabel(f"{shortened(response, LINE)}\nper standard deviation ({forest.scale:.3g})")
    share = f"\n{len(b)} of {forest.measured} environments, furthest from the mean" if len(b) < forest.measured else ""
    danger = f", danger {summary['danger']:.0%}" if np.isfinite(summary["danger"]) else ""
    spread = f",  τ = {between:.2g},  I² = {summary['i_squared']:.0%}" if np.isfinite(between) else ""
    facts = f"{mean:.3g} ± {forest.mean_half_width:.2g}{spread}"
    above = f"{summary['verdict']}{danger}{share}\n{facts}"
    axes.annotate(
        above, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=8.5, color="0.3"
    )
    axes.set_title(
        shortened(forest.name), loc="left", fontsize=10.5, fontweight="bold", pad=18 + 12 * above.count("\n")
    )
    axes.spines[["top", "right", "left"]].set_visible(False)


def shortened(name: Any, width: int = LONGEST_NAME) -> str:
    """A name of at most this many letters, its middle left out."""
    text, front = str(name), (width - 1) // 2
    return text if len(text) <= width else f"{text[:front]}…{text[len(text) - (width - 1 - front) :]}"


def _ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Round numbers away from the ends of the axis, with as many digits as it takes to tell them apart."""
    ticks = np.asarray(MaxNLocator(STEPS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    span = high - low
    inside = ticks[(ticks > low + EDGE * span) & (ticks < high - EDGE * span)]
    inside = np.where(np.abs(inside) < 1e-9 * span, 0.0, inside)
    digits = max(5, 2 + int(np.ceil(np.log10(np.abs([low, high]).max() / span))))
    return inside.tolist(), [f"{value:.{digits}g}".replace("-", MINUS) for value in inside]


def _limits(forests: list[_Forest]) -> tuple[float, float]:
    """The ends of the axis: means, coefficients, and all intervals but those much wider than the others."""
    usual = WIDE * pd.concat([forest.rows["half_width"] for forest in forests]).median()
    points = [forest.summary["coefficient"] for forest in forests if forest.summary["coefficient"] != 0]
    for forest in forests:
        b, half, mean_half = forest.rows["estimate"], forest.rows["half_width"], min(forest.mean_half_width, usual)
        shown = half <= usual
        points += [*(b - half)[shown], *(b + half)[shown], *(forest.summary["effect"] + mean_half * np.array([-1, 1]))]
    low, high = float(np.nanmin(points)), float(np.nanmax(points))
    margin = 0.04 * (high - low or 1.0)
    return low - margin, high + margin


def legend_entry(label: str, colour: str, marker: str = "", **line: Any) -> Line2D:
    """An entry of a legend: a line, or a marker."""
    return Line2D([], [], color=colour, marker=marker, label=label, **({"linestyle": "" if marker else "-"} | line))


def verdict_entries(verdicts: Collection[str]) -> list[Line2D]:
    """Those of a legend of verdicts, the worst first."""
    return [legend_entry(verdict, *look) for verdict, look in VERDICTS.items() if verdict in verdicts]


def _handles(forests: list[_Forest]) -> list[Line2D]:
    """The entries of the legend that something in the figure needs."""
    handles = verdict_entries({forest.summary["verdict"] for forest in forests})
    handles += [legend_entry("95 % interval", "0.35"), legend_entry("mean, 95 % interval", "0.4", "D")]
    if any(forest.summary["between"] > 0 for forest in forests):
        handles.append(legend_entry("± τ around the mean", "0.4", alpha=0.15, linewidth=8))
    if any(forest.summary["coefficient"] != 0 for forest in forests):
        handles.append(legend_entry("coefficient of the fit", "0.15", "^"))
    return handles


def draw_held_out(errors: pd.DataFrame, what: str = "mean squared error") -> Figure:
    """The error in each environment when all others were fitted.

    Args:
        errors: environments x methods; see `holdfast.estimators.held_out_errors`.
        what: the kind of error.

    Example:
        >>> errors = pd.DataFrame({"ours": [1.0, 1.1], "pooled": [1.5, 2.0]}, index=["north", "south"])
        >>> [text.get_text() for text in draw_held_out(errors).axes[0].get_yticklabels()]
        ['north', 'south']
    """
    ordered = errors.loc[errors.mean(axis=1).sort_values().index][-MOST_FEATURES:]
    figure = Figure(figsize=(7.2, 1.4 + 0.3 * len(ordered)))
    axes = figure.subplots()
    for marker, (number, method) in zip(MARKERS, enumerate(ordered.columns), strict=False):
        axes.plot(ordered[method], range(len(ordered)), marker, color=f"C{number}", label=method, alpha=0.85)
    axes.set_yticks(range(len(ordered)), [str(label) for label in ordered.index])
    axes.set_ylim(len(ordered) - 0.4, -0.6)
    axes.set(xlabel=f"{what} in the environment that was left out")
    some = f", the {len(ordered)} worst of {len(errors)} environments" if len(ordered) < len(errors) else ""
    axes.set_title(f"Error where it was not fitted{some}")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def save_figures(estimator: Any, folder: Path, errors: pd.DataFrame | None = None) -> list[Path]:
    """Write figures of effects, of danger and, if they are given, errors on held-out environments as PNG and SVG.

    Returns:
        The paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figures = {}
        if estimator.findings_.curves or estimator.effects_.notna().to_numpy().any():
            figures["effects"] = estimator.plot_effects()
        if estimator.relations_[["danger", "reliance"]].notna().all(axis=1).any():
            figures["danger"] = estimator.plot_danger()
        if errors is not None:
            what = "share of wrong classes" if is_classifier(estimator) else "mean squared error"
            figures["held_out"] = draw_held_out(errors, what)
        return [path for name, figure in figures.items() for path in save(figure, folder, name)]


def draw_curves(
    curves: Mapping[str, Any],
    labels: Sequence[Any],
    verdicts: Mapping[str, str],
    columns: Sequence[str] | None = None,
    response: str = "y",
) -> Figure:
    """For each column a panel: its effect in each environment with a band of 95 %, and that of the fit.

    Args:
        curves: column -> grid, fitted, estimates, errors and degrees; see `holdfast.estimators.spline.EffectCurves`.
        labels: of the environments.
        verdicts: column -> what is said about it, in a word or two.
        columns: to be drawn; None: the first twelve; a line below the figure says how many more there are.
        response: its name.

    Example:
        >>> from types import SimpleNamespace
        >>> grid = np.linspace(-1, 1, 5)
        >>> line = SimpleNamespace(
        ...     grid=grid, fitted=grid, estimates=grid[None], errors=np.ones((1, 5)), degrees=np.array([9.0])
        ... )
        >>> [axes.get_xlabel() for axes in draw_curves({"light": line}, ["north"], {"light": "same"}).axes]
        ['light']
    """
    drawn = list(columns) if columns else list(curves)[:MOST_PANELS]
    _check_names("columns", drawn, curves)
    more = 0 if columns else len(curves) - len(drawn)
    abreast = min(PANELS_ABREAST, len(drawn))
    figure, panels = panel_grid(len(drawn), abreast, CURVE_PANEL, CURVE_ROOM)
    for axes, name in zip(panels, drawn, strict=True):
        _curve_panel(axes, curves[name], labels)
        axes.set_title(verdicts[name], loc="left", fontsize=10)
        axes.set(xlabel=name, ylabel=f"effect on {response}")
    legend_of_all(figure, panels[0].get_legend_handles_labels()[0], 2 * abreast, more, "column")
    return figure


def _curve_panel(axes: Any, curve: Any, labels: Sequence[Any]) -> None:
    many = len(labels) > MOST_LINES
    for number, (label, values, errors, degrees) in enumerate(
        zip(labels, curve.estimates, curve.errors, curve.degrees, strict=True)
    ):
        colour = "0.6" if many else f"C{number}"
        name = (f"{len(labels)} environments" if number == 0 else None) if many else str(label)
        axes.plot(curve.grid, values, color=colour, linewidth=0.8 if many else 1.3, alpha=0.8, label=name)
        if np.isfinite(degrees) and not many:
            half = t.ppf(UPPER, degrees) * errors
            axes.fill_between(curve.grid, values - half, values + half, color=colour, alpha=0.15, linewidth=0)
    axes.plot(curve.grid, curve.fitted, color=FITTED, linewidth=1.6, linestyle=(0, (4, 2)), label="fit")
    axes.axhline(0, color="0.8", linewidth=0.7, zorder=0)
