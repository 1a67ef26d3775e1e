"""The planes of phase diagrams: which settings are varied together, and what the theory says about them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from holdfast.sensing.environments import Law, two_point
from holdfast.sensing.settings import Settings
from holdfast.theory.diagnosis import LEARNED, WASHED_OUT, Region, predicted_region
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
    borders = {
        "exponent zero (T → ∞)": (step_size, least_heterogeneity(law, step_size, bias=bias)),
        f"median share {WASHED_OUT:g} at T={steps}": (
            step_size,
            least_heterogeneity(law, step_size, needed, bias=bias),
        ),
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
