"""Theorem 2 and eq. 10 of Xu, Gu and Fang (NeurIPS 2024): the error of HeteroSGD against batch size and dimension."""

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from holdfast.core.statistics import Estimate, bootstrap, median
from holdfast_studies.kit.drawing import COLOURS, Axes, Figure, band, estimate_bars, finished, legend_below, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, run_simulation, simulate_each, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, Position, below, exact_share, study, summary
from holdfast_studies.papers.conditions import delta_star, spread_of_constants, theorem_conditions

LEFT_OPEN = (
    "The theorem's step sizes (24/M2, 1/(64 M1)) are empty for these strengths; M=8 is beyond the sharp threshold "
    "6.40 for eta=0.05, where the spurious signal does die out. The experiment `inside` has settings that meet them.",
    "The constants of eqs. 9 and 10 are not printed: we fit the median error, and ask for the constant that eq. 9 "
    "needs at settings that differ in d, m, r1, r2 and M, with delta = sqrt(d/m) and c_v = 1. An upper bound may be "
    "loose; that it follows the error would mean constants within a factor of 10.",
    "How near is near A*, where the theorem says with probability over 0.99: 0.05 in eq. 11.",
)
BATCH_SIZES = tuple(int(m) for m in np.geomspace(2_000, 2_000_000, 7))
DIMENSIONS = (30, 50, 100, 200)
PER_DIMENSION = 400  # m = 400 d keeps sqrt(d/m) fixed, so only the logarithm of eq. 10 is left
SETTINGS = Settings(dimension=50, heterogeneity=8.0, step_size=0.05, steps=300, every=300)
SUMMARY = "r1=r2=1, s=1, M=8, eta=0.05, alpha=1e-3, T=300, symmetric measurements, exact law (ours)"
# A share above 0.99 takes 368 runs to confirm; there are this many for each seed of the curves.
RUNS_PER_SEED = 12
OFTEN_SIZES, OFTEN_SPREADS = (12_000, 2_000_000), (8.0, 16.0)
OFTEN = replace(SETTINGS, dimension=30, batch_size=OFTEN_SIZES, heterogeneity=OFTEN_SPREADS)
# Eq. 9 at other ranks; dimension, batch size and M vary in the other runs.
RANKS = ((3, 1), (1, 3))
NEAR, PROMISED = 0.05, 0.99
# One constant serves all settings, and eq. 9 follows the error, if the C that they need differ by at most this factor.
ONE_CONSTANT = 10.0
# At M=8 and the large batch about 0.993 of the runs end near A*: too close to 0.99 for this many of them.
EXPECTED = {
    (12_000, 8.0): Position.OUTSIDE,
    (2_000_000, 8.0): Position.UNDECIDED,
    (2_000_000, 16.0): Position.INSIDE,
}


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Final errors against m at d=50, against d at m=400 d, and many runs at d=30 for shares and for eq. 9."""
    # Each dimension is a program to compile, and the large ones take as long to run as all others.
    dimensions = DIMENSIONS[:2] if effort.quick else DIMENSIONS
    shares = [len(BATCH_SIZES) * SETTINGS.dimension**2, 4 * RUNS_PER_SEED * 30**2, len(RANKS) * 30**2]
    *reports, last = stages(progress, [*shares, sum(d**2 for d in dimensions)])
    settings = replace(SETTINGS, batch_size=BATCH_SIZES, seeds=effort.seeds)
    against_m = run_simulation(settings, progress=reports[0]).final
    often = run_simulation(replace(OFTEN, seeds=RUNS_PER_SEED * effort.seeds), progress=reports[1]).final
    other = replace(SETTINGS, dimension=30, batch_size=OFTEN_SIZES[0])
    by_rank = {f"{r1}, {r2}": replace(other, invariant_rank=r1, spurious_rank=r2) for r1, r2 in RANKS}
    by_dimension = {d: replace(SETTINGS, dimension=d, batch_size=PER_DIMENSION * d) for d in dimensions}
    at_ranks = simulate_each(by_rank, "ranks", effort.seeds, reports[2], signals=["distance"])
    against_d = simulate_each(by_dimension, "dimension", effort.seeds, last, signals=["distance"])
    data = xr.Dataset(
        {
            "error_against_batch_size": against_m["distance"],
            "distinguished_against_batch_size": _distinguished(against_m),
            "error_against_dimension": against_d["distance"],
            "error_at_ranks": at_ranks["distance"],
            "error_of_many": often["distance"].rename(seed="run", batch_size="size"),
            "spurious_of_many": often["spurious"].rename(seed="run", batch_size="size"),
            "distinguished_of_many": _distinguished(often).rename(seed="run", batch_size="size"),
        }
    )
    return data.drop_vars("step")


def _distinguished(final: xr.Dataset) -> xr.DataArray:
    """max(||U*^T P U* - I||, ||V*^T P V*||) of eq. 11; with ranks of one these are numbers."""
    return xr.apply_ufunc(np.maximum, abs(final["invariant"] - 1), final["spurious"])


def draw(data: xr.Dataset) -> Figure:
    """Both errors on logarithmic axes, and the shares of runs that fail where a probability is promised."""
    title = f"Theorem 2: medians over {data.sizes['seed']} seeds, bands 10 % to 90 %; shares with 95 % intervals"
    figure, (left, right, last) = new_figure(3, title)
    _draw_failures(last, data)
    band(left, data["error_against_batch_size"], "batch_size", "||P - A*||", marker="o", markersize=3)
    sizes = np.array(BATCH_SIZES)
    anchor = float(data["error_against_batch_size"].median("seed")[3]) * np.sqrt(sizes[3])
    left.plot(sizes, anchor / np.sqrt(sizes), color="0.4", linestyle=":", label="slope -1/2")
    left.set(xscale="log", yscale="log", xlabel="batch size m", ylabel="final error (Frobenius)", title="d = 50")
    band(right, data["error_against_dimension"], "dimension", "||P - A*||", marker="o", markersize=3)
    right.set(xscale="log", xlabel="dimension d", ylabel="final error (Frobenius)", title="m = 400 d")
    right.set_xticks(dimensions := data["dimension"].values, [str(d) for d in dimensions])
    right.minorticks_off()
    right.set_ylim(bottom=0)
    legend_below(last, 1)
    return finished(figure)


def _bound_of_eq_10(batch_size: ArrayLike) -> np.ndarray:
    """log(d) sqrt(d / m): the right side of eq. 10 with a constant of one, for the many runs."""
    return np.log(OFTEN.dimension) * np.sqrt(np.divide(OFTEN.dimension, batch_size))


def _draw_failures(axes: Axes, data: xr.Dataset) -> None:
    """The shares of runs that end away from A*, and of those with a larger error than eq. 10 allows."""
    rows = [(size, OFTEN_SPREADS[0]) for size in OFTEN_SIZES] + [(OFTEN_SIZES[-1], OFTEN_SPREADS[-1])]
    for name, label, colour, shift in (
        ("distinguished_of_many", f"eq. 11: {NEAR} or more from A*", COLOURS["invariant"], -0.1),
        ("error_of_many", "eq. 10: error above log(d) sqrt(d/m)", COLOURS["spurious"], 0.1),
    ):
        failed = [data[name].sel(size=m, heterogeneity=spread) for m, spread in rows]
        limits = [NEAR if name == "distinguished_of_many" else _bound_of_eq_10(m) for m, _ in rows]
        shares = [exact_share(each >= mark) for each, mark in zip(failed, limits, strict=True)]
        estimate_bars(axes, np.arange(len(rows)) + shift, shares, fmt="o", color=colour, capsize=3, label=label)
    axes.axhline(1 - PROMISED, color="0.3", linestyle=":", label="Theorem 2 promises less than 0.01")
    axes.set_xticks(range(len(rows)), [f"M = {spread:g}\nm = {m:,}" for m, spread in rows])
    axes.set(xlabel="heterogeneity and batch size", ylabel="share of runs that fail", title="d = 30")
    axes.set(xlim=(-0.5, len(rows) - 0.5), ylim=(0, None))


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Every final error."""
    frames = [data[name].to_dataframe(name="error").reset_index() for name in data]
    return pd.concat(frames, keys=list(data), names=["panel", None]).reset_index("panel")


