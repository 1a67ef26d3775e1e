"""Curves of the three signals, a table of their quantiles, and survival curves."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from holdfast.core.survival import kaplan_meier
from holdfast.plots import BAND, COLOURS, band

SIGNALS = ("invariant", "spurious", "residual")


def draw_signals(axes: Axes, runs: xr.Dataset, along: str = "step", suffix: str = "", **line) -> None:
    """Draw the invariant, spurious and residual signals along a dimension.

    Example:
        >>> from holdfast.plots.bands import new_figure
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
