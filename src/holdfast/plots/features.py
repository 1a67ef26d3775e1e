"""Figures of a fitted table: effects in each environment, survival over time, errors on held-out environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.base import is_classifier

from holdfast.plots.bands import BAND, COLOURS, save, style

SELECTED, WASHED, IDLE = COLOURS["invariant"], COLOURS["spurious"], COLOURS["residual"]
VERDICTS = {"selected": SELECTED, "washed out": WASHED, "not needed": IDLE}
# More rows would not be legible; those that matter most are drawn.
MOST_FEATURES = 30
MOST_ENVIRONMENTS_NAMED = 8
MARKERS = "osD^vPX*"
SURVIVAL_SIZE = (7.2, 4.2)
NOTHING = 1e-10  # smaller coefficients are drawn at this height


def draw_effects(estimator: Any) -> Figure:
    """The effect of each feature in each environment, in standard deviations of the response for one of the feature.

    Args:
        estimator: fitted `HeteroRegressor` or `HeteroClassifier`.

    Example:
        >>> from holdfast.datasets import toy_dataset
        >>> from holdfast.estimators import HeteroRegressor
        >>> rows = toy_dataset(1.0, 0.5, seed=0, samples=200).train
        >>> model = HeteroRegressor().fit(rows.inputs, rows.targets, environments=rows.environments)
        >>> draw_effects(model).axes[0].get_title()
        'Effect of each feature, one mark per environment'
    """
    effects, verdicts, names = _standardised(estimator)
    figure = Figure(figsize=(7.2, 1.4 + 0.3 * len(names)))
    axes = figure.subplots()
    markers = MARKERS if len(effects) <= MOST_ENVIRONMENTS_NAMED else "o" * len(effects)
    for row, name in enumerate(names):
        colour = VERDICTS[verdicts[name]]
        values = effects[name]
        axes.plot([values.min(), values.max()], [row, row], color=colour, linewidth=1, alpha=0.5)
        for marker, value in zip(markers, values, strict=False):
            axes.plot(value, row, marker, color=colour, markersize=5, alpha=0.75, markeredgewidth=0)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    unit = "log-odds" if is_classifier(estimator) else "standard deviations"
    axes.set(xlabel=f"effect in an environment, given the selected features ({unit} for one of the feature)")
    axes.set_title("Effect of each feature, one mark per environment")
    handles = [Line2D([], [], marker="o", linestyle="", color=colour, label=word) for word, colour in VERDICTS.items()]
    if len(effects) <= MOST_ENVIRONMENTS_NAMED:
        handles += [
            Line2D([], [], marker=marker, linestyle="", color="0.3", label=str(label))
            for marker, label in zip(markers, effects.index, strict=False)
        ]
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


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
    _, verdicts, names = _standardised(estimator)
    paths = np.abs(estimator.paths_.coefficients) + NOTHING
    columns = list(estimator.stability_.index)
    figure = Figure(figsize=SURVIVAL_SIZE)
    axes = figure.subplots()
    ends = {}
    # Selected features are drawn last, on top; those that were washed out lie over those that are not needed.
    for name in sorted(names, key=lambda name: list(VERDICTS).index(verdicts[name]), reverse=True):
        low, middle, high = np.quantile(paths[:, :, columns.index(name)], BAND, axis=0)
        colour = VERDICTS[verdicts[name]]
        axes.plot(estimator.paths_.sweeps, middle, color=colour)
        axes.fill_between(estimator.paths_.sweeps, low, high, color=colour, alpha=0.12, linewidth=0)
        if verdicts[name] != "not needed":
            ends[name] = middle[-1]
    axes.set_yscale("log")
    _label_ends(axes, estimator.paths_.sweeps[-1], ends)
    axes.set(xlabel="sweeps over the environments", ylabel="size of the coefficient, standardised")
    axes.set_title(f"Who survives amplification {estimator.amplification_:,.0f}")
    handles = [Line2D([], [], color=colour, label=word) for word, colour in VERDICTS.items()]
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
    ordered = errors.loc[errors.mean(axis=1).sort_values().index][:MOST_FEATURES]
    figure = Figure(figsize=(7.2, 1.4 + 0.3 * len(ordered)))
    axes = figure.subplots()
    for marker, (number, method) in zip(MARKERS, enumerate(ordered.columns), strict=False):
        axes.plot(ordered[method], range(len(ordered)), marker, color=f"C{number}", label=method, alpha=0.85)
    axes.set_yticks(range(len(ordered)), [str(label) for label in ordered.index])
    axes.set_ylim(len(ordered) - 0.4, -0.6)
    axes.set(xlabel=f"{what} in the environment that was left out")
    axes.set_title("Error where it was not fitted")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def save_figures(estimator: Any, folder: Path, errors: pd.DataFrame | None = None) -> list[Path]:
    """Write figures of effects, survival and, if they are given, errors on held-out environments as PNG and SVG.

    Returns:
        The paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figures = {"effects": draw_effects(estimator)}
        if estimator.paths_ is not None:  # class means are compared without runs
            figures["survival"] = draw_survival(estimator)
        if errors is not None:
            what = "share of wrong classes" if is_classifier(estimator) else "mean squared error"
            figures["held_out"] = draw_held_out(errors, what)
        return [path for name, figure in figures.items() for path in save(figure, folder, name)]


def _standardised(estimator: Any) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Effects in the range of the well-measured ones, verdicts, and the features to draw, selected ones first."""
    stability = estimator.stability_
    plain = estimator.coordinates_ == "features"
    units = estimator.scale_ / estimator.response_scale_ if plain else 1 / estimator.response_scale_
    lowest, highest = stability["lowest_effect"], stability["highest_effect"]
    effects = estimator.effects_.where((estimator.effects_ >= lowest) & (estimator.effects_ <= highest)) * units
    words = np.where(estimator.invariant_, "selected", np.where(stability["varies"], "washed out", "not needed"))
    verdicts = dict(zip(stability.index, words, strict=True))
    ranks = {word: rank for rank, word in enumerate(VERDICTS)}
    size = effects.abs().max()
    names = sorted(stability.index, key=lambda name: (ranks[verdicts[name]], -size[name]))
    return effects, verdicts, names[:MOST_FEATURES]
