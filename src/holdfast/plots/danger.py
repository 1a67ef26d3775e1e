"""How dangerous it is to rely on a feature, against how much a fit relies on it."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from holdfast.plots.bands import legend_of_all, panel_grid
from holdfast.plots.features import VERDICTS, legend_entry, shortened, verdict_entries

# Inches of the figure of danger, and beside and below its panel; features with a name in it, and where that may be,
# points to the right of the mark and above it: further away there is a line between them.
DANGER_PANEL, DANGER_ROOM = (6.4, 4.4), (0.0, 0.5)
MOST_LABELS, MARK, NEAR = 12, 8, 9
OFFSETS = [(8, 0), (-8, 0)] + [(x, y) for y in (9, -9, 20, -20, 32, -32, 44, 56, 68) for x in (8, -8)]
# Losses are drawn on a linear axis below this, and on a logarithmic one above.
SMALL_LOSS = 0.01


def draw_danger(relations: pd.DataFrame, threshold: float, response: str = "y") -> Figure:
    """For each feature a mark: how much the error grows if its relation breaks, and if it moves as far as it may.

    The most dangerous features have their names.

    Args:
        relations: of the features; see `holdfast.estimators.effects.describe_effects`.
        threshold: the danger of what is dangerous.
        response: its name.

    Example, only the first feature is above the line:
        >>> losses = {"reliance": [0.5, 1.5], "danger": [0.8, 0.01]}
        >>> known = losses | {"rank": [1, 2], "verdict": ["dangerous", "holds"]}
        >>> figure = draw_danger(pd.DataFrame(known, ["pests", "light"]), 0.1)
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['pests', 'light']
    """
    known = relations.dropna(subset=["reliance", "danger"]).sort_values("rank", kind="stable")
    if known.empty:
        raise ValueError("relations must have a danger and a reliance to be drawn, got none")
    figure, (axes,) = panel_grid(1, 1, DANGER_PANEL, DANGER_ROOM)
    points = known[["reliance", "danger"]].clip(lower=0.0)
    highest = np.maximum(points.max(), threshold)
    axes.set_xscale("symlog", linthresh=SMALL_LOSS, linscale=0.5)
    axes.set_yscale("symlog", linthresh=SMALL_LOSS, linscale=0.5)
    axes.set(
        xlim=(-SMALL_LOSS / 4, 4 * highest["reliance"]),
        ylim=(-SMALL_LOSS / 4, 4 * highest["danger"]),
        xlabel=f"Reliance: growth of the error if a relation to {shortened(response)} breaks",
        ylabel="Danger: growth if it moves as far as it may",
    )
    for axis, largest in ((axes.xaxis, highest["reliance"]), (axes.yaxis, highest["danger"])):
        axis.set_ticks([0.0, *SMALL_LOSS * 10.0 ** np.arange(1 + math.ceil(math.log10(largest / SMALL_LOSS)))])
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:,.0%}"))
        axis.set_minor_locator(NullLocator())
    for verdict, own in points.groupby(known["verdict"]):
        colour, mark = VERDICTS[verdict]
        look: dict[str, Any] = {"color": colour, "markersize": MARK, "markeredgecolor": "white", "markeredgewidth": 0.5}
        axes.plot(own["reliance"], own["danger"], mark, **look)
    axes.axhline(threshold, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    line = legend_entry(f"threshold, {threshold:.0%}", "0.45", linestyle="--")
    legend_of_all(figure, [*verdict_entries(set(known["verdict"])), line], 5, len(relations) - len(known))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # from now on the marks stay where they are, and names can be put beside them
    _label(axes, points)
    return figure


def _label(axes: Axes, points: pd.DataFrame) -> None:
    """Names beside the first marks, where they hide neither marks nor each other; none where there is no room."""
    marks, half = axes.transData.transform(points.to_numpy()), MARK / 2 * axes.figure.dpi / 72
    taken = [Bbox.from_extents(*(mark - half), *(mark + half)) for mark in marks]
    for name, place in points[:MOST_LABELS].iterrows():
        for offset in OFFSETS:
            line = {"arrowstyle": "-", "color": "0.7", "shrinkB": 3.0} if abs(offset[1]) > NEAR else None
            side = "left" if offset[0] > 0 else "right"
            text = axes.annotate(
                shortened(name), tuple(place), offset, textcoords="offset points", ha=side, va="center", arrowprops=line
            )
            text.get_window_extent()  # puts it in its place; with its line it is larger than its words
            box = Text.get_window_extent(text)
            if axes.bbox.count_contains(box.corners()) == 4 and not box.count_overlaps(taken):
                taken.append(box)
                break
            text.remove()
