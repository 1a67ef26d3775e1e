"""The map of the gain as a figure, with what the theory says about it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from holdfast.core.statistics import mean_interval
from holdfast.plots.bands import style
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.images.recorded import seed_gains

# Gains beyond these have the colour of these.
LARGEST_GAIN = 0.1
# Of numbers whose interval contains zero.
UNSURE = "0.5"
TITLES = {
    "reshuffled": "in turn, reshuffled",
    "cyclic": "in turn, always the same way round",
    "independent": "drawn independently",
}


def colour_strength(mean_image_norm: float) -> float:
    """How fast the colour is learnt in a linear network of two layers, for each unit of its correlation with the label.

    At the start the logits are zero. Along the unit vector v between the mean images of the two colours, the gradient
    of the logistic loss in environment e, whose colour agrees with the label in a share p_e, is

        xi_e = E_e[(y - 1/2) <v, x>] = (2 p_e - 1) |mean image| / (2 sqrt(2)),

    and a step multiplies the two layers along it by 1 + eta xi_e. The number is that after 2 p_e - 1.

    Args:
        mean_image_norm: |mean image| of the grey digits.

    Example:
        >>> round(colour_strength(2.0), 3)
        0.707
    """
    return mean_image_norm / (2 * 2**0.5)


def draw_gain_map(measured: Mapping[str, Any], orders: tuple[str, ...] = ("reshuffled", "independent")) -> Figure:
    """The gain over mean agreement and difference, one panel for each step size and order.

    Args:
        measured: the content of gain_map, see `recorded`.
        orders: one row of panels for each.

    Example, two cells, one seed, one step size:
        >>> accuracy = {"pooled": {"chosen": [[[0.5]], [[0.4]]]}, "cyclic": {"chosen": [[[0.7]], [[0.4]]]}}
        >>> cells = [[0.5, 0.2], [0.6, 0.4]]
        >>> measured = {"accuracy": accuracy, "cells": cells, "step_sizes": [1.0], "mean_image_norm": 3.0}
        >>> len(draw_gain_map(measured, ("cyclic",)).axes)  # with the bar of the colours
        2
    """
    sizes, strength = measured["step_sizes"], colour_strength(measured["mean_image_norm"])
    with style():
        figure = Figure(figsize=(3.3 * len(sizes) + 0.9, 3.0 * len(orders) + 1.1), layout="constrained")
        panels = figure.subplots(len(orders), len(sizes), squeeze=False, sharex=True, sharey=True)
        for row, order in zip(panels, orders, strict=True):
            for number, (axes, step_size) in enumerate(zip(row, sizes, strict=True)):
                image = _panel(axes, measured["cells"], seed_gains(measured, order)[..., number])
                _theory(axes, step_size, strength)
                axes.set_title(f"{TITLES[order]}, step size {step_size:g}", fontsize=9)
        for axes in panels[-1]:
            axes.set_xlabel("mean agreement of colour and label")
        for axes in panels[:, 0]:
            axes.set_ylabel("difference of the agreements")
        bar = figure.colorbar(image, ax=panels, shrink=0.8, extend="both")
        bar.set_label("accuracy at the test, minus pooled SGD")
        lines = [Line2D([], [], color="black"), Line2D([], [], color="black", linestyle=":")]
        words = ["theory: above it the colour is washed out at this step size", "above it: at some step size"]
        lines.append(Line2D([], [], linestyle="", marker="$+0.01$", markersize=22, color=UNSURE))
        words.append("zero lies in the 95 % interval")
        figure.legend(lines, words, loc="outside lower center", ncols=3)
    return figure


def _panel(axes: Axes, cells: list[list[float]], gains: np.ndarray) -> QuadMesh:
    """Gains, (cells, seeds), as a map of their means."""
    means, differences = (np.unique([cell[place] for cell in cells]) for place in (0, 1))
    values = np.full((len(differences), len(means)), np.nan)
    for (mean, difference), own in zip(cells, gains, strict=True):
        gain, low, high = mean_interval(own)
        values[np.searchsorted(differences, difference), np.searchsorted(means, mean)] = gain
        text = f"{round(gain, 2) + 0.0:+.2f}".replace("-", "\N{MINUS SIGN}")
        words = axes.text(mean, difference, text, ha="center", va="center", fontsize=8, zorder=5)
        words.set_color(UNSURE if low <= 0 <= high else "black")
        words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # legible on dark cells and on lines
    norm = TwoSlopeNorm(0, -LARGEST_GAIN, LARGEST_GAIN)
    return axes.pcolormesh(means, differences, values, norm=norm, cmap="RdBu", shading="nearest", rasterized=True)


def _theory(axes: Axes, step_size: float, strength: float) -> None:
    """Where the growth, the mean of log|1 + eta xi_e|, is zero, and the limit of large step sizes."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    mean = np.linspace(0.5, high, 200)
    # strengths are those of 2 p - 1: a difference of agreements is half the difference of these
    axes.plot(mean, two_point_threshold(step_size, strength * (2 * mean - 1)) / strength, color="black")
    axes.plot(mean, 2 * mean - 1, color="black", linestyle=":")
    axes.set(xlim=(low, high), ylim=(bottom, top))
