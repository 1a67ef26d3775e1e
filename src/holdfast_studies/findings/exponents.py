"""Theory against simulation: exponents, thresholds, the finite-time law, the loss of the bound, the sampling floor."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from holdfast.algorithms.factored import factored, sampled
from holdfast.core.run import Records, Run, run
from holdfast.core.statistics import NORMAL_QUANTILE, bootstrap, median, proportion
from holdfast.sensing import environments
from holdfast.sensing.batching import hetero
from holdfast.sensing.environments import Environments
from holdfast.sensing.oracles.law import population
from holdfast.sensing.problem import matrix_sensing
from holdfast.theory.finite_time import log_share
from holdfast.theory.lyapunov import exponents, two_point_exponent, two_point_threshold
from holdfast.theory.sampling import residual_floor
from holdfast.theory.window import limits
from holdfast_studies.kit.drawing import Figure, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, run_simulation, tracked
from holdfast_studies.kit.study import Claim, ClaimBuilder, crossing, over, share, study, summary

LEFT_OPEN = (
    "The paper has no sharp threshold, no finite-time law and no sharp upper end: these are results of this project.",
    "Growth rates are measured without sampling error (population oracle): a finite batch lets the invariant signal "
    "leak into a spurious direction that shrinks, and sets a floor.",
    "The two directions lie along the axes. With random bases, which we tried first, rounding leaks the invariant "
    "signal into a direction that starts as small as these do, and only 9 of 20 growth rates agreed.",
)
SEEDS, QUICK_SEEDS = 64, 16
# One size for all parts, so that they share their programs: compiling them takes most of the time of a quick look.
SLAB = QUICK_SEEDS

# Random problems for the growth rate. The starting point is so small that no signal comes to order one within T steps.
PROBLEMS, STEPS, TINY = 20, 400, 1e-25
# 20 intervals all cover with a confidence of 95 % if each is this many standard errors wide (Bonferroni).
WIDE = 3.02

# Long runs around the threshold, from a starting point that leaves room for growth: e^(0.003 T) and e^(3 eta M sqrt T).
LONG, ROOM = 8000, 1e-80
STEP_SIZES = (0.03, 0.05, 0.1)
AROUND = np.linspace(0.94, 1.06, 5)
BIAS = 1.0

# Laws whose share after T = 200 steps is compared with the finite-time law. They stay far from order one.
LAWS: dict[str, Environments] = {
    "two-point": environments.two_point(BIAS, 8.0),
    "uniform": environments.uniform(BIAS, 11.0),
    "gaussian": environments.gaussian(BIAS, 8.0),
}
STEP_SIZE, FINITE, QUANTILES = 0.05, 200, (0.1, 0.25, 0.5, 0.75, 0.9)
LAW_RUNS = 16  # times the seeds

# Below and above the step size at which the iteration loses its bound, from a starting point of order one.
STRONG, SIDES = 6.0, (0.98, 1.04)
SAMPLED = Settings(
    dimension=30, batch_size=2000, heterogeneity=8.0, bias=BIAS, step_size=STEP_SIZE, steps=300, every=300
)


def random_problems() -> list[tuple[float, Environments]]:
    """Step sizes and laws of strengths, drawn from a fixed seed: tables of four environments, uniform, normal."""
    random = np.random.default_rng(20)
    return [(float(random.uniform(0.02, 0.12)), _random_law(random, number % 3)) for number in range(PROBLEMS)]


def _random_law(random: np.random.Generator, kind: int) -> Environments:
    bias, spread = random.uniform(-1, 2), random.uniform(1, 10)
    if kind == 0:
        return environments.table(bias + spread * random.uniform(-1, 1, 4), random.dirichlet(np.full(4, 3.0)))
    return environments.uniform(bias, spread) if kind == 1 else environments.gaussian(bias, spread / 2)


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Growth rates, thresholds, finite-time shares, divergence and the sampling floor, each a small simulation."""
    seeds = effort.seeds
    law_runs, small = LAW_RUNS * seeds, random_problems()
    work: list[Callable[[], np.ndarray]] = [
        *(partial(_growth, law, eta, STEPS, TINY, seeds) for eta, law in small),
        *(partial(_around_threshold, eta, seeds) for eta in STEP_SIZES),
        *(partial(_growth, law, STEP_SIZE, FINITE, TINY, law_runs) for law in LAWS.values()),
        partial(_around_the_bound, law_runs),
        lambda: run_simulation(replace(SAMPLED, seeds=seeds)).final["residual"].values,
    ]
    *found, diverged, residual = (each() for each in tracked(work, progress))
    rates, around = found[:PROBLEMS], found[PROBLEMS : -len(LAWS)]
    shares = [2 * FINITE * growth for growth in found[-len(LAWS) :]]
    return xr.Dataset(
        {
            "rate": (("problem", "seed"), np.stack(rates)),
            "growth": (("step_size", "relative_heterogeneity", "seed"), np.stack(around)),
            "log_share": (("law", "run"), np.stack(shares)),
            "diverged": (("relative_step_size", "run"), diverged),
            "residual": ("seed", residual),
        },
        {
            "step_size": list(STEP_SIZES),
            "relative_heterogeneity": AROUND,
            "law": list(LAWS),
            "relative_step_size": list(SIDES),
        },
    )


