"""Question 5: a continuum of environments, the shape of its law, and environments that drift along time."""

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from holdfast.core.statistics import Estimate, mean_interval, median
from holdfast.theory.diagnosis import WASHED_OUT
from holdfast.theory.lyapunov import exponents
from holdfast_studies.kit.drawing import BAND, Axes, Figure, draw_plane, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, at_end, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, above, below, over, share, study
from holdfast_studies.questions.drifting import drifting_share
from holdfast_studies.questions.strength_laws import (
    BIAS,
    DEVIATION,
    INIT_SCALE,
    LAWS,
    STEP_SIZE,
    TWO_POINT,
    Shape,
    columns_of,
    growth,
    run_strengths,
)

STEPS = 200
LARGE, SMALL = (100, 8000), (30, 2400)
SHAPES = tuple(np.linspace(0.04, 0.96, 12).round(3).tolist())
DEVIATIONS = tuple(np.linspace(1.0, 10.0, 10).tolist())
MAP_SEEDS = 8
# Settings were chosen on seeds from 0 on, which the maps have; the claims have these.
FIRST_SEED = 10_000
# Drift: strengths are a normal sequence with correlation e^(-1/tau) of neighbouring steps; 0: independent.
DRIFT_STEP_SIZE, TIMES, DRIFTING = 0.05, (0.0, 1.0, 3.0, 10.0, 30.0, 100.0), (5.0, 6.5, 8.0, 9.5)
STRONG, SLOW = 8.0, 30.0
# Growth rates in the plane, from a start so small that no signal comes to order one.
GROWTH_STEPS, TINY, RATE_DEVIATIONS = 200, 1e-60, (3.0, 5.0, 7.0, 9.0)
LONG, TINIER, LONG_RUNS, MODERATE = 2000, 1e-80, 8, 10.0
WIDE = 3.09  # standard errors: 24 intervals cover together with a confidence of 95 % (Bonferroni)

LEFT_OPEN = (
    "All settings. The laws have one mean (1) and one standard deviation, so that their shape is all that differs.",
    "Heavy tails: Student's t with 3 degrees of freedom, the heaviest whole number with a variance.",
    "Drift: a stationary normal sequence with exponentially decaying correlation, so that the law of one strength is "
    "that of independent draws.",
)


