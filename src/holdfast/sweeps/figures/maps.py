"""Maps of a sweep: a quantity over two axes in colours, or over two settings of points."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from holdfast.core.validation import require
from holdfast.sweeps.designs import ScaleName
from holdfast.sweeps.figures.frames import MARKS, axis_scale, is_logarithmic, name_marks, new_frame
from holdfast.sweeps.figures.labels import dividers
from holdfast.sweeps.figures.scales import Scale
from holdfast.sweeps.figures.summary import FEW, NOT_COMPUTED, SweepSummary

MOST_PANELS, PANELS_IN_A_ROW = 6, 3
# Sizes of markers and of points, and the side of a panel, in typographical points.
MARKER, POINT_SIZE, PANEL = 5.0, 6.0, 200.0


def draw_map(found: SweepSummary, y: str, scale: ScaleName | None = None) -> Figure:
    """Draw a quantity in colours over its x and y, with a panel for each value of further axes.

    Args:
        found: numbers over x and y.
        y: of `found`, which is known here.
        scale: of the colours; None: as the numbers need it.

    Example:
        >>> from holdfast.sweeps.figures.summary import summarise_sweep
        >>> data = xr.Dataset({"error": (("a", "b", "seed"), np.ones((2, 2, 3)))}, {"a": [0.0, 1.0], "b": [0.0, 1.0]})
        >>> figure = draw_map(summarise_sweep(data, "a", "b"), "b")
        >>> figure.axes[0].get_xlabel(), figure.axes[-1].get_ylabel()
        ('a', 'median of error')
    """
    values, x = found.band.middle, found.x
    used = {values[x].dims[0], values[y].dims[0]}
    contract = "x and y must be two axes of the result, or two settings of the points of a list or a random design"
    require(len(used) == 1 or used == {x, y}, contract, f"{x!r} and {y!r}")
    divided = dividers(values, (x, y))
    panels = list(itertools.product(*(range(len(each.labels)) for each in divided)))
    contract = f"x = {x!r} and y = {y!r} must leave at most {MOST_PANELS} panels; fix other settings with at (--at)"
    require(
        len(panels) <= MOST_PANELS, contract, f"{len(panels)} panels over {', '.join(each.name for each in divided)}"
    )
    rows = -(-len(panels) // PANELS_IN_A_ROW)
    columns = -(-len(panels) // rows)  # four are two by two
    figure = new_frame(2.0 + 4.0 * columns, 0.6 + 3.8 * rows, found.titled(""))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    (right, x_label), (up, y_label) = axis_scale(found, x), axis_scale(found, y)
    finite = values.values[np.isfinite(values.values)]
    ends = (0.0, 1.0) if found.is_share and scale != "log" else (finite.min(), finite.max())
    norm = LogNorm(*ends) if is_logarithmic(found, scale, has_bands=False) else Normalize(*ends)
    image: Any = None
    for panel, axes in zip(panels, grid.flat, strict=False):
        chosen = {k: v for each, place in zip(divided, panel, strict=True) for k, v in each.indexers[place].items()}
        titles = (f"{each.name} {each.labels[place]}" for each, place in zip(divided, panel, strict=True))
        marks = {name: where.isel(chosen) for name, where in found.marks.items()}
        image = _panel(
            axes,
            values.isel(chosen),
            marks,
            {x: _part(right, values[x], chosen), y: _part(up, values[y], chosen)},
            norm,
        )
        right.apply(axes.xaxis)
        up.apply(axes.yaxis)
        axes.set(xlabel=x_label, ylabel=y_label, title=", ".join(titles))
        axes.tick_params(labelbottom=True, labelleft=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    label = found.label if found.is_share else f"{found.over} of {found.label}"
    figure.colorbar(image, ax=grid.ravel().tolist(), pad=0.02).set_label(label)
    name_marks(figure, [name for name in MARKS if name in found.marks and found.marks[name].any()])
    return figure


def _part(scale: Scale, coordinate: xr.DataArray, chosen: Mapping[str, Any]) -> Scale:
    """The scale of the points of a panel."""
    return scale._replace(positions=scale.positions[chosen.get(str(coordinate.dims[0]), slice(None))])


def _panel(
    axes: Axes, values: xr.DataArray, marks: Mapping[str, xr.DataArray], scales: Mapping[str, Scale], norm: Normalize
) -> Any:
    (x, right), (y, up) = ((name, scale.positions) for name, scale in scales.items())
    look: dict[str, Any] = {"norm": norm, "cmap": "viridis"}
    is_grid = values[x].dims != values[y].dims
    if is_grid:
        values = values.transpose(y, x)
        image: Any = axes.pcolormesh(scales[x].edges(), scales[y].edges(), values.values, rasterized=True, **look)
        axes.grid(visible=False)
        right, up = np.meshgrid(right, up)
    else:  # points of a list or a random design
        image = axes.scatter(right, up, c=values.values, s=POINT_SIZE**2, edgecolors="0.3", linewidths=0.3, **look)
    for name, where in marks.items():
        which = where.transpose(*values.dims).values
        if which.any() and not (is_grid and name == NOT_COMPUTED):  # the cell stays empty
            # Smaller than a cell, and than a point whose colour is to be seen around it.
            size = PANEL / 2 / max(values.shape) if is_grid else POINT_SIZE / 2 if name == FEW else MARKER
            size = min(size, MARKER)
            shape: dict[str, Any] = {"linestyle": "none", "markersize": size, "markeredgewidth": size / MARKER}
            axes.plot(right[which], up[which], **shape, **MARKS[name])
    return image
