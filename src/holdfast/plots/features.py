"""Figures of a fitted table: its effects, and errors on held-out environments."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from sklearn.base import is_classifier

from holdfast.plots.bands import save, style

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
