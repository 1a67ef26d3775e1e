"""What the figures have in common: curves of the three signals, a table of their quantiles, places where they cross."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from holdfast.core.survival import kaplan_meier
from holdfast.plots import BAND, COLOURS, band

# The paper calls the invariant signal true and the residual error.
LABELS = {"invariant": "invariant", "spurious": "spurious", "residual": "residual"}


def draw_signals(axes: Axes, runs: xr.Dataset, along: str = "step", suffix: str = "", **line) -> None:
    """The invariant, spurious and residual signals along a dimension."""
    for name, label in LABELS.items():
        band(axes, runs[name], along, f"{label}{suffix}", color=COLOURS[name], **line)


def quantile_table(data: xr.Dataset, names: tuple[str, ...] = tuple(LABELS)) -> pd.DataFrame:
    """What curves and bands show, as a long table: one row a signal, place and quantile."""
    quantiles = data[list(names)].quantile(list(BAND), "seed").to_dataframe().reset_index()
    places = [column for column in quantiles if column not in names]
    return quantiles.melt(places, list(names), "signal", "value")


def crossing(places: np.ndarray, levels: np.ndarray, mark: float) -> float:
    """Where a falling curve first passes below a mark, interpolated in the logarithm; NaN if it does not."""
    excess = np.log(np.maximum(levels, np.finfo(float).tiny) / mark)
    after = int(np.argmax(excess < 0))
    if after == 0:
        return np.nan
    weight = excess[after - 1] / (excess[after - 1] - excess[after])
    return float(places[after - 1] + weight * (places[after] - places[after - 1]))


def draw_survival(axes: Axes, waited: np.ndarray, happened: np.ndarray, label: str, **line) -> None:
    """The share that still waits, with its band, up to the longest time that was watched; nothing if nobody waited."""
    if len(waited) == 0:
        return
    curve = kaplan_meier(waited, happened)
    times = np.append(curve.times, waited.max())
    share, low, high = (np.append(part, part[-1]) for part in (curve.share, curve.low, curve.high))
    (drawn,) = axes.step(times, share, where="post", label=label, **line)
    axes.fill_between(times, low, high, step="post", color=drawn.get_color(), alpha=0.15, linewidth=0)
