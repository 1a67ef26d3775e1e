"""The planes of phase diagrams: which settings are varied together, and what the theory says about them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from holdfast.core.outcome import Code
from holdfast.core.progress import Progress, stages
from holdfast.core.validation import require, suggestion
from holdfast.plots import draw_plane, legend_below, new_figure
from holdfast.sensing.environments import Law, two_point
from holdfast.sensing.settings import CELLS_OF_A_MAP, SEEDS_OF_A_MAP, OrderName, Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast.sweeps.results import open_sweep
from holdfast.sweeps.specification import Sweep, specify
from holdfast.theory.diagnosis import LEARNED, WASHED_OUT, Region, classify, predicted_region
from holdfast.theory.finite_time import learning_time
from holdfast.theory.lyapunov import exponents, two_point_threshold
from holdfast.theory.sampling import residual_floor
from holdfast.theory.window import stability_limits

# Below the threshold of 6.4 of two-point environments, where a spurious signal comes late, and above it.
WEAK, STRONG = 5.0, 8.0
BIAS, INIT_SCALE, STEP_SIZE = 1.0, 1e-3, 0.05
STEP_SIZES, HETEROGENEITIES, OVERLAPS = (0.01, 0.5), (0.0, 12.0), (0.0, 0.95)
INIT_SCALES, BATCH_SIZES, DIMENSIONS = (1e-6, 1e-1), (30, 1e6), (4, 100)
# Of a border that is drawn.
POINTS = 100
BASE = Settings(dimension=30, batch_size=8000, bias=BIAS, steps=200, init_scale=INIT_SCALE, every=200)
OVERLAP = replace(BASE, step_size=STEP_SIZE, steps=600, every=600)
TIME = replace(BASE, heterogeneity=WEAK, step_size=STEP_SIZE, steps=600)
SAMPLING = replace(BASE, heterogeneity=STRONG, step_size=STEP_SIZE)


@dataclass(frozen=True)
class Plane:
    """Two settings that are varied together.

    Attributes:
        title: what is drawn.
        dimensions: of the map, (y, x).
        settings: those that all cells share.
        axes: those that are swept, by the number of cells of a side; where time is a dimension, the records are cells.
        curves: (axes, law), draws what the theory says over the map.
        measured: the signal drawn next to the regions.
        limit: (data, law) -> the regions that the theory expects for T -> infinity, over (y, x); None to leave it out.
    """

    title: str
    dimensions: tuple[str, str]
    settings: Settings
    axes: Callable[[int], dict[str, Any]]
    curves: Callable[[Axes, Law], None]
    measured: str = "spurious"
    limit: Callable[[xr.Dataset, Law], np.ndarray] | None = None


def least_heterogeneity(law: Law, step_size: np.ndarray, exponent: float = 0.0, *, bias: float = BIAS) -> np.ndarray:
    """The least heterogeneity at which a spurious direction grows by at most an exponent; NaN if none that is drawn."""
    if law is two_point:
        return two_point_threshold(step_size, bias, exponent)
    strengths = np.linspace(*HETEROGENEITIES, 121)
    surface = np.stack([exponents(law(bias, float(m)), step_size).max(-1) for m in strengths])
    found = np.full(len(step_size), np.nan)
    for column, excess in enumerate(surface.T - exponent):
        after = int(np.argmax(excess <= 0))
        if excess[after] <= 0:
            around = [after, max(after - 1, 0)]
            found[column] = np.interp(0.0, excess[around], strengths[around])
    return found


def step_size_borders(
    law: Law, step_sizes: tuple[float, float], *, bias: float, steps: int, init_scale: float
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The borders that the theory draws in the plane of step size and heterogeneity: label -> points (x, y).

    Example, after few steps only large step sizes have learned the invariant signal:
        >>> borders = step_size_borders(two_point, (0.01, 0.5), bias=1.0, steps=50, init_scale=1e-3)
        >>> list(borders)[1:3]
        ['median share 0.05 at T=50', 'invariant learned by T=50']
    """
    step_size, strengths = np.geomspace(*step_sizes, POINTS), np.linspace(*HETEROGENEITIES, POINTS)
    needed = (0.5 * np.log(WASHED_OUT) - np.log(init_scale)) / steps
    slowest, bounds = least_step_size(steps, init_scale), [stability_limits(law(bias, float(m)))[1] for m in strengths]
    at_last, by_then = (least_heterogeneity(law, step_size, each, bias=bias) for each in (0.0, needed))
    borders = {
        "exponent zero (T → ∞)": (step_size, at_last),
        f"median share {WASHED_OUT:g} at T={steps}": (step_size, by_then),
        f"invariant learned by T={steps}": (np.full(2, slowest), np.array(HETEROGENEITIES)),
    }
    return borders | ({"may diverge beyond this": (np.array(bounds), strengths)} if np.isfinite(bounds).all() else {})