def _slope(errors: np.ndarray, sizes: np.ndarray) -> Estimate:
    """Slope of the median error (seeds, sizes) against the size, on log-log axes."""
    return bootstrap(errors, lambda rows: np.polyfit(np.log(sizes), np.log(np.median(rows, 0)), 1)[0])


def _right_side_of_eq_9(dimension: float, batch_size: float, r1: int, r2: int, heterogeneity: float) -> float:
    """The right side of eq. 9 with C = c_v = 1 and delta = sqrt(d / m)."""
    largest, scale = delta_star(dimension, batch_size, r1, r2, heterogeneity)
    return float(max(scale**2 * np.sqrt(r1) * largest**2, scale * largest) * np.log(dimension) ** 2)


def constants_of_eq_9(data: xr.Dataset) -> dict[str, Estimate]:
    """The C that eq. 9 needs for the median run, at settings that differ in d, m, r1, r2 and M."""
    return {
        "d={}, m={}, r1={}, r2={}, M={:g}".format(*key): median(values / _right_side_of_eq_9(*key))
        for key, values in _runs_of_eq_9(data).items()
    }


def _all_of_eq_9(data: xr.Dataset, chosen: tuple[str, ...]) -> Conditions:
    """What any of the settings of eq. 9 misses, said once for each dimension, rank and M."""
    missed: dict[str, None] = {}
    for d, m, r1, r2, spread in _runs_of_eq_9(data):
        settings = replace(
            SETTINGS, dimension=int(d), batch_size=int(m), invariant_rank=r1, spurious_rank=r2, heterogeneity=spread
        )
        missed |= dict.fromkeys(theorem_conditions(settings).missed)
    return Conditions(tuple(missed), chosen)


