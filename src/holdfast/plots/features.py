"""Figures of a fitted table: curves of its effects in each environment, and errors where it was not fitted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t
from sklearn.base import is_classifier

from holdfast.core.statistics import UPPER
from holdfast.plots.bands import legend_of_all, panel_grid, save, style

# More rows would not be legible; those that matter most are drawn.
MOST_FEATURES = 30
MARKERS = "osD^vPX*"


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
    """Write figures of effects and, if they are given, errors on held-out environments as PNG and SVG.

    Returns:
        The paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figures = {}
        if estimator.summary().curves or estimator.effects_.notna().to_numpy().any():
            figures["effects"] = estimator.plot_effects()
        if errors is not None:
            what = "share of wrong classes" if is_classifier(estimator) else "mean squared error"
            figures["held_out"] = draw_held_out(errors, what)
        return [path for name, figure in figures.items() for path in save(figure, folder, name)]


# Panels of a figure unless columns are named, panels abreast, and environments with a line of their own.
MOST_PANELS, ABREAST, MOST_ENVIRONMENTS = 12, 3, 8
# Inches of a panel, and beside and below all of them.
PANEL, ROOM = (3.0, 2.5), (0.5, 0.9)
FITTED = "0.1"


def draw_curves(
    curves: Mapping[str, Any],
    labels: Sequence[Any],
    verdicts: Mapping[str, str],
    columns: Sequence[str] | None = None,
    response: str = "y",
) -> Figure:
    """For each column a panel: its effect in each environment with a band of 95 %, and that of the fit.

    Args:
        curves: column -> grid, fitted, estimates, errors and degrees; see `holdfast.estimators.curves.EffectCurves`.
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
    unknown = [str(name) for name in columns or () if name not in curves]
    if unknown or not curves:
        raise ValueError(f"columns must be among {', '.join(map(str, curves))}, got {', '.join(unknown) or 'none'}")
    drawn = list(columns) if columns else list(curves)[:MOST_PANELS]
    more = 0 if columns else len(curves) - len(drawn)
    abreast = min(ABREAST, len(drawn))
    figure, panels = panel_grid(len(drawn), abreast, PANEL, ROOM)
    for axes, name in zip(panels, drawn, strict=True):
        _panel(axes, curves[name], labels)
        axes.set_title(f"{name}: {verdicts[name]}", loc="left", fontsize=10)
        axes.set(xlabel=name, ylabel=f"effect on {response}")
    legend_of_all(figure, panels[0].get_legend_handles_labels()[0], 2 * abreast, more, "column")
    return figure


def _panel(axes: Any, curve: Any, labels: Sequence[Any]) -> None:
    many = len(labels) > MOST_ENVIRONMENTS
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