def _plane(law: Environments, parameters: dict[str, jax.Array]) -> Run:
    """One invariant and one spurious direction along the axes, so that rounding does not leak from one to the other."""
    problem = matrix_sensing(jnp.eye(2, dtype="float64"), 1, law)
    gradient = sampled(hetero(law, None), population(problem))
    algorithm = factored(gradient, 2, parameters["step_size"], parameters["init_scale"], dtype="float64")
    return Run(algorithm, lambda state: {"spurious": jnp.abs(state.positive[1, 1])})


def _run(law: Environments, step_size: float, steps: int, init_scale: float, seeds: int) -> Records:
    with jax.enable_x64(True):
        shared = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, "float64")), law)
        parameters = {"step_size": np.full(seeds, step_size), "init_scale": np.full(seeds, init_scale)}
        return run(_plane, shared, parameters, np.arange(seeds), steps=steps, every=steps, slab=SLAB, double=True)


def _growth(law: Environments, step_size: float, steps: int, init_scale: float, seeds: int) -> np.ndarray:
    """log(Q / alpha) / T of each seed."""
    size = _run(law, step_size, steps, init_scale, seeds).values["spurious"][:, -1]
    return np.log(size / init_scale) / steps


def _around_threshold(step_size: float, seeds: int) -> np.ndarray:
    """Growth rates of long runs for heterogeneities around the threshold."""
    strengths = AROUND * two_point_threshold(step_size, BIAS)
    return np.stack([_growth(environments.two_point(BIAS, m), step_size, LONG, ROOM, seeds) for m in strengths])


def _around_the_bound(seeds: int) -> np.ndarray:
    """Which runs diverge, for step sizes on both sides of the loss of the bound."""
    law = environments.two_point(BIAS, STRONG)
    bound = limits(law).bounded
    return np.stack([_run(law, bound * side, 100, 1.0, seeds).diverged_at >= 0 for side in SIDES])


def _rates(data: xr.Dataset) -> pd.DataFrame:
    """Each random problem: its exponent, the measured rate and its standard error."""
    predicted = [float(exponents(law, eta)[0]) for eta, law in random_problems()]
    error = data["rate"].std("seed", ddof=1) / np.sqrt(data.sizes["seed"])
    return pd.DataFrame({"exponent": predicted, "rate": data["rate"].mean("seed"), "standard_error": error})