def _runs_of_eq_9(data: xr.Dataset) -> dict[tuple, xr.DataArray]:
    runs: dict[tuple, xr.DataArray] = {}
    for d in data["dimension"].values:
        runs[d, PER_DIMENSION * d, 1, 1, 8.0] = data["error_against_dimension"].sel(dimension=d)
    for m in BATCH_SIZES:
        runs[50, m, 1, 1, 8.0] = data["error_against_batch_size"].sel(batch_size=m)
    for m in OFTEN_SIZES:
        runs[30, m, 1, 1, 16.0] = data["error_of_many"].sel(size=m, heterogeneity=16.0)
    for r1, r2 in RANKS:
        runs[30, OFTEN_SIZES[0], r1, r2, 8.0] = data["error_at_ranks"].sel(ranks=f"{r1}, {r2}")
    return runs


def _rate_of_failures(data: xr.Dataset) -> Estimate:
    """The slope of log(share of errors above log(d) sqrt(d/m)) against log m, between two batch sizes."""
    sizes = np.array(OFTEN_SIZES)
    errors = data["error_of_many"].sel(heterogeneity=OFTEN_SPREADS[0]).transpose("run", "size").values
    failed = errors > _bound_of_eq_10(sizes)

    def slope(rows: np.ndarray) -> float:
        # Half a failure more than there are, so that none has a logarithm.
        shares = np.log((rows.sum(0) + 0.5) / len(rows))
        return float((shares[1] - shares[0]) / np.log(sizes[1] / sizes[0]))

    return bootstrap(failed, slope)


