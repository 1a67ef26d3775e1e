"""Phase diagrams: where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from holdfast.core.progress import Progress, stages
from holdfast.core.statistics import proportion
from holdfast.environments import Law, two_point
from holdfast.experiments.names import TITLES
from holdfast.plots import draw_plane, legend_below, new_figure
from holdfast.reproduction.claims import OUR_SETTINGS, Claim
from holdfast.reproduction.experiment import QUICK_SEEDS, Effort, Experiment
from holdfast.sensing.outcome import Code
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast.theory.advice import learning_time
from holdfast.theory.lyapunov import exponents, two_point_threshold
from holdfast.theory.regions import LEARNED, WASHED_OUT, Region, classify, predicted_region
from holdfast.theory.sampling import residual_floor
from holdfast.theory.window import stability_limits

LEFT_OPEN = (
    "The whole diagram: the paper varies one quantity at a time.",
    "What counts as learned (median share above 0.5) and as washed out (median share below 0.05).",
)
SEEDS = 32
# Cells of a side: in the reproduction, and in the full diagrams.
CELLS_IN_REPORT, CELLS = 24, 40

# Below the threshold of 6.4 of two-point environments, where a spurious signal comes late, and above it.
WEAK, STRONG = 5.0, 8.0
BIAS, INIT_SCALE, STEP_SIZE = 1.0, 1e-3, 0.05
STEP_SIZES, HETEROGENEITIES, OVERLAPS = (0.01, 0.5), (0.0, 12.0), (0.0, 0.95)
INIT_SCALES, BATCH_SIZES, DIMENSIONS = (1e-6, 1e-1), (30, 1e6), (4, 100)
BASE = Settings(dimension=30, batch_size=8000, bias=BIAS, steps=200, init_scale=INIT_SCALE, every=200)
OVERLAP = replace(BASE, step_size=STEP_SIZE, steps=600, every=600)
TIME = replace(BASE, heterogeneity=WEAK, step_size=STEP_SIZE, steps=600)
SAMPLING = replace(BASE, heterogeneity=STRONG, step_size=STEP_SIZE)
SUMMARY = "d=30, r1=r2=1, m=8000, s=1, T=200, alpha=1e-3, symmetric measurements, exact law"


SettingsRun = Callable[[Settings, Progress | None], xr.Dataset]
"""(settings, progress) -> the data of all runs, under the law and order of a phase diagram."""


@dataclass(frozen=True)
class Plane:
    """Two settings that are varied together.

    Attributes:
        title: what is drawn.
        simulate: (how settings are run, cells of a side, seeds, progress) -> median signals over (y, x).
        curves: (axes, law), draws what the theory says over the map.
        measured: the signal drawn next to the regions.
        limit: (data, law) -> the regions that the theory expects for T -> infinity, over (y, x); None to leave it out.
    """

    title: str
    simulate: Callable[[SettingsRun, int, int, Progress | None], xr.Dataset]
    curves: Callable[[Axes, Law], None]
    measured: str = "spurious"
    limit: Callable[[xr.Dataset, Law], np.ndarray] | None = None


def phase_diagram(
    plane: str = "step_size",
    law: Law = two_point,
    *,
    order: str = "independent",
    cells: int = CELLS,
    seeds: int = 64,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Median signals and the region that a setting ends in, over two settings.

    Args:
        plane: one of `PLANES`.
        law: of the environments, given their bias and heterogeneity; see `holdfast.environments.Law`.
        order: how one environment follows another, one of `holdfast.sensing.names.ORDERS`.
        cells: of a side.
        seeds: runs in each cell.
        progress: called with (done, total).

    Example:
        >>> data = phase_diagram("time", cells=4, seeds=3)
        >>> dict(data["region"].sizes)
        {'step': 4, 'init_scale': 4}
    """
    if plane not in PLANES:
        raise ValueError(f"plane must be one of {', '.join(PLANES)}, got {plane!r}")
    for name, value in (("cells", cells), ("seeds", seeds)):
        if value < 2:
            raise ValueError(f"{name} must be a whole number of at least 2, got {value}")

    def run(settings: Settings, progress: Progress | None) -> xr.Dataset:
        return run_simulation(replace(settings, order=order), environments=law, progress=progress).data

    return PLANES[plane].simulate(run, cells, seeds, progress).assign_attrs(plane=plane, seeds=seeds, order=order)


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


