"""What all figures of sweeps have: a title, marks with their legend, and a scale of the quantity."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from holdfast.core.validation import require
from holdfast.sweeps.designs import POINT, ScaleName
from holdfast.sweeps.figures.labels import in_words, point_labels, settings_of_points
from holdfast.sweeps.figures.scales import Scale
from holdfast.sweeps.figures.summary import FEW, NO_NUMBER, NONE_DIVERGED, NONE_LEFT, NOT_COMPUTED, SweepSummary

TITLE_SIZE, CHARACTERS_AN_INCH = 9, 14
# Values that span more than this factor are drawn on a logarithmic scale, in colours and upwards.
WIDE = 100.0
# A list of at most this many points is labelled by their settings instead of their numbers.
MOST_NAMED_POINTS = 12

MARKS: dict[str, dict[str, Any]] = {
    FEW: {"marker": "o", "markerfacecolor": "white", "markeredgecolor": "0.2"},
    NONE_LEFT: {"marker": "x", "markeredgecolor": "0.2"},
    NONE_DIVERGED: {"marker": ".", "color": "0.4"},
    NOT_COMPUTED: {"marker": "s", "markerfacecolor": "white", "markeredgecolor": "0.6"},
    NO_NUMBER: {"marker": "_", "markeredgecolor": "0.2"},
}
"""How points that are not like the others are marked; a legend names those that occur."""


def new_frame(width: float, height: float, title: str) -> Figure:
    """A figure of some inches with a title of lines that fit.

    Example:
        >>> new_frame(6.4, 4.4, "spurious: median over 4 seeds").get_suptitle()
        'spurious: median over 4 seeds'
    """
    figure = Figure(figsize=(width, height))
    lines = (textwrap.fill(line, int(width * CHARACTERS_AN_INCH)) for line in title.splitlines())
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=TITLE_SIZE)
    return figure


def name_marks(figure: Figure, names: list[str]) -> None:
    """A legend of marks, below the panels.

    Example:
        >>> figure = new_frame(6.4, 4.4, "")
        >>> name_marks(figure, [FEW])
        >>> figure.legends[0].get_texts()[0].get_text()
        'from fewer than half of the runs'
    """
    if names:
        handles = [Line2D([], [], linestyle="none", label=name, **MARKS[name]) for name in names]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def axis_scale(found: SweepSummary, name: str) -> tuple[Scale, str]:
    r"""The scale and the label of an axis; the points of a short list have their settings as labels.

    Example:
        >>> import xarray as xr
        >>> from holdfast.sweeps.figures.summary import summarise_sweep
        >>> settings = {"bias": ("point", [0.3, 0.1]), "batching": ("point", ["hetero", "pooled"])}
        >>> found = summarise_sweep(xr.Dataset({"error": (("point", "seed"), [[1.0], [4.0]])}, settings), "point")
        >>> scale, label = axis_scale(found, "point")
        >>> scale.names, label
        (['0.3\nhetero', '0.1\npooled'], 'point: bias, batching')
    """
    values = found.band.middle
    settings = settings_of_points(values) if name == POINT else []
    if settings and values.sizes[POINT] <= MOST_NAMED_POINTS:
        between = ", " if name == found.y else "\n"
        return Scale.named(point_labels(values, settings, between)), f"{POINT}: {', '.join(map(in_words, settings))}"
    return Scale.of(values[name], found.scales.get(name)), in_words(name)


def is_logarithmic(found: SweepSummary, scale: ScaleName | None, *, has_bands: bool) -> bool:
    """Whether the quantity has a logarithmic scale: as asked for, or if its numbers span a factor of more than 100.

    Means with bands that reach below zero have a linear one, since there is no other on which the bands can be seen.
    """
    values, low = (part.values[np.isfinite(part.values)] for part in (found.band.middle, found.band.low))
    if scale == "log":
        require(
            values.min() > 0, "scale must be linear for numbers that are not positive", f"log, and {values.min():g}"
        )
    if scale is not None or found.is_share:
        return scale == "log"
    is_wide = bool(values.min() > 0 and values.max() > WIDE * values.min())
    return is_wide and not (found.over == "mean" and has_bands and low.size and low.min() <= 0)
