"""Figures of a fitted table: survival of its features over time, errors on held-out environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.base import is_classifier

from holdfast.plots.bands import COLOURS, band, save, style

VERDICTS = {"selected": COLOURS["invariant"], "washed out": COLOURS["spurious"], "not needed": COLOURS["residual"]}
# More rows would not be legible; those that matter most are drawn.
MOST_FEATURES = 30
MARKERS = "osD^vPX*"
SURVIVAL_SIZE = (7.2, 4.2)
NOTHING = 1e-10  # smaller coefficients are drawn at this height


def draw_survival(estimator: Any) -> Figure:
    """The coefficients over time: medians over random orders, with bands from 10 % to 90 %.

    Example:
        >>> from holdfast.datasets import toy_dataset
        >>> from holdfast.estimators import HeteroRegressor
        >>> rows = toy_dataset(1.0, 0.5, seed=0, samples=200).train
        >>> model = HeteroRegressor().fit(rows.inputs, rows.targets, environments=rows.environments)
        >>> draw_survival(model).axes[0].get_xlabel()
        'sweeps over the environments'
    """
    verdicts, dynamics = _verdicts(estimator), estimator.paths_
    coordinates = {"feature": list(estimator.stability_.index), "sweeps": dynamics.sweeps}
    paths = xr.DataArray(np.abs(dynamics.coefficients) + NOTHING, coordinates, ("seed", "sweeps", "feature"))
    figure = Figure(figsize=SURVIVAL_SIZE)
    axes = figure.subplots()
    # Selected features are drawn last, on top; those that were washed out lie over those that are not needed.
    for name, verdict in reversed(verdicts.items()):
        band(axes, paths.sel(feature=name), "sweeps", str(name), color=VERDICTS[verdict])
    last = paths.isel(sweeps=-1).median("seed")
    ends = {str(name): float(last.sel(feature=name)) for name, verdict in verdicts.items() if verdict != "not needed"}
    axes.set_yscale("log")
    axes.set_ylim(bottom=NOTHING / 30)  # room for names below the lowest line
    _label_ends(axes, dynamics.sweeps[-1], ends)
    axes.set(xlabel="sweeps over the environments", ylabel="size of the coefficient, standardised")
    axes.set_title(f"Coefficients in runs of SGD, differences amplified by {estimator.amplification_:,.0f}")
    present = [word for word in VERDICTS if word in verdicts.values()]
    handles = [Line2D([], [], color=VERDICTS[word], label=word) for word in present]
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.12, 0.5))
    return figure


def _label_ends(axes: Axes, where: float, ends: dict[str, float]) -> None:
    """Names at the right ends of lines, moved down where they would cover each other."""
    bottom, top = np.log10(axes.get_ylim())
    points = 72 * 0.85 * SURVIVAL_SIZE[1]  # height of the panel, roughly
    lowest = np.inf
    for name, value in sorted(ends.items(), key=lambda end: -end[1]):
        height = (np.log10(value) - bottom) / (top - bottom) * points
        label_height = min(height, lowest - 9)
        axes.annotate(
            name, (where, value), (4, label_height - height), textcoords="offset points", va="center", fontsize=7
        )
        lowest = label_height


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
    """Write figures of effects, survival and, if they are given, errors on held-out environments as PNG and SVG.

    Returns:
        The paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figures = {}
        if estimator.summary().curves or estimator.effects_.notna().to_numpy().any():
            figures["effects"] = estimator.plot_effects()
        if estimator.has_runs_:
            figures["survival"] = draw_survival(estimator)
        if errors is not None:
            what = "share of wrong classes" if is_classifier(estimator) else "mean squared error"
            figures["held_out"] = draw_held_out(errors, what)
        return [path for name, figure in figures.items() for path in save(figure, folder, name)]


def _verdicts(estimator: Any) -> dict[str, str]:
    """Verdicts by feature, those that matter most first: the selected, then the washed-out ones, by their size."""
    stability = estimator.stability_
    words = np.where(estimator.invariant_, "selected", np.where(stability["varies"], "washed out", "not needed"))
    ranks = [list(VERDICTS).index(word) for word in words]
    size = np.abs(estimator.paths_.final).max(0)
    order = np.lexsort([-size, ranks])[:MOST_FEATURES]
    return {stability.index[number]: str(words[number]) for number in order}