def draw(data: xr.Dataset) -> Figure:
    """Measured rates against exponents, and growth around the threshold."""
    figure, (left, right) = new_figure(2, f"Exponents: theory and simulation, {data.sizes['seed']} seeds")
    rates = _rates(data)
    ends = [rates["exponent"].min(), rates["exponent"].max()]
    left.plot(ends, ends, color="0.4", linewidth=1, label="equal")
    error = WIDE * rates["standard_error"]
    left.errorbar(rates["exponent"], rates["rate"], error, fmt="o", markersize=4, label=f"{PROBLEMS} random problems")
    left.set(xlabel="exponent by theory", ylabel=f"growth of log Q per step, {STEPS} steps", title="Growth rates")
    for step_size in STEP_SIZES:
        growth = data["growth"].sel(step_size=step_size)
        mean, spread = growth.mean("seed"), NORMAL_QUANTILE * growth.std("seed") / np.sqrt(data.sizes["seed"])
        line, *_ = right.errorbar(AROUND, mean, spread, fmt="o", label=f"step size {step_size:g}")
        curve = two_point_exponent(step_size, BIAS, AROUND * two_point_threshold(step_size, BIAS))
        right.plot(AROUND, curve, color=line.get_color(), linewidth=1)
    right.axhline(0, color="0.4", linewidth=0.8)
    right.set(xlabel="heterogeneity / threshold", ylabel=f"growth of log Q per step, {LONG} steps", title="Threshold")
    return finished(figure)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The growth rates of the random problems."""
    return _rates(data).rename_axis("problem").reset_index()


def quantiles_within_error(data: xr.Dataset) -> tuple[int, int]:
    """How many quantiles of the finite-time law lie where the sampling error allows, and how many were tested."""
    right = total = 0
    for name, law in LAWS.items():
        runs = data["log_share"].sel(law=name).values
        predicted = log_share(law, STEP_SIZE, FINITE, 1.0).quantile(QUANTILES)
        for probability, quantile in zip(QUANTILES, predicted, strict=True):
            allowed = WIDE * np.sqrt(probability * (1 - probability) / len(runs))
            # Two strengths give a law of atoms; the grid knows their positions up to a hundredth.
            below, at_most = np.mean(runs < quantile - 0.02), np.mean(runs <= quantile + 0.02)
            right += bool(below - allowed <= probability <= at_most + allowed)
            total += 1
    return right, total


def claims(data: xr.Dataset) -> list[Claim]:
    """What the theory predicts, measured."""
    claim = ClaimBuilder("exponents")
    rates = _rates(data)
    inside = (rates["rate"] - rates["exponent"]).abs() <= WIDE * rates["standard_error"]
    thresholds = [
        claim(f"threshold-{step_size:g}", f"At step size {step_size:g} the spurious signal turns from growing to dying "
              "at the analytic threshold.",
              bootstrap(data["growth"].sel(step_size=step_size).T.values, partial(crossing, AROUND)),
              (0.97, 1.03), f"measured threshold over {float(two_point_threshold(step_size, BIAS)):.3f}",
              settings=f"population, s=1, T={LONG}, alpha={ROOM:g}")
        for step_size in STEP_SIZES
    ]  # fmt: skip
    right, total = quantiles_within_error(data)
    bounded, unbounded = (data["diverged"].sel(relative_step_size=side) for side in SIDES)
    floor = residual_floor(environments.two_point(BIAS, 8.0), STEP_SIZE, SAMPLED.dimension, 2000)
    residual = median(data["residual"])
    return [
        claim("growth", "A small spurious direction grows or shrinks at the rate of its Lyapunov exponent.",
              share(inside), (0.8, 1.0), "share of problems whose interval (95 % for all "
              f"together) holds the exponent; correlation {np.corrcoef(rates['exponent'], rates['rate'])[0, 1]:.4f}",
              settings=f"{PROBLEMS} random problems, population, T={STEPS}: tables, uniform and normal strengths"),
        *thresholds,
        claim("quantiles", "log Q^2 after T steps has the quantiles of a sum of T independent logarithms.",
              proportion(right, total), (0.75, 1.0), f"{right} of {total} quantiles lie within {WIDE} standard errors",
              settings=f"population, eta={STEP_SIZE}, T={FINITE}, {data.sizes['run']} runs of each law, quantiles "
              f"{QUANTILES}"),
        claim("bounded", "Just below the step size at which it loses its bound, the iteration never diverges.",
              share(bounded), (0.0, 0.05), f"{int(bounded.sum())} of {bounded.size} runs diverged",
              settings=f"population, s=1, M={STRONG:g}, alpha=1, {SIDES[0]} of that step size"),
        claim("unbounded", "Just above it, some runs diverge.", share(unbounded), (1e-4, 1.0),
              f"{int(unbounded.sum())} of {unbounded.size} runs diverged",
              settings=f"population, s=1, M={STRONG:g}, alpha=1, {SIDES[1]} of that step size"),
        claim("sampling-floor", "Sampling error sustains a residual of eta d E S^2 / (2 m (2 - eta)).",
              over(residual, floor), (0.8, 1.2), "median residual over the predicted "
              f"{floor:.3g}", settings=summary(SAMPLED)),
    ]  # fmt: skip


EXPERIMENT = study(
    "exponents", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=SEEDS, quick_seeds=QUICK_SEEDS
)
