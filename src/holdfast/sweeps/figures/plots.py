"""Figures of a sweep: a quantity along one axis with its band over seeds, or over two axes in colours."""

from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.validation import require
from holdfast.plots.bands import style
from holdfast.sweeps.designs import SCALES, ScaleName
from holdfast.sweeps.figures.lines import draw_lines
from holdfast.sweeps.figures.maps import draw_map
from holdfast.sweeps.figures.summary import OverName, SweepSummary, summarise_sweep


def plot_sweep(
    data: xr.Dataset,
    x: str,
    y: str | None = None,
    *,
    quantity: str | None = None,
    over: OverName = "median",
    threshold: float = 0.5,
    at: Mapping[str, Any] | None = None,
    scale: ScaleName | None = None,
) -> Figure:
    """Draw a quantity of a sweep: lines along x, or colours over x and y.

    A run is left out from the step at which it diverged, whatever was recorded; the title says how many there are, and
    how many have no number, failed or are not finished. A marker is hollow where fewer than half of the runs are left,
    and a cross stands where all of them diverged. The quantities "diverged" and "converged" are shares of all runs, and
    "diverged_at" is about those that diverged. A further axis with several values becomes lines or panels, and so do
    settings of points that are strings. Strings and the points of a list or a random design are not joined by lines.

    Args:
        data: of `holdfast.sweeps.open_sweep`.
        x: an axis, "step", or "point" for the points of a list or a random design in their order.
        y: a second axis, for a map.
        quantity: a variable, "diverged" or "converged"; by default "spurious" or "test_error", if there is one.
        over: one of `OVER`; shares of runs do not need it.
        threshold: of the share.
        at: axis, or setting of points -> the value at which it is fixed; the nearest one is taken, and the title says
            which. Steps are fixed at the last one if they are not drawn.
        scale: of the quantity; by default "log" if its numbers span more than a factor of 100.

    Example, a signal that grows with the step size:
        >>> values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        >>> data = xr.Dataset({"spurious": (("step_size", "seed"), values)}, {"step_size": [0.1, 0.2]})
        >>> figure = plot_sweep(data, "step_size")
        >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_xlabel()
        ([2.0, 5.0], 'step size')
    """
    return draw_summary(summarise_sweep(data, x, y, quantity=quantity, over=over, threshold=threshold, at=at), scale)


def draw_summary(found: SweepSummary, scale: ScaleName | None = None) -> Figure:
    """The figure of `plot_sweep`, of numbers that are known.

    Example:
        >>> data = xr.Dataset({"error": (("bias", "seed"), [[1.0, 2.0], [3.0, 5.0]])}, {"bias": [0.0, 1.0]})
        >>> draw_summary(summarise_sweep(data, "bias", over="mean"), "log").axes[0].get_yscale()
        'log'
    """
    require(scale in (None, *SCALES), f"scale must be one of {', '.join(SCALES)}", repr(scale))
    with style():
        return draw_lines(found, scale) if found.y is None else draw_map(found, found.y, scale)