def claims(data: xr.Dataset) -> list[Claim]:
    """The rates of eq. 10, the constant of eq. 9, and the probability of Theorem 2."""
    sizes, dimensions = np.array(BATCH_SIZES), data["dimension"].values
    against_m = _slope(data["error_against_batch_size"].transpose("seed", "batch_size").values, sizes)
    against_d = _slope(data["error_against_dimension"].transpose("seed", "dimension").values, dimensions)
    apart = _slope(data["distinguished_against_batch_size"].transpose("seed", "batch_size").values, sizes)
    logarithm = float(np.polyfit(np.log(dimensions), np.log(np.log(dimensions)), 1)[0])
    largest = data["error_against_batch_size"].sel(batch_size=BATCH_SIZES[-1]).values
    constants = constants_of_eq_9(data)
    needed, least = (of(constants, key=lambda name: constants[name].value) for of in (max, min))
    chosen = ("T = 300", "constants of eqs. 9 and 10")
    missed = theorem_conditions(SETTINGS, chosen=chosen)
    claim = ClaimBuilder("", "Theorem 2; eq. 10", SUMMARY, missed)
    found = [
        claim("theorem-2-batch-size", "The error falls like m^(-1/2) at fixed d.", against_m, (-0.55, -0.45),
              "slope of the median error on log-log axes", settings=f"d=50, {SUMMARY}"),
        claim("theorem-2-dimension", "At fixed m/d the error grows with d at most like log d.", against_d,
              below(logarithm), f"slope on log-log axes; log d would be {logarithm:.2f} over this range",
              settings=f"m=400 d, {SUMMARY}"),
        claim("theorem-2-recovers", "With a large batch HeteroSGD ends at A*.", median(largest), below(NEAR),
              "median ||P - A*||; ||A*|| is 1", source="Theorem 1; Theorem 2",
              settings=f"d=50, m=2,000,000, {SUMMARY}"),
        claim("eq-11-distinguishes", "||U*^T P U* - I|| and ||V*^T P V*|| vanish like m^(-1/2) as the batch grows.",
              apart, (-0.6, -0.4), "slope of the median of the larger one on log-log axes; a fluctuation of R has the "
              "rate -1/2", source="eq. 11", settings=f"d=50, {SUMMARY}"),
        claim("eq-9-constant", "Eq. 9 follows the error, more than an upper bound promises: the C that the median "
              f"error needs differs at most {ONE_CONSTANT:g}-fold between settings.",
              spread_of_constants(constants.values()), below(ONE_CONSTANT), f"C is {constants[needed].value:.1g} at "
              f"{needed} and {constants[least].value:.1g} at {least}: the bound holds with any C above the first, but "
              "does not follow the error", source="eq. 9", settings=f"d=30 to {dimensions.max()}, m=2,000 to "
              "2,000,000, (r1, r2) = (1, 1), (3, 1), (1, 3), M=8, 16, delta=sqrt(d/m), c_v=1",
              conditions=_all_of_eq_9(data, chosen), expected=Position.OUTSIDE),
    ]  # fmt: skip
    for size in OFTEN_SIZES:
        errors = data["error_of_many"].sel(size=size, heterogeneity=OFTEN_SPREADS[0])
        ratio = float(_bound_of_eq_10(size))
        probability = 1 - (OFTEN.dimension * np.log(OFTEN.dimension) / size) ** 0.4
        found.append(claim(f"eq-10-probability-{size // 1000}k", f"The error is at most log(d) sqrt(d/m) = {ratio:.2g} "
                           f"with probability 1 - (d log(d) / m)^(2/5) = {probability:.3f} (m = {size:,}).",
                           exact_share(errors <= ratio), (float(probability), 1.0),
                           f"share of {errors.size} runs, with both constants one; median error "
                           f"{float(errors.median()):.2g}", source="eq. 10", settings=f"d=30, m={size:,}, {SUMMARY}",
                           conditions=theorem_conditions(replace(OFTEN, heterogeneity=8.0), chosen=chosen),
                           expected=Position.INSIDE if size == OFTEN_SIZES[0] else Position.OUTSIDE))  # fmt: skip
    found.append(claim("eq-10-failures", "The share of runs with a larger error than log(d) sqrt(d/m) falls at least "
                       "as fast as m^(-2/5).", _rate_of_failures(data), below(-0.4),
                       "slope of its logarithm against log m: the spurious signal comes back in bursts that do not "
                       "depend on m", source="eq. 10", settings=f"d=30, m=12,000 and 2,000,000, {SUMMARY}",
                       conditions=theorem_conditions(replace(OFTEN, heterogeneity=8.0), chosen=chosen),
                       expected=Position.OUTSIDE))  # fmt: skip
    for (size, spread), expected in EXPECTED.items():
        runs = data["distinguished_of_many"].sel(size=size, heterogeneity=spread)
        settings = replace(OFTEN, batch_size=size, heterogeneity=spread)
        found.append(claim(f"theorem-2-probability-{spread:g}-{size // 1000}k",
                           f"HeteroSGD ends near A* with probability over 0.99 (M = {spread:g}, m = {size:,}).",
                           exact_share(runs < NEAR), (PROMISED, 1.0),
                           f"share of {runs.size} runs with max(||U*^T P U* - I||, ||V*^T P V*||) below {NEAR}; the "
                           "spurious signal alone stays below it in "
                           f"{float((data['spurious_of_many'].sel(size=size, heterogeneity=spread) < NEAR).mean()):.1%}"
                           + ("; about 5,000 runs would tell it from 0.99" if expected is Position.UNDECIDED else ""),
                           source="Theorem 2; eq. 11", settings=summary(settings, "ours"), expected=expected,
                           conditions=theorem_conditions(settings, chosen=(*chosen, "near: 0.05"))))  # fmt: skip
    return found


EXPERIMENT = study("theorem_2", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=96, quick_seeds=8)