def least_heterogeneity(law: Law, step_size: np.ndarray, exponent: float = 0.0) -> np.ndarray:
    """The least heterogeneity at which a spurious direction grows by at most an exponent; NaN if none that is drawn."""
    if law is two_point:
        return two_point_threshold(step_size, BIAS, exponent)
    strengths = np.linspace(*HETEROGENEITIES, 121)
    surface = np.stack([exponents(law(BIAS, float(m)), step_size).max(-1) for m in strengths])
    found = np.full(len(step_size), np.nan)
    for column, excess in enumerate(surface.T - exponent):
        after = int(np.argmax(excess <= 0))
        if excess[after] <= 0:
            around = [after, max(after - 1, 0)]
            found[column] = np.interp(0.0, excess[around], strengths[around])
    return found


def _step_size(run: SettingsRun, cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    settings = replace(
        BASE,
        seeds=seeds,
        step_size=tuple(np.geomspace(*STEP_SIZES, cells).tolist()),
        heterogeneity=tuple(np.linspace(*HETEROGENEITIES, cells).tolist()),
    )
    return medians(run(settings, progress).isel(step=-1)).transpose("heterogeneity", "step_size")


def _step_size_curves(axes: Axes, law: Law) -> None:
    step_size = np.geomspace(*STEP_SIZES, 200)
    needed = (0.5 * np.log(WASHED_OUT) - np.log(INIT_SCALE)) / BASE.steps
    axes.plot(step_size, least_heterogeneity(law, step_size), "k-", label="exponent zero (T → ∞)")
    within = f"median {WASHED_OUT} at T={BASE.steps}"
    axes.plot(step_size, least_heterogeneity(law, step_size, needed), "k--", label=within)
    strengths = np.linspace(*HETEROGENEITIES, 200)
    bounds = np.array([stability_limits(law(BIAS, float(m)))[1] for m in strengths])
    if np.isfinite(bounds).all():
        axes.plot(bounds, strengths, "k:", label="iteration loses its bound")
    slowest = least_step_size(BASE.steps, INIT_SCALE)
    axes.axvline(slowest, color="k", linestyle="-.", label=f"invariant learned by T={BASE.steps}")
    axes.set(xscale="log", ylim=HETEROGENEITIES, xlim=STEP_SIZES)
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def least_step_size(steps: int, init_scale: float) -> float:
    """The least step size at which the invariant signal is learned within T steps."""
    candidates = np.geomspace(1e-3, 0.9, 2000)
    times = np.array([learning_time(float(eta), init_scale, level=LEARNED) for eta in candidates])
    return float(candidates[np.argmax(times <= steps)])


def _time(run: SettingsRun, cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    scales = tuple(np.geomspace(*INIT_SCALES, cells).tolist())
    data = run(replace(TIME, seeds=seeds, init_scale=scales, every=TIME.steps // cells), progress)
    return medians(data.isel(step=slice(1, None))).transpose("step", "init_scale")


def _time_curves(axes: Axes, law: Law) -> None:
    alpha = np.geomspace(*INIT_SCALES, 200)
    learned = [learning_time(STEP_SIZE, float(a), level=LEARNED) for a in alpha]
    axes.plot(alpha, learned, "k-.", label="invariant learned")
    exponent = float(exponents(law(BIAS, WEAK), STEP_SIZE).max())
    if exponent > 0:
        spurious = (0.5 * np.log(WASHED_OUT) - np.log(alpha)) / exponent
        axes.plot(alpha, spurious, "k--", label=f"median spurious {WASHED_OUT}")
    axes.set(xscale="log", xlim=INIT_SCALES, ylim=(0, TIME.steps))


def _sampling(run: SettingsRun, cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    batch_sizes = tuple(np.unique(np.geomspace(*BATCH_SIZES, cells).astype(int)).tolist())
    dimensions = np.unique(np.geomspace(*DIMENSIONS, max(4, cells // 4)).astype(int)).tolist()
    settings = replace(SAMPLING, seeds=seeds, batch_size=batch_sizes)
    reports = stages(progress, [dimension**3 for dimension in dimensions])
    parts = [  # the dimension shapes the program: one after the other
        medians(run(replace(settings, dimension=dimension), report).isel(step=-1))
        for dimension, report in zip(dimensions, reports, strict=True)
    ]
    return xr.concat(parts, pd.Index(dimensions, name="dimension")).transpose("dimension", "batch_size")


def _sampling_curves(axes: Axes, law: Law) -> None:
    dimension = np.linspace(*DIMENSIONS, 50)
    for level, line in ((WASHED_OUT, "k--"), (1.0, "k-")):
        batch = [residual_floor(law(BIAS, STRONG), STEP_SIZE, int(d), 1) / level for d in dimension]
        axes.plot(batch, dimension, line, label=f"residual {level:g} by sampling error")
    axes.set(xscale="log", xlim=BATCH_SIZES, ylim=DIMENSIONS)


def _overlap(run: SettingsRun, cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    settings = replace(
        OVERLAP,
        seeds=seeds,
        overlap=tuple(np.linspace(*OVERLAPS, cells).tolist()),
        heterogeneity=tuple(np.linspace(*HETEROGENEITIES, cells).tolist()),
    )
    return medians(run(settings, progress).isel(step=-1)).transpose("heterogeneity", "overlap")


def _overlap_curves(axes: Axes, law: Law) -> None:
    overlap = np.linspace(*OVERLAPS, 200)
    # The invariant signal weakens the strengths (theory.strengths.after_invariant), which acts like a smaller step.
    weaker = 1 - overlap**2
    axes.plot(overlap, least_heterogeneity(law, STEP_SIZE * weaker), "k-", label="exponent zero (T → ∞)")
    axes.axvline(np.sqrt(WASHED_OUT), color="k", linestyle=":", label="A* itself has this spurious share")
    axes.set(xlim=OVERLAPS, ylim=HETEROGENEITIES)


def predicted(data: xr.Dataset, steps: float, law: Law = two_point) -> np.ndarray:
    """The region that the theory expects in each cell of the plane of step size and heterogeneity."""

    def region(heterogeneity: float, step_size: float) -> Region:
        return predicted_region(law(BIAS, heterogeneity), step_size, steps, INIT_SCALE)

    return np.vectorize(region)(data["heterogeneity"].values[:, None], data["step_size"].values[None, :])


PLANES: dict[str, Plane] = {
    "step_size": Plane(
        "step size and heterogeneity",
        _step_size,
        _step_size_curves,
        limit=lambda data, law: predicted(data, np.inf, law),
    ),
    "time": Plane("starting point and time", _time, _time_curves),
    "sampling": Plane("batch size and dimension", _sampling, _sampling_curves, "residual"),
    "overlap": Plane("overlap and heterogeneity", _overlap, _overlap_curves),
}


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The plane of step size and heterogeneity; in a quick look with larger cells."""
    cells = CELLS_IN_REPORT // 2 if effort.quick else CELLS_IN_REPORT
    return phase_diagram("step_size", cells=cells, seeds=effort.seeds, progress=progress)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The numbers of the map, one row for each cell."""
    return data.to_dataframe().reset_index()


def claims(data: xr.Dataset) -> list[Claim]:
    """How often the theory names the region that is seen."""
    at_end, expected = data["region"].values, predicted(data, BASE.steps)
    stable = expected != Region.UNSTABLE
    agreement = proportion(int((at_end == expected)[stable].sum()), int(stable.sum()))
    washed = at_end[(expected == Region.INVARIANT_ONLY) & stable]
    return [
        Claim("phase-agreement", "Holdfast",
              "The finite-time law names the region of a setting.", SUMMARY, agreement, (0.9, 1.0),
              OUR_SETTINGS,
              f"share of cells below the loss of the bound; cells at the border may fall on either side "
              f"({len(washed)} cells are expected to keep the invariant signal only)"),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    TITLES["phase"], __doc__, LEFT_OPEN, SEEDS, QUICK_SEEDS, simulate, draw_phase_diagram, numbers, claims
)