# These grow slowly or in rare bursts, so that T steps do not decide.
SLOWLY = ("Student t3", "rare strong")


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Growth rates, the laws at one deviation, the map over shape and deviation, and drift."""
    rates_done, laws_done, map_done, drift_done = stages(progress, [10, 60, 15, 15])
    seeds = effort.seeds
    size = SMALL if effort.quick else LARGE  # a quick look compiles one program
    shapes, deviations = SHAPES[:: 3 if effort.quick else 1], DEVIATIONS[:: 3 if effort.quick else 1]
    laws, grid = list(LAWS.values()), np.meshgrid(shapes, deviations, indexing="ij")
    many = columns_of([shape for shape in laws for _ in RATE_DEVIATIONS])
    small: dict[str, ArrayLike] = {"init_scale": TINY, "deviation": np.tile(RATE_DEVIATIONS, len(laws))}
    rates = run_strengths(None, seeds, GROWTH_STEPS, {**many, **small}, rates_done, first_seed=FIRST_SEED)
    compared = run_strengths(size, seeds, STEPS, columns_of(laws), laws_done, first_seed=FIRST_SEED)
    cells = {"choice": TWO_POINT, "probability": grid[0].ravel(), "deviation": grid[1].ravel()}
    mapped = at_end(run_strengths(SMALL, MAP_SEEDS, STEPS, cells, map_done, first_seed=0), *grid[0].shape, MAP_SEEDS)
    times, strengths = np.meshgrid(TIMES, DRIFTING, indexing="ij")
    drifts = _drift(times.ravel(), strengths.ravel())
    drifted = at_end(run_strengths(SMALL, seeds, STEPS, drifts, drift_done, first_seed=0), *times.shape, seeds)
    moderate = {**_drift(MODERATE, STRONG), "init_scale": TINIER}
    slow = run_strengths(None, LONG_RUNS * seeds, LONG, moderate, first_seed=FIRST_SEED)
    judged = run_strengths(size, seeds, STEPS, _drift(np.array([0.0, SLOW]), STRONG), first_seed=FIRST_SEED)
    rate = growth(rates.values["size"], rates.steps, seeds).reshape(len(laws), -1, seeds)
    final = at_end(compared, len(laws), seeds)
    drift = ("correlation_time", "heterogeneity", "seed")
    return xr.Dataset(
        {
            "rate": (("law", "rate_deviation", "seed"), rate),
            **{name: (("law", "seed"), final[name]) for name in ("invariant", "spurious", "diverged")},
            "map_spurious": (("probability", "deviation"), _surviving_median(mapped["spurious"], mapped["diverged"])),
            **{f"drift_{name}": (drift, drifted[name]) for name in ("spurious", "diverged")},
            "drift_rate": ("long_run", growth(slow.values["size"], slow.steps, LONG_RUNS * seeds)[0]),
            "judged": (("judged_time", "seed"), at_end(judged, 2, seeds)["spurious"]),
        },
        {
            "law": list(LAWS), "rate_deviation": list(RATE_DEVIATIONS), "probability": list(shapes),
            "deviation": list(deviations), "correlation_time": list(TIMES), "heterogeneity": list(DRIFTING),
            "judged_time": [0.0, SLOW],
        },
        {"seeds": seeds, "dimension": size[0], "batch_size": size[1]},
    )  # fmt: skip


def _drift(time: ArrayLike, deviation: ArrayLike) -> dict[str, ArrayLike]:
    return {"correlation": correlation(time), "deviation": deviation, "step_size": DRIFT_STEP_SIZE}


def _surviving_median(values: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """The median over runs that did not diverge; NaN where more than half did."""
    found = np.ma.median(np.ma.masked_array(values, lost), -1).filled(np.nan)
    return np.where(lost.mean(-1) > 0.5, np.nan, found)


def correlation(time: ArrayLike) -> np.ndarray:
    """e^(-1/tau), of neighbouring steps; 0 for tau = 0."""
    time = np.asarray(time, float)
    return np.where(time > 0, np.exp(-1 / np.where(time > 0, time, 1.0)), 0.0)


def expected_share_above(heterogeneity: float, time: float) -> float:
    """The probability that the spurious share is above the mark after T steps of drift."""
    rho = float(correlation(time))
    found = drifting_share(BIAS, heterogeneity, DRIFT_STEP_SIZE, STEPS, INIT_SCALE, correlation=rho)
    return found.above(WASHED_OUT)


ZERO = "#c8553d"  # seen on every colour of the map


def draw(data: xr.Dataset) -> Figure:
    """Exponents of the laws, the map over shape and deviation, and how many runs keep the signal under drift."""
    seeds = data.attrs["seeds"]
    figure, (left, middle, right) = new_figure(3, f"Question 5: a continuum of environments, {seeds} seeds")
    _draw_exponents(left, data)
    surface = data["map_spurious"].transpose("deviation", "probability")
    draw_plane(middle, surface, f"two strengths: median spurious share, T={STEPS}")
    figure.axes[-1].set_ylabel("white: most runs diverged")  # the colour bar
    shapes, deviations = np.linspace(SHAPES[0], SHAPES[-1], 60), np.linspace(DEVIATIONS[0], DEVIATIONS[-1], 60)
    middle.contour(shapes, deviations, _skewed_exponent(shapes, deviations[:, None]), [0.0], colors=ZERO, linewidths=2)
    middle.plot([], [], color=ZERO, linewidth=2, label="exponent zero")
    middle.set(xlabel="probability of the larger strength", ylabel="standard deviation of the strengths")
    _draw_drift(right, data)
    return finished(figure)


def _exponent(shape: Shape, deviation: float = DEVIATION, step_size: float = STEP_SIZE) -> float:
    return float(exponents(shape.environments(deviation), step_size)[0])


def _skewed_exponent(probability: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The exponent of `skewed` laws, for many of them at once."""
    up, down = np.sqrt((1 - probability) / probability), -np.sqrt(probability / (1 - probability))
    larger, smaller = (np.log(np.abs(1 + STEP_SIZE * (BIAS + deviation * way))) for way in (up, down))
    return probability * larger + (1 - probability) * smaller


