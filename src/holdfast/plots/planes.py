"""Maps over two settings: a signal in colours, or named regions."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.patches import Patch

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
    if names is None:
        clipped = np.clip(values.values, LEAST, 1.0)
        image = axes.pcolormesh(
            x, y, clipped, norm=LogNorm(LEAST, 1.0), cmap="viridis", shading="nearest", rasterized=True
        )
        axes.figure.colorbar(image, ax=axes, pad=0.02).set_label("white: all runs diverged")
    else:
        norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
        axes.pcolormesh(
            x, y, values.values, norm=norm, cmap=ListedColormap(colours), shading="nearest", rasterized=True
        )
        keys = [Patch(color=colours[code], label=name) for code, name in names.items()]
        axes.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    axes.set(xlabel=_words(values.dims[1]), ylabel=_words(values.dims[0]), title=title)


def _words(name: object) -> str:
    return str(name).replace("_", " ")
