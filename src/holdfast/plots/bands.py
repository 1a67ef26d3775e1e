"""Figures of many runs in one style: curves with bands over seeds, survival curves, and maps over two settings."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from holdfast.core.progress import counted
from holdfast.core.statistics import kaplan_meier
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


SIGNALS = ("invariant", "spurious", "residual")


def draw_signals(axes: Axes, runs: xr.Dataset, along: str = "step", suffix: str = "", **line) -> None:
    """Draw the invariant, spurious and residual signals along a dimension.

    Example:
        >>> runs = xr.Dataset({name: (("seed", "step"), np.ones((3, 2))) for name in SIGNALS}, {"step": [0, 10]})
        >>> figure, (axes,) = new_figure(1, "Signals")
        >>> draw_signals(axes, runs)
        >>> [line.get_label() for line in axes.lines]
        ['invariant', 'spurious', 'residual']
    """
    for name in SIGNALS:
        band(axes, runs[name], along, f"{name}{suffix}", color=COLOURS[name], **line)


def quantile_table(data: xr.Dataset, names: tuple[str, ...] = SIGNALS) -> pd.DataFrame:
    """The quantiles behind curves and bands, as a long table: one row for each signal, position and quantile.

    Example:
        >>> data = xr.Dataset({"spurious": (("seed", "step"), [[0.0, 1.0], [0.0, 3.0]])}, {"step": [0, 5]})
        >>> quantile_table(data, ("spurious",)).query("quantile == 0.5")["value"].tolist()
        [0.0, 2.0]
    """
    quantiles = data[list(names)].quantile(list(BAND), "seed").to_dataframe().reset_index()
    coordinates = [column for column in quantiles if column not in names]
    return quantiles.melt(coordinates, list(names), "signal", "value")


def draw_kaplan_meier(axes: Axes, waited: np.ndarray, happened: np.ndarray, label: str, **line) -> None:
    """Draw the share that still waits, with its band, up to the longest time; nothing if no run waited."""
    if len(waited) == 0:
        return
    curve = kaplan_meier(waited, happened)
    times = np.append(curve.times, waited.max())
    share, low, high = (np.append(part, part[-1]) for part in (curve.share, curve.low, curve.high))
    (drawn,) = axes.step(times, share, where="post", label=label, **line)
    axes.fill_between(times, low, high, step="post", color=drawn.get_color(), alpha=0.15, linewidth=0)


# Smaller shares have the colour of this one: the scale is logarithmic.
LEAST = 1e-6
# By the number of a region of `theory.diagnosis.Region`; then between invariant only and both: grown, and still small.
REGION_COLOURS = ("#d9d9d9", "#8fbbda", "#e8a798", "#5b5b5b", "#f8e3c5")
BETWEEN = 4


def draw_plane(
    axes: Axes,
    values: xr.DataArray,
    title: str,
    names: Mapping[int, str] | None = None,
    colours: Sequence[str] = REGION_COLOURS,
) -> None:
    """Draw values over the (y, x) dimensions of an array; with names, as regions with a key.

    A region has the colour of its number, so that one that several figures show looks the same in all of them.

    Example:
        >>> values = xr.DataArray([[0, 1], [1, 1]], dims=("heterogeneity", "step_size"), coords={
        ...     "heterogeneity": [1.0, 6.0], "step_size": [0.05, 0.1]})
        >>> figure, (axes,) = new_figure(1, "Regions")
        >>> draw_plane(axes, values, "regions", {0: "both signals", 1: "invariant only"})
        >>> axes.get_xlabel(), [text.get_text() for text in axes.get_legend().get_texts()]
        ('step size', ['both signals', 'invariant only'])
    """
    y, x = (values[name].values.astype(float) for name in values.dims)
    mesh = partial(axes.pcolormesh, x, y, shading="nearest", rasterized=True)
    if names is None:
        image = mesh(np.clip(values.values, LEAST, 1.0), norm=LogNorm(LEAST, 1.0), cmap="viridis")
        axes.figure.colorbar(image, ax=axes, pad=0.02).set_label("white: all runs diverged")
    else:
        norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
        mesh(values.values, norm=norm, cmap=ListedColormap(colours))
        legend_below(axes, handles=[Patch(color=colours[code], label=name) for code, name in names.items()])
    x_label, y_label = (str(name).replace("_", " ") for name in reversed(values.dims))
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
