"""What figures and tables of experiments share: panels with legends, bars with intervals, maps, and numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes as Axes
from matplotlib.figure import Figure as Figure
from numpy.typing import ArrayLike

from holdfast.core.statistics import Estimate
from holdfast.plots import BAND as BAND
from holdfast.plots import COLOURS as COLOURS
from holdfast.plots import band as band
from holdfast.plots import draw_plane as draw_plane
from holdfast.plots import legend_below as legend_below
from holdfast.plots import new_figure as new_figure
from holdfast.plots.bands import BETWEEN as BETWEEN
from holdfast.plots.bands import draw_kaplan_meier as draw_kaplan_meier
from holdfast.plots.bands import draw_signals as draw_signals
from holdfast.plots.bands import quantile_table as quantile_table


def finished(figure: Figure, columns: int = 2) -> Figure:
    """The figure, with a legend under each panel that has something to explain and no legend yet."""
    for axes in figure.axes:
        if axes.get_legend() is None and axes.get_legend_handles_labels()[0]:
            legend_below(axes, columns)
    return figure


def estimate_bars(axes: Axes, at: ArrayLike, estimates: Sequence[Estimate] | np.ndarray, **look: Any):
    """Values with their intervals as error bars, see `bars`; returns what was drawn.

    Example:
        >>> figure, (axes,) = new_figure(1, "Shares")
        >>> len(estimate_bars(axes, [1.0], [Estimate(0.5, 0.25, 1.0)], label="seen"))
        3
    """
    value, low, high = np.array(estimates).T
    return bars(axes, at, (low, value, high), **look)


def quantile_bars(axes: Axes, at: ArrayLike, values: xr.DataArray, **look: Any):
    """Medians with bars from the 10 % to the 90 % quantile, see `bars` and `holdfast.plots.BAND`."""
    return bars(axes, at, values.quantile(BAND, "seed").transpose("quantile", ...).values, **look)


def bars(axes: Axes, at: ArrayLike, levels: ArrayLike, *, horizontal: bool = False, **look: Any):
    """Bars from low to high with a mark in between, at positions on the x-axis, or on the y-axis if `horizontal`."""
    low, middle, high = np.asarray(levels)
    ends = [middle - low, high - middle]
    if horizontal:
        return axes.errorbar(middle, at, xerr=ends, **look)
    return axes.errorbar(at, middle, ends, **look)


def draw_map(axes: Axes, x: ArrayLike, y: ArrayLike, values: ArrayLike, label: str, **look) -> None:
    """Values over (y, x) in colours, with a bar that explains them."""
    image = axes.pcolormesh(x, y, values, shading="nearest", rasterized=True, **look)
    axes.figure.colorbar(image, ax=axes, pad=0.02).set_label(label)


def columns(*names: str) -> Callable[[xr.Dataset], pd.DataFrame]:
    """The numbers of an experiment: some variables of its data, or all of them, one row for each position.

    Example:
        >>> columns("b")(xr.Dataset({"a": 1.0, "b": ("seed", [2.0, 3.0])})).columns.tolist()
        ['seed', 'b']
    """
    return lambda data: (data[list(names)] if names else data).to_dataframe().reset_index()


def quantiles(*names: str) -> Callable[[xr.Dataset], pd.DataFrame]:
    """The 10 %, 50 % and 90 % quantiles over seeds of some variables, or of all: one row for each and each position.

    Example:
        >>> quantiles()(xr.Dataset({"b": ("seed", [1.0, 2.0, 3.0])}))["b"].tolist()
        [1.2, 2.0, 2.8]
    """
    return lambda data: columns()((data[list(names)] if names else data).quantile(BAND, "seed"))
