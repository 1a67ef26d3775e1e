"""Phase diagrams: where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from holdfast.core.progress import Progress
from holdfast.core.statistics import proportion
from holdfast.environments import two_point
from holdfast.plots import draw_plane, legend_below, new_figure
from holdfast.reproduction import quick
from holdfast.reproduction.claims import Claim, Verdict
from holdfast.sensing.outcome import Code
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast.theory.advice import learning_time
from holdfast.theory.lyapunov import two_point_exponent, two_point_threshold
from holdfast.theory.regions import LEARNED, WASHED_OUT, Region, classify, predicted_region
from holdfast.theory.sampling import residual_floor
from holdfast.theory.window import bounded_step_size

TITLE = "phase diagram over step size and heterogeneity, with the analytic curves"
OPEN = (
    "The whole diagram: the paper varies one quantity at a time.",
    "What counts as learned (median share above 0.5) and as washed out (median share below 0.05).",
)
SEEDS, QUICK_SEEDS = 32, quick.SEEDS
# Cells of a side: in the reproduction, and in the full diagrams.
CELLS_IN_REPORT, CELLS = 24, 40

# A heterogeneity below the threshold of 6.4, where a spurious signal comes late, and one above it.
WEAK, STRONG = 5.0, 8.0
BIAS, INIT_SCALE, STEP_SIZE = 1.0, 1e-3, 0.05
BASE = Settings(dimension=30, batch_size=8000, bias=BIAS, steps=200, init_scale=INIT_SCALE, every=200)
SUMMARY = "d=30, r1=r2=1, m=8000, s=1, T=200, alpha=1e-3, symmetric measurements, exact law"


@dataclass(frozen=True)
class Plane:
    """Two settings that are varied together.

    Attributes:
        title: what is shown.
        x: name of the setting along the horizontal axis.
        y: name of the setting along the vertical axis.
        simulate: (cells of a side, seeds, progress) -> median signals over (y, x).
        curves: draws what the theory says over the map.
        measured: the signal shown beside the regions.
        limit: the regions that the theory expects for T -> infinity, over (y, x); none if it is left out.
    """

    title: str
    x: str
    y: str
    simulate: Callable[[int, int, Progress | None], xr.Dataset]
    curves: Callable[[Axes], None]
    measured: str = "spurious"
    limit: Callable[[xr.Dataset], np.ndarray] | None = None


def medians(runs: xr.Dataset) -> xr.Dataset:
    """Median signals over the runs of each cell that did not diverge, the share that did, and the region."""
    diverged = runs["outcome"] == Code.DIVERGED
    lost = diverged.all("seed")  # no median: the cell is unstable, and NaN is shown
    signals = runs[["invariant", "spurious", "residual", "distance"]]
    data = signals.where(~diverged | lost).median("seed").where(~lost)
    data["diverged"] = diverged.mean("seed")
    region = classify(data["invariant"], data["spurious"], data["diverged"].broadcast_like(data["invariant"]))
    return data.assign(region=(data["invariant"].dims, region.astype(np.int8)))


def _step_size(cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    settings = replace(
        BASE,
        seeds=seeds,
        step_size=tuple(np.geomspace(0.01, 0.5, cells).tolist()),
        heterogeneity=tuple(np.linspace(0.0, 12.0, cells).tolist()),
    )
    return medians(run_simulation(settings, progress=progress).final).transpose("heterogeneity", "step_size")


def _step_size_curves(axes: Axes) -> None:
    step_size = np.geomspace(0.01, 0.5, 400)
    needed = (0.5 * np.log(WASHED_OUT) - np.log(INIT_SCALE)) / BASE.steps
    axes.plot(step_size, two_point_threshold(step_size, BIAS), "k-", label="exponent zero (T → ∞)")
    axes.plot(step_size, two_point_threshold(step_size, BIAS, needed), "k--", label=f"median {WASHED_OUT} at T=200")
    strengths = np.linspace(0, 12, 200)
    bounds = [bounded_step_size(BIAS - m, BIAS + m) for m in strengths]
    axes.plot(bounds, strengths, "k:", label="iteration loses its bound")
    slowest = least_step_size(BASE.steps, INIT_SCALE)
    axes.axvline(slowest, color="k", linestyle="-.", label="invariant learned by T=200")
    axes.set(xscale="log", ylim=(0, 12), xlim=(0.01, 0.5))
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def least_step_size(steps: int, init_scale: float) -> float:
    """The least step size at which the invariant signal is learned within T steps."""
    candidates = np.geomspace(1e-3, 0.9, 2000)
    times = np.array([learning_time(float(eta), init_scale, level=LEARNED) for eta in candidates])
    return float(candidates[np.argmax(times <= steps)])


TIME = replace(BASE, heterogeneity=WEAK, step_size=STEP_SIZE, steps=600)


def _time(cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    settings = replace(
        TIME, seeds=seeds, init_scale=tuple(np.geomspace(1e-6, 1e-1, cells).tolist()), every=TIME.steps // cells
    )
    data = run_simulation(settings, progress=progress).data
    return medians(data.isel(step=slice(1, None))).transpose("step", "init_scale")


def _time_curves(axes: Axes) -> None:
    alpha = np.geomspace(1e-6, 1e-1, 200)
    learned = [learning_time(STEP_SIZE, float(a), level=LEARNED) for a in alpha]
    exponent = float(two_point_exponent(STEP_SIZE, BIAS, WEAK))
    axes.plot(alpha, learned, "k-.", label="invariant learned")
    spurious = (0.5 * np.log(WASHED_OUT) - np.log(alpha)) / exponent
    axes.plot(alpha, spurious, "k--", label=f"median spurious {WASHED_OUT}")
    axes.set(xscale="log", xlim=(1e-6, 1e-1), ylim=(0, TIME.steps))


SAMPLING = replace(BASE, heterogeneity=STRONG, step_size=STEP_SIZE)


def _sampling(cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    batch_sizes = tuple(np.unique(np.geomspace(30, 1e6, cells).astype(int)).tolist())
    dimensions = np.unique(np.geomspace(4, 100, max(4, cells // 4)).astype(int))
    work = np.cumsum(np.append(0, dimensions**3))
    parts = []
    for place, dimension in enumerate(dimensions):  # the dimension shapes the program: one after the other

        def report(done: int, total: int, begin: int = work[place], end: int = work[place + 1]) -> None:
            if progress:
                progress(int(begin + (end - begin) * done / total), int(work[-1]))

        settings = replace(SAMPLING, seeds=seeds, dimension=int(dimension), batch_size=batch_sizes)
        parts.append(medians(run_simulation(settings, progress=report).final))
    return xr.concat(parts, pd.Index(dimensions, name="dimension")).transpose("dimension", "batch_size")


def _sampling_curves(axes: Axes) -> None:
    dimension = np.linspace(4, 100, 50)
    law = two_point(BIAS, STRONG)
    for level, line in ((WASHED_OUT, "k--"), (1.0, "k-")):
        batch = [residual_floor(law, STEP_SIZE, int(d), 1) / level for d in dimension]
        axes.plot(batch, dimension, line, label=f"residual {level:g} by sampling error")
    axes.set(xscale="log", xlim=(30, 1e6), ylim=(4, 100))


OVERLAP = replace(BASE, step_size=STEP_SIZE, steps=600, every=600)


def _overlap(cells: int, seeds: int, progress: Progress | None) -> xr.Dataset:
    settings = replace(
        OVERLAP,
        seeds=seeds,
        overlap=tuple(np.linspace(0, 0.95, cells).tolist()),
        heterogeneity=tuple(np.linspace(0.0, 12.0, cells).tolist()),
    )
    return medians(run_simulation(settings, progress=progress).final).transpose("heterogeneity", "overlap")


def _overlap_curves(axes: Axes) -> None:
    overlap = np.linspace(0, 0.95, 200)
    weaker = 1 - overlap**2  # what the invariant signal leaves of the strengths, see theory.strengths.after_invariant
    axes.plot(overlap, two_point_threshold(STEP_SIZE, weaker) / weaker, "k-", label="exponent zero (T → ∞)")
    axes.axvline(np.sqrt(WASHED_OUT), color="k", linestyle=":", label="A* itself has this spurious share")
    axes.set(xlim=(0, 0.95), ylim=(0, 12))


def predicted(data: xr.Dataset, steps: float) -> np.ndarray:
    """The region that the theory expects in each cell of the first plane."""

    def region(heterogeneity: float, step_size: float) -> Region:
        return predicted_region(two_point(BIAS, heterogeneity), step_size, steps, INIT_SCALE)

    return np.vectorize(region)(data["heterogeneity"].values[:, None], data["step_size"].values[None, :])


PLANES: dict[str, Plane] = {
    "step_size": Plane(
        "step size and heterogeneity",
        "step_size",
        "heterogeneity",
        _step_size,
        _step_size_curves,
        limit=lambda data: predicted(data, np.inf),
    ),
    "time": Plane("starting point and time", "init_scale", "step", _time, _time_curves),
    "sampling": Plane("batch size and dimension", "batch_size", "dimension", _sampling, _sampling_curves, "residual"),
    "overlap": Plane("overlap and heterogeneity", "overlap", "heterogeneity", _overlap, _overlap_curves),
}


def draw_diagram(plane: Plane, data: xr.Dataset, seeds: int) -> Figure:
    """The measured signal and the regions of a plane, with the analytic curves on top."""
    panels = 2 if plane.limit is None else 3
    figure, axes = new_figure(panels, f"Phase diagram over {plane.title}: medians over {seeds} seeds")
    names = {int(region): region.label for region in Region}
    draw_plane(axes[0], data[plane.measured], f"median {plane.measured} share")
    draw_plane(axes[1], data["region"], "regions, simulated", names)
    if plane.limit is not None:
        draw_plane(axes[2], data["region"].copy(data=plane.limit(data)), "regions for T → ∞, by theory", names)
    for panel in axes:
        plane.curves(panel)
    legend_below(axes[0])
    return figure


def simulate(seeds: int, progress: Progress | None = None) -> xr.Dataset:
    """The first plane; in a quick look with larger cells."""
    cells = CELLS_IN_REPORT // 2 if quick.is_meant(seeds) else CELLS_IN_REPORT
    return _step_size(cells, seeds, progress).assign_attrs(seeds=seeds)


def draw(data: xr.Dataset) -> Figure:
    """The first plane."""
    return draw_diagram(PLANES["step_size"], data, data.attrs["seeds"])


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """What is shown, one row a cell."""
    return data.to_dataframe().reset_index()


def claims(data: xr.Dataset) -> list[Claim]:
    """How often the theory names the region that is seen."""
    at_end, expected = data["region"].values, predicted(data, BASE.steps)
    stable = expected != Region.UNSTABLE
    agreement = proportion(int((at_end == expected)[stable].sum()), int(stable.sum()))
    washed = at_end[(expected == Region.INVARIANT_ONLY) & stable]
    return [
        Claim(
            "phase-agreement",
            "sharp threshold and finite-time law",
            "The finite-time law names the region of a setting.",
            SUMMARY,
            agreement,
            (0.9, 1.0),
            Verdict.HOLDS_WITH_OUR_CHOICE,
            f"share of cells below the loss of the bound; cells at the border may fall on either side "
            f"({len(washed)} cells are expected to keep the invariant signal only)",
        ),
    ]
