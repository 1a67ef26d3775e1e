"""Phase diagrams: where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.outcome import Code
from holdfast.core.progress import Progress, stages
from holdfast.core.validation import require, suggestion
from holdfast.plots import draw_plane, legend_below, new_figure
from holdfast.sensing.environments import Law, two_point
from holdfast.sensing.settings import CELLS_OF_A_MAP, SEEDS_OF_A_MAP, OrderName, Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast.sweeps.phase_planes import PLANES, Plane
from holdfast.sweeps.results import open_sweep
from holdfast.sweeps.specification import Sweep, specify
from holdfast.theory.diagnosis import Region, classify


def phase_diagram(
    plane: str = "step_size",
    law: Law = two_point,
    *,
    order: str = "independent",
    cells: int = CELLS_OF_A_MAP,
    seeds: int = SEEDS_OF_A_MAP,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Median signals and the region that a setting ends in, over two settings; computed in memory.

    Args:
        plane: one of `PLANES`.
        law: of the environments, given their bias and heterogeneity; see `holdfast.sensing.environments.Law`.
        order: how one environment follows another, one of `holdfast.core.order.ORDERS`.
        cells: of a side.
        seeds: runs in each cell.
        progress: called with (done, total).

    Example:
        >>> data = phase_diagram("time", cells=4, seeds=3)
        >>> dict(data["region"].sizes)
        {'step': 4, 'init_scale': 4}
    """
    chosen, settings, axes = _planned(plane, order, cells, seeds)
    sizes = axes.pop("dimension", None)  # it shapes the program: one after the other
    each = sizes or (settings.dimension,)
    parts = []
    for size, report in zip(each, stages(progress, [size**3 for size in each]), strict=True):
        runs = run_simulation(replace(settings, dimension=size, **axes), environments=law, progress=report).data
        parts.append(medians(_cells(runs, chosen)))
    data = parts[0] if sizes is None else xr.concat(parts, pd.Index(sizes, name="dimension"))
    return data.transpose(*chosen.dimensions).assign_attrs(plane=plane, seeds=seeds, order=order)


def phase_sweep(
    plane: str = "step_size",
    *,
    order: OrderName = "independent",
    cells: int = CELLS_OF_A_MAP,
    seeds: int = SEEDS_OF_A_MAP,
) -> Sweep:
    """The runs of a phase diagram as a sweep, which any engine computes cell by cell, and which resumes if interrupted.

    Args:
        plane: one of `PLANES`.
        order: how one environment follows another, one of `holdfast.core.order.ORDERS`.
        cells: of a side.
        seeds: runs in each cell.

    Example:
        >>> phase_sweep("overlap", cells=4, seeds=8).runs
        128
    """
    chosen, settings, axes = _planned(plane, order, cells, seeds)
    shared = {name: value for name, value in settings.asdict().items() if name not in (*axes, "seeds")}
    return specify(shared, axes, seeds=seeds, record="trajectories" if "step" in chosen.dimensions else "final")


def open_phase_diagram(plane: str, folder: str | Path) -> xr.Dataset:
    """The phase diagram of a finished `phase_sweep`; as from `phase_diagram`, to rounding.

    Args:
        plane: of the sweep.
        folder: of the sweep, or its zarr group.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps import run_sweep
        >>> folder = tempfile.mkdtemp()
        >>> run_sweep(phase_sweep("time", cells=4, seeds=3), folder).computed
        4
        >>> dict(open_phase_diagram("time", folder)["region"].sizes)
        {'step': 4, 'init_scale': 4}
    """
    runs, chosen = open_sweep(folder), PLANES[plane]
    share = f"{str(folder)!r} with {float(runs['finished'].mean()):.1%} of its runs"
    require(bool(runs["finished"].all()), "folder must be that of a finished sweep", share)
    settings = runs.attrs["settings"]
    if "step" not in runs.coords:  # it has recorded the last step only
        runs = runs.assign_coords(step=settings["steps"])
    data = medians(_cells(runs, chosen)).transpose(*chosen.dimensions)
    return data.assign_attrs(plane=plane, seeds=runs.sizes["seed"], order=settings["order"])


def _planned(plane: str, order: str, cells: int, seeds: int) -> tuple[Plane, Settings, dict[str, Any]]:
    """The plane of a name, the settings that its cells share, and the axes."""
    if plane not in PLANES:
        raise ValueError(f"plane must be one of {', '.join(PLANES)}, got {plane!r}{suggestion(plane, PLANES)}")
    for name, value in (("cells", cells), ("seeds", seeds)):
        require(value >= 2, f"{name} must be a whole number of at least 2", value)
    chosen = PLANES[plane]
    settings = replace(chosen.settings, order=order, seeds=seeds)
    if "step" in chosen.dimensions:
        settings = replace(settings, every=settings.steps // cells)
    return chosen, settings, chosen.axes(cells)


def _cells(runs: xr.Dataset, plane: Plane) -> xr.Dataset:
    """The records that are cells of the map: all but the start, or the last."""
    if "step" not in runs.dims:
        return runs
    return runs.isel(step=slice(1, None) if "step" in plane.dimensions else -1)


def draw_phase_diagram(data: xr.Dataset, law: Law = two_point) -> Figure:
    """The measured signal and the regions of a `phase_diagram`, with the curves of the theory on top.

    Example:
        >>> figure = draw_phase_diagram(phase_diagram("time", cells=4, seeds=3))
        >>> figure.axes[1].get_title()
        'regions, simulated'
    """
    plane = PLANES[data.attrs["plane"]]
    order = data.attrs["order"]
    visited = "" if order == "independent" else f", environments in {order} order"
    title = f"Phase diagram over {plane.title}{visited}: medians over {data.attrs['seeds']} seeds"
    figure, axes = new_figure(2 if plane.limit is None else 3, title)
    names = {int(region): region.label for region in Region}
    draw_plane(axes[0], data[plane.measured], f"median {plane.measured} share")
    draw_plane(axes[1], data["region"], "regions, simulated", names)
    if plane.limit is not None:
        draw_plane(axes[2], data["region"].copy(data=plane.limit(data, law)), "regions for T → ∞, by theory", names)
    for panel in axes:
        plane.curves(panel, law)
    legend_below(axes[0])
    return figure


def medians(runs: xr.Dataset) -> xr.Dataset:
    """Median signals over the runs of each cell that did not diverge, the share that did, and the region."""
    diverged = runs["outcome"] == Code.DIVERGED
    lost = diverged.all("seed")  # no median: the cell is unstable, and its signals are NaN
    signals = runs[["invariant", "spurious", "residual", "distance"]]
    data = signals.where(~diverged | lost).median("seed").where(~lost)
    data["diverged"] = diverged.mean("seed")
    region = classify(data["invariant"], data["spurious"], data["diverged"].broadcast_like(data["invariant"]))
    codes = {"codes": ", ".join(f"{each.value}: {each.label}" for each in Region)}
    return data.assign(region=(data["invariant"].dims, region.astype(np.int8), codes))