def _step_size_curves(axes: Axes, law: Law) -> None:
    borders = step_size_borders(law, STEP_SIZES, bias=BIAS, steps=BASE.steps, init_scale=INIT_SCALE)
    for line, (label, (x, y)) in zip(("k-", "k--", "k-.", "k:"), borders.items(), strict=False):
        axes.plot(x, y, line, label=label)
    axes.set(xscale="log", ylim=HETEROGENEITIES, xlim=STEP_SIZES)
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def least_step_size(steps: int, init_scale: float) -> float:
    """The least step size at which the invariant signal is learned within T steps."""
    candidates = np.geomspace(1e-3, 0.9, 2000)
    times = np.array([learning_time(float(eta), init_scale, level=LEARNED) for eta in candidates])
    return float(candidates[np.argmax(times <= steps)])


def _time_curves(axes: Axes, law: Law) -> None:
    alpha = np.geomspace(*INIT_SCALES, 200)
    learned = [learning_time(STEP_SIZE, float(a), level=LEARNED) for a in alpha]
    axes.plot(alpha, learned, "k-.", label="invariant learned")
    exponent = float(exponents(law(BIAS, WEAK), STEP_SIZE).max())
    if exponent > 0:
        spurious = (0.5 * np.log(WASHED_OUT) - np.log(alpha)) / exponent
        axes.plot(alpha, spurious, "k--", label=f"median spurious {WASHED_OUT}")
    axes.set(xscale="log", xlim=INIT_SCALES, ylim=(0, TIME.steps))


def _sampling_axes(cells: int) -> dict[str, tuple]:
    dimensions = np.unique(np.geomspace(*DIMENSIONS, max(4, cells // 4)).astype(int))
    batch_sizes = np.unique(np.geomspace(*BATCH_SIZES, cells).astype(int))
    return {"dimension": tuple(dimensions.tolist()), "batch_size": tuple(batch_sizes.tolist())}


def _sampling_curves(axes: Axes, law: Law) -> None:
    dimension = np.linspace(*DIMENSIONS, 50)
    for level, line in ((WASHED_OUT, "k--"), (1.0, "k-")):
        batch = [residual_floor(law(BIAS, STRONG), STEP_SIZE, int(d), 1) / level for d in dimension]
        axes.plot(batch, dimension, line, label=f"residual {level:g} by sampling error")
    axes.set(xscale="log", xlim=BATCH_SIZES, ylim=DIMENSIONS)


def _overlap_curves(axes: Axes, law: Law) -> None:
    overlap = np.linspace(*OVERLAPS, 200)
    # The invariant signal weakens the strengths outside of its directions, which acts like a smaller step.
    weaker = 1 - overlap**2
    axes.plot(overlap, least_heterogeneity(law, STEP_SIZE * weaker), "k-", label="exponent zero (T → ∞)")
    axes.axvline(np.sqrt(WASHED_OUT), color="k", linestyle=":", label="A* itself has this spurious share")
    axes.set(xlim=OVERLAPS, ylim=HETEROGENEITIES)


def predicted(data: xr.Dataset, steps: float, law: Law = two_point) -> np.ndarray:
    """The region that the theory expects in each cell of the plane of step size and heterogeneity."""

    def region(heterogeneity: float, step_size: float) -> Region:
        return predicted_region(law(BIAS, heterogeneity), step_size, steps, INIT_SCALE)

    return np.vectorize(region)(data["heterogeneity"].values[:, None], data["step_size"].values[None, :])


def _even(ends: tuple[float, float], cells: int) -> tuple[float, ...]:
    return tuple(np.linspace(*ends, cells).tolist())


def _even_in_logarithm(ends: tuple[float, float], cells: int) -> tuple[float, ...]:
    return tuple(np.geomspace(*ends, cells).tolist())


PLANES: dict[str, Plane] = {
    "step_size": Plane(
        "step size and heterogeneity",
        ("heterogeneity", "step_size"),
        BASE,
        lambda cells: {
            "step_size": _even_in_logarithm(STEP_SIZES, cells),
            "heterogeneity": _even(HETEROGENEITIES, cells),
        },
        _step_size_curves,
        limit=lambda data, law: predicted(data, np.inf, law),
    ),
    "time": Plane(
        "starting point and time",
        ("step", "init_scale"),
        TIME,
        lambda cells: {"init_scale": _even_in_logarithm(INIT_SCALES, cells)},
        _time_curves,
    ),
    "sampling": Plane(
        "batch size and dimension",
        ("dimension", "batch_size"),
        SAMPLING,
        _sampling_axes,
        _sampling_curves,
        "residual",
    ),
    "overlap": Plane(
        "overlap and heterogeneity",
        ("heterogeneity", "overlap"),
        OVERLAP,
        lambda cells: {"overlap": _even(OVERLAPS, cells), "heterogeneity": _even(HETEROGENEITIES, cells)},
        _overlap_curves,
    ),
}


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