def _draw_exponents(axes: Axes, data: xr.Dataset) -> None:
    deviations = np.linspace(1, 10, 25)
    for name, shape in LAWS.items():
        curve = [_exponent(shape, m) for m in deviations]
        (line,) = axes.plot(deviations, curve, "-" if shape.probability == 0.5 else "--", linewidth=1.2, label=name)
        axes.plot(RATE_DEVIATIONS, data["rate"].sel(law=name).mean("seed"), "o", markersize=4, color=line.get_color())
    axes.axhline(0, color="0.4", linewidth=0.8)
    axes.axvline(DEVIATION, color="0.4", linewidth=0.8, linestyle=":")
    axes.set(xlabel="standard deviation of the strengths", ylabel="growth of log Q per step", ylim=(-0.5, 0.5),
             title=f"theory (lines), simulation (dots), eta={STEP_SIZE}")  # fmt: skip


def _draw_drift(axes: Axes, data: xr.Dataset) -> None:
    position = np.arange(len(TIMES))
    failed = (data["drift_spurious"] > WASHED_OUT) | data["drift_diverged"]
    fine = np.concatenate([[0.0], np.geomspace(TIMES[1], TIMES[-1], 30)])
    where = np.interp(np.log(np.maximum(fine, 0.3)), np.log(np.maximum(TIMES, 0.3)), position)
    for strength in DRIFTING:
        (line,) = axes.plot(position, failed.sel(heterogeneity=strength).mean("seed"), "o", label=f"M={strength:g}")
        axes.plot(where, [expected_share_above(strength, t) for t in fine], linewidth=1, color=line.get_color())
    axes.set_xticks(position, [f"{time:g}" for time in TIMES])
    axes.set(xlabel="correlation time of the strengths, steps (0: independent)", ylim=(-0.02, 1),
             ylabel=f"share of runs above {WASHED_OUT} at T={STEPS}",
             title=f"drift (normal, eta={DRIFT_STEP_SIZE}); lines: theory")  # fmt: skip


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Each law at one deviation: its exponent, the shares and the runs that diverged."""
    exponent = [_exponent(shape) for shape in LAWS.values()]
    survived = data.where(~data["diverged"])
    found = pd.DataFrame({"law": list(LAWS), "exponent": exponent, "diverged": data["diverged"].mean("seed")})
    for name in ("invariant", "spurious"):
        for quantile in BAND:
            found[f"{name} {quantile:.0%}"] = survived[name].quantile(quantile, "seed").values
    return found


def claims(data: xr.Dataset) -> list[Claim]:
    """Exponents by quadrature, the shape of the law, and drift."""
    size = f"d={data.attrs['dimension']}, m={data.attrs['batch_size']}, s=1, alpha=1e-3, T={STEPS}"
    one = f"{size}, eta={STEP_SIZE}, standard deviation {DEVIATION:g}"
    claim = ClaimBuilder("continuum", "question 5", one)
    predicted = np.array([[_exponent(shape, m) for m in RATE_DEVIATIONS] for shape in LAWS.values()])
    error = data["rate"].std("seed", ddof=1) / np.sqrt(data.sizes["seed"])
    inside = np.abs(data["rate"].mean("seed") - predicted) <= WIDE * error
    found = [
        claim("exponents", "A small spurious direction grows at the exponent of its law, by quadrature for a "
              "continuum.", share(inside), (0.8, 1.0), "share of problems whose interval (95 % for all together) holds "
              "the exponent", settings=f"{inside.size} problems: {len(LAWS)} laws, population, eta={STEP_SIZE}, "
              f"T={GROWTH_STEPS}"),
    ]  # fmt: skip
    for name, shape in LAWS.items():
        exponent, runs = _exponent(shape), data.sel(law=name)
        short, lost = name.replace(" ", "-").lower(), int(runs["diverged"].sum())
        if name in SLOWLY:
            found.append(claim(short, f"With {name} strengths of this variance the spurious signal grows in the long "
                               "run.", mean_interval(runs["rate"].sel(rate_deviation=DEVIATION).values), above(1e-3),
                               f"growth of log Q per step; exponent {exponent:.4f}",
                               settings=f"population, eta={STEP_SIZE}, standard deviation {DEVIATION:g}, "
                               f"T={GROWTH_STEPS}"))  # fmt: skip
            continue
        washed = exponent < 0
        found.append(claim(short, f"With {name} strengths of this variance the spurious signal is "
                           f"{'washed out' if washed else 'learned'}.", _median_of_survivors(runs),
                           below(WASHED_OUT) if washed else above(WASHED_OUT), f"exponent {exponent:.4f}",
                           settings=f"{one}, {lost} of {runs.sizes['seed']} runs diverged"))  # fmt: skip
    normal, tails = (data["diverged"].sel(law=name) for name in ("normal", "Student t3"))
    exponent = _exponent(LAWS["normal"], STRONG, DRIFT_STEP_SIZE)
    slow, at_once = (share(data["judged"].sel(judged_time=t) > WASHED_OUT) for t in (SLOW, 0.0))
    expected = expected_share_above(STRONG, SLOW)
    rate = mean_interval(data["drift_rate"].values)
    drifting = f"normal strengths, eta={DRIFT_STEP_SIZE}, M={STRONG:g}"
    return [
        *found,
        claim("normal-bounded", "Normal strengths, which have no bound, let at most one run in ten diverge by T.",
              share(normal), (0.0, 0.1), f"no step size bounds the iteration; Student t3: {int(tails.sum())} of "
              f"{tails.size} runs diverged"),
        claim("drift-exponent", "Drift does not change the exponent, which depends on the law of one strength alone.",
              over(rate, exponent), (0.8, 1.2), f"growth of log Q per step over the exponent {exponent:.4f}",
              settings=f"population, {drifting}, correlation time {MODERATE:g}, T={LONG}"),
        claim("drift-independent", "Independent strengths leave the spurious signal in at most one run in ten.",
              at_once, (0.0, 0.1), f"share of runs above {WASHED_OUT}; theory {expected_share_above(STRONG, 0.0):.3f}; "
              "64 seeds that no setting was chosen on do not decide it, and 500 would take 10 s",
              settings=f"{size}, {drifting}", expected=Position.UNDECIDED),
        claim("drift-slow", "A drift over many steps leaves it in as many runs as its longer walk predicts, up to a "
              "factor of two.", slow, (expected / 2, min(2 * expected, 1.0)),
              f"share of runs above {WASHED_OUT}; theory {expected:.3f}", settings=f"{size}, {drifting}, correlation "
              f"time {SLOW:g}"),
    ]  # fmt: skip


def _median_of_survivors(runs: xr.Dataset) -> Estimate:
    return median(runs["spurious"].values[~runs["diverged"].values])


def answer(data: xr.Dataset) -> str:
    """How a continuum differs, with numbers."""
    shares = ", ".join(f"{name} {_median_of_survivors(data.sel(law=name)).value:.2g}" for name in LAWS)
    above = {t: float((data["judged"].sel(judged_time=t) > WASHED_OUT).mean()) for t in (0.0, SLOW)}
    return (
        "A continuum behaves like any other law: the mean of log|1 + eta xi| decides, and with it the law's shape, "
        f"not only its variance. With one mean and variance, the median spurious share at T={STEPS} is {shares}. "
        f"Drifting environments have the same exponent but a longer walk: with a correlation time of {SLOW:g} steps "
        f"{above[SLOW]:.0%} of the runs keep the signal, against {above[0.0]:.0%} with independent draws."
    )


EXPERIMENT = study("continuum", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=64, quick_seeds=8)
