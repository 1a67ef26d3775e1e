"""Maps over two settings: a signal in colours, or named regions."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.patches import Patch

from holdfast.plots.bands import legend_below

# Smaller shares have the colour of this one: the scale is logarithmic.
LEAST = 1e-6
# By the number of a region of `theory.regions`; then between invariant only and both: grown, and still small.
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
        >>> from holdfast.plots.bands import new_figure
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
