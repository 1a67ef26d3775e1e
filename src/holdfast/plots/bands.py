"""Curves with quantile bands over seeds."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from holdfast.core.progress import counted
from holdfast.core.writing import replacing

BAND = (0.1, 0.5, 0.9)
"""Quantiles of a curve with its band, which shows where four in five seeds lie."""
STYLE = Path(__file__).with_name("holdfast.mplstyle")
COLOURS = {"invariant": "#1b6ca8", "spurious": "#c8553d", "residual": "#7a7a7a"}
"""The colour of each signal."""


def style() -> AbstractContextManager[None]:
    """The look of all figures, while the context lasts.

    Example:
        >>> with style():
        ...     figure, (axes,) = new_figure(1, "Signals")
        >>> figure.get_suptitle()
        'Signals'
    """
    return matplotlib.rc_context(fname=STYLE)


def new_figure(columns: int, title: str) -> tuple[Figure, np.ndarray]:
    """A figure with panels side by side.

    Example:
        >>> figure, panels = new_figure(2, "Signals")
        >>> len(panels), figure.get_suptitle()
        (2, 'Signals')
    """
    figure = Figure(figsize=(4.6 * columns, 4.2))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def panel_grid(
    count: int, abreast: int, size: tuple[float, float], room: tuple[float, float]
) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows.

    Args:
        count: of the panels.
        abreast: panels in a row.
        size: inches of a panel with its labels.
        room: inches beside and below all panels.

    Example:
        >>> figure, panels = panel_grid(4, 3, (3.0, 2.5), (0.5, 1.0))
        >>> len(panels), figure.get_size_inches().tolist()
        (4, [9.5, 6.0])
    """
    rows = -(-count // abreast)
    figure = Figure(
        figsize=(room[0] + abreast * size[0], room[1] + rows * size[1]),
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08),
    )
    panels = figure.subplots(rows, abreast, squeeze=False).ravel().tolist()
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def legend_of_all(
    figure: Figure, handles: Sequence[Artist], columns: int, more: int = 0, what: str = "feature"
) -> None:
    """A legend under all panels, and how many of something are not drawn.

    Example:
        >>> figure, (axes,) = panel_grid(1, 1, (3.0, 2.5), (0.5, 1.0))
        >>> legend_of_all(figure, axes.plot([0, 1], label="fit"), 4, more=2)
        >>> figure.legends[0].get_title().get_text()
        '2 more features are not drawn'
    """
    count = f"{counted(more, f'more {what}')} {'is' if more == 1 else 'are'} not drawn"
    title: dict[str, Any] = {"title": count, "title_fontsize": 9, "alignment": "left"} if more else {}
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False, **title)


def legend_below(axes: Axes, columns: int = 2, **more: Any) -> None:
    """A legend under the panel, where it hides nothing.

    Example:
        >>> figure, (axes,) = new_figure(1, "Signals")
        >>> line = axes.plot([0, 1], label="spurious")
        >>> legend_below(axes)
        >>> axes.get_legend().get_texts()[0].get_text()
        'spurious'
    """
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, **more)


def band(axes: Axes, values: xr.DataArray, along: str, label: str, **line) -> None:
    """Draw the median over seeds along a dimension, with the band from the 10 % to the 90 % quantile.

    Example, the median of 0, 1 and 5 is 1:
        >>> values = xr.DataArray([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], dims=("seed", "step"), coords={"step": [0, 10]})
        >>> figure, (axes,) = new_figure(1, "Signals")
        >>> band(axes, values, along="step", label="spurious")
        >>> axes.lines[0].get_ydata().tolist()
        [1.0, 1.0]
    """
    low, middle, high = values.quantile(list(BAND), "seed").transpose("quantile", along).values
    x = values[along].values
    (drawn,) = axes.plot(x, middle, label=label, **line)
    axes.fill_between(x, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write PNG and SVG; returns the paths.

    Example:
        >>> import tempfile
        >>> figure, _ = new_figure(1, "Signals")
        >>> [path.name for path in save(figure, Path(tempfile.mkdtemp()), "signals")]
        ['signals.png', 'signals.svg']
    """
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with replacing(png) as unfinished:
        figure.savefig(unfinished)
    figure.set_layout_engine("none")  # it is final; computing it again would take as long as drawing
    with replacing(svg) as unfinished:
        figure.savefig(unfinished, metadata={"Date": None})
    return [png, svg]


def write_figure(draw: Callable[[], Figure], numbers: pd.DataFrame, out: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG and its numbers as CSV; returns the paths."""
    with style():
        paths = save(draw(), out, name)
    paths.append(out / f"{name}.csv")
    with replacing(paths[-1]) as unfinished:
        numbers.to_csv(unfinished, index=False)
    return paths
