"""Questions 7 and 8: how many environments, and how diverse, for panels that are drawn from a continuum."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import norm

from holdfast.algorithms.factored import Factors, factored, sampled
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.run import Records, Run, run
from holdfast.core.statistics import Estimate, bootstrap, mean_interval, median
from holdfast.sensing.batching import hetero, pooled
from holdfast.sensing.deviations import NORMAL
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import FiniteEnvironments, gaussian
from holdfast.sensing.oracles.law import law
from holdfast.sensing.problem import matrix_sensing
from holdfast.theory.diagnosis import WASHED_OUT
from holdfast_studies.kit.drawing import COLOURS, Axes, Figure, draw_map, finished, new_figure, quantile_bars
from holdfast_studies.kit.runs import Effort, Progress, at_end, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, above, below, share, study
from holdfast_studies.questions.panels import draw_panels, panel_exponent

BIAS, STEP_SIZE, INIT_SCALE = 1.0, 0.05, 1e-3
LARGE, SMALL = (100, 8000), (30, 2400)
# Panels are repeated to this many slots, so that all sizes share one program.
COUNTS, SLOTS = (1, 2, 4, 8, 16, 32, 64), 64
DIVERSITIES, STEPS = (3.0, 5.0, 7.0, 9.0, 11.0), 400
WEAK, DIVERSE = 3.0, 9.0
# Judged at d = 100.
JUDGED, JUDGED_STEPS, FEW, MANY = (2, 8, 64), 200, 2, 64
# The seed of their panels, and the first seed of the judged runs: settings were chosen on other panels and on the seeds
# of the map, which end at 2239.
CONFIRMING, FIRST_SEED = 2000, 10_000
# Each pair of environments moves one of r2 directions: strengths s +- M there, s in the others.
RANK, MOVING, RANK_SLOTS = 4, 14.0, 24
# With 64 seeds the median where every direction varies was 0.07, from 0.03 to 0.24: four times as many, fresh ones,
# tell it from 0.2.
ALL_MOVE_RUNS, ALL_MOVE_SEED = 4, 30_000
PANELS, LARGE_PANELS = 20_000, (8, 16, 32, 64)

LEFT_OPEN = (
    "All settings: normal strengths with mean 1 and standard deviation M, eta = 0.05; every run draws its own panel.",
    "Error in a new environment: that of predicting its spurious strength xi by the share q learned. On average over "
    "the law it is (q - s)^2 + M^2; the first term is what training can change.",
    "These are panels of a toy model. That large and diverse corpora help language models for the same reason is a "
    "hypothesis which this does not test.",
)


@dataclass(frozen=True)
class PanelBuilder:
    """Makes a run on a panel of its own, given as strengths of (slots, r2).

    Attributes:
        dimension: d.
        mixed: pooled batches instead of one environment in each.
    """

    dimension: int
    mixed: bool = False

    def __call__(self, frame: jax.Array, parameters: dict[str, jax.Array]) -> Run:
        """HeteroSGD or PooledSGD, and the shares of the signals."""
        strengths = jax.vmap(jnp.diag)(parameters["strengths"])
        panel = FiniteEnvironments(strengths, jnp.full(len(strengths), 1 / len(strengths), strengths.dtype))
        problem = matrix_sensing(frame, 1, panel)
        batching = (pooled if self.mixed else hetero)(panel, parameters["batch_size"])
        gradient = sampled(batching, law(problem, symmetric_gaussian))
        algorithm = factored(gradient, self.dimension, STEP_SIZE, INIT_SCALE, dtype=frame.dtype)

        def observe(factors: Factors) -> dict[str, jax.Array]:
            square = lambda basis: jnp.sum(jnp.square(factors.positive.T @ basis))  # noqa: E731
            return {
                "invariant": square(problem.invariant_basis),
                "spurious": square(problem.spurious_basis),
                "distance": jnp.linalg.norm(factors.fitted - problem.invariant_matrix),
            }

        return Run(algorithm, observe)


def _run(
    size: tuple[int, int],
    strengths: np.ndarray,
    steps: int,
    report: Progress | None = None,
    *,
    mixed: bool = False,
    first_seed: int = FIRST_SEED,
) -> Records:
    """One run for each panel of strengths (runs, slots, r2), with consecutive seeds."""
    dimension, batch_size = size
    runs, _, rank = strengths.shape
    frame = jnp.asarray(orthonormal_frame(dimension, 1 + rank, 0), jnp.float32)
    parameters = {"strengths": strengths.astype(np.float32), "batch_size": np.full(runs, batch_size, np.float32)}
    return run(
        PanelBuilder(dimension, mixed), frame, parameters, np.arange(first_seed, first_seed + runs), steps=steps,
        every=steps, slab=8, progress=report,
    )  # fmt: skip


def _panels(count: int, diversity: float, panels: int, seed: int) -> np.ndarray:
    """Panels of `count` environments, repeated to all slots, (panels, slots, 1)."""
    drawn = draw_panels(gaussian(BIAS, diversity), count, panels, seed=seed)
    return np.tile(drawn, SLOTS // count)[..., None]


def _moving(pairs: int) -> np.ndarray:
    """The panel of so many pairs of environments, each of which moves one direction, (slots, r2)."""
    strengths = np.full((2 * pairs, RANK), BIAS)
    for number in range(pairs):
        strengths[2 * number : 2 * number + 2, number] += np.array([-MOVING, MOVING])
    return np.tile(strengths, (RANK_SLOTS // (2 * pairs), 1))


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The map over number and diversity, the panels judged at d = 100, and the directions that do not vary."""
    map_done, hetero_done, pooled_done, rank_done = stages(progress, [30, 30, 35, 5])
    seeds = effort.seeds
    size = SMALL if effort.quick else LARGE
    counts, diversities = (COUNTS[::3], DIVERSITIES[::3]) if effort.quick else (COUNTS, DIVERSITIES)
    cells = [(count, diversity) for count in counts for diversity in diversities]
    grid = np.concatenate([_panels(*cell, seeds, 100 + number) for number, cell in enumerate(cells)])
    judged = np.concatenate([_panels(count, DIVERSE, seeds, CONFIRMING + count) for count in JUDGED])
    mapped = at_end(_run(SMALL, grid, STEPS, map_done, first_seed=0), len(counts), len(diversities), seeds)
    alone = at_end(_run(size, judged, JUDGED_STEPS, hetero_done), len(JUDGED), seeds)
    together = at_end(_run(size, judged, JUDGED_STEPS, pooled_done, mixed=True), len(JUDGED), seeds)
    pairs = np.arange(1, RANK + 1)
    moved = _run(SMALL, np.repeat([_moving(int(k)) for k in pairs], seeds, 0), STEPS, rank_done)
    many = seeds if effort.quick else ALL_MOVE_RUNS * seeds
    all_move = _run(SMALL, np.repeat([_moving(RANK)], many, 0), STEPS, first_seed=ALL_MOVE_SEED)
    methods = {name: np.stack([alone[name], together[name]]) for name in ("invariant", "spurious", "distance")}
    over = ("count", "diversity", "seed")
    return xr.Dataset(
        {
            **{f"map_{name}": (over, mapped[name]) for name in ("spurious", "diverged")},
            **{name: (("batching", "judged", "seed"), values) for name, values in methods.items()},
            "diverged": (("judged", "seed"), alone["diverged"]),
            "exponent": (("judged", "seed"), _exponents(judged).reshape(len(JUDGED), seeds)),
            "left": (("pairs", "seed"), at_end(moved, RANK, seeds)["spurious"]),
            "all_move": ("run", all_move.values["spurious"][:, -1]),
            "negative": (("large_panels", "diversity"), np.array([[_negative(count, m) for m in diversities]
                                                                  for count in LARGE_PANELS])),
        },
        {
            "count": list(counts), "diversity": list(diversities), "batching": ["hetero", "pooled"],
            "judged": list(JUDGED), "pairs": pairs, "large_panels": list(LARGE_PANELS),
        },
        {"seeds": seeds, "dimension": size[0], "batch_size": size[1]},
    )  # fmt: skip


def _exponents(strengths: np.ndarray) -> np.ndarray:
    """The exponent of each panel (runs, slots, 1)."""
    return np.log(np.abs(1 + STEP_SIZE * strengths[..., 0])).mean(1)


def _negative(count: int, diversity: float) -> float:
    """The share of random panels whose exponent is negative."""
    panels = draw_panels(gaussian(BIAS, diversity), count, PANELS, seed=count)
    return float((_exponents(panels[..., None]) < 0).mean())


def _law(diversity: float):
    return panel_exponent(gaussian(BIAS, diversity), STEP_SIZE)


def draw(data: xr.Dataset) -> Figure:
    """The share of panels that wash out, errors against the number of environments, and directions that do not vary."""
    title = f"Questions 7 and 8: how many environments, how diverse; {data.attrs['seeds']} panels each"
    figure, (left, middle, right) = new_figure(3, title)
    _draw_map(left, data)
    _draw_errors(middle, data)
    _draw_directions(right, data)
    return finished(figure)


def _draw_map(axes: Axes, data: xr.Dataset) -> None:
    washed = ((data["map_spurious"] < WASHED_OUT) & ~data["map_diverged"]).mean("seed")
    counts, diversities = data["count"].values, data["diversity"].values
    seen = washed.transpose("diversity", "count")
    draw_map(axes, np.log2(counts), diversities, seen, "", vmin=0, vmax=1, cmap="viridis")
    fine, strengths = np.geomspace(1, 64, 40), np.linspace(diversities[0], diversities[-1], 25)
    surface = [_law(float(m)).washed_out(fine, STEPS, INIT_SCALE, WASHED_OUT) for m in strengths]
    levels = (0.3, 0.5, 0.7, 0.9)
    lines = axes.contour(np.log2(fine), strengths, np.array(surface), levels, colors="w", linewidths=1.2)
    axes.clabel(lines, fontsize=8)
    axes.plot([], [], color="0.6", label="theory (white: 0.3, 0.5, 0.7, 0.9)")
    axes.set_xticks(np.log2(counts), [f"{count:g}" for count in counts])
    axes.set(xlabel="number of environments E", ylabel="diversity M (standard deviation)",
             title=f"share of panels washed out, T={STEPS}")  # fmt: skip


def _draw_errors(axes: Axes, data: xr.Dataset) -> None:
    position = np.arange(len(JUDGED))
    for name, colour, shift in (("hetero", COLOURS["invariant"], -0.06), ("pooled", COLOURS["spurious"], 0.06)):
        quantile_bars(axes, position + shift, data["distance"].sel(batching=name), fmt="o-", color=colour, capsize=3,
                      label=f"{name}: median, 10 % to 90 %")  # fmt: skip
    axes.axhline(BIAS, color="0.4", linestyle=":", label="all environments pooled: s")
    axes.set_xticks(position, [str(count) for count in JUDGED])
    axes.set(xlabel="number of environments E", ylabel="distance to A*, Frobenius norm", yscale="log",
             title=f"M={DIVERSE:g}, d={data.attrs['dimension']}, T={JUDGED_STEPS}")  # fmt: skip


def _draw_directions(axes: Axes, data: xr.Dataset) -> None:
    environments = 2 * data["pairs"].values
    quantile_bars(axes, environments, data["left"], fmt="o", capsize=3, color=COLOURS["spurious"],
                  label="simulation: median, 10 % to 90 %")  # fmt: skip
    axes.plot(environments, BIAS * (RANK - environments / 2), color="0.4", label="directions that do not vary, times s")
    axes.set_xticks(environments)
    axes.set(xlabel="number of environments (two move one direction)", ylabel="spurious signal, sum over directions",
             title=f"{RANK} spurious directions, M={MOVING:g}, T={STEPS}")  # fmt: skip


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Shares of panels that wash out, with theory, one row for each cell of the map."""
    washed = ((data["map_spurious"] < WASHED_OUT) & ~data["map_diverged"]).mean("seed")
    found = washed.to_dataframe("washed_out").reset_index()
    laws = {m: _law(float(m)) for m in data["diversity"].values}
    cells = list(zip(found["count"], found["diversity"], strict=True))
    theory = [float(laws[m].washed_out(e, STEPS, INIT_SCALE, WASHED_OUT)) for e, m in cells]
    limit = [float(laws[m].negative(e)) for e, m in cells]
    return found.assign(theory=theory, theory_for_long_runs=limit)


def claims(data: xr.Dataset) -> list[Claim]:
    """The panel's own exponent decides; more environments help above the threshold of the law, and hurt below."""
    size = f"d={data.attrs['dimension']}, m={data.attrs['batch_size']}, s=1, eta={STEP_SIZE}, alpha=1e-3"
    claim = ClaimBuilder("panels", "question 7; question 8", f"{size}, M={DIVERSE:g}, E={MANY}, T={JUDGED_STEPS}")
    panels = f"{size}, M={DIVERSE:g}, E={JUDGED}, T={JUDGED_STEPS}"
    alone = data.sel(batching="hetero")
    washed = (alone["spurious"] < WASHED_OUT) & ~alone["diverged"]
    mark = (0.5 * np.log(WASHED_OUT) - np.log(INIT_SCALE)) / JUDGED_STEPS
    agreed = washed == (data["exponent"] < mark)
    chance = _law(DIVERSE).washed_out(np.array(JUDGED), JUDGED_STEPS, INIT_SCALE, WASHED_OUT)
    bonferroni = float(norm.ppf(1 - 0.025 / len(JUDGED)))  # the error of each covers its part
    apart = np.abs(washed.mean("seed").sel(judged=list(JUDGED)).values - chance)
    limit = np.stack([_law(float(m)).negative(np.array(LARGE_PANELS)) for m in data["diversity"].values], 1)
    gap = np.abs(data["negative"].values - limit)
    many = data["distance"].sel(judged=MANY).transpose("seed", "batching").values
    strong_enough = [m for m in data["diversity"].values if _law(float(m)).mean < 0]
    ends = (data["map_spurious"].sel(count=[COUNTS[0], COUNTS[-1]]) < WASHED_OUT).transpose(
        "seed", "diversity", "count"
    )
    weak = ends.sel(diversity=WEAK).values
    strong = ends.sel(diversity=strong_enough).values.reshape(-1, 2)
    small = f"d={SMALL[0]}, m={SMALL[1]}, s=1, eta={STEP_SIZE}, T={STEPS}"
    rank = f"{small}, r2={RANK}, M={MOVING:g}, two environments move one direction"
    return [
        claim("own-exponent", "Whether a panel washes out is decided by its own exponent, not by that of the law.",
              share(agreed), (0.75, 1.0), "share of panels on the side that alpha^2 e^(2 T exponent) against "
              f"{WASHED_OUT} says", settings=panels),
        claim("share", "The share of panels that wash out is that of the central limit theorem.",
              _largest(apart, washed.sizes["seed"], bonferroni), (0.0, 0.25),
              "largest gap between seen and predicted over all E, with the error of so many panels (95 % for all E "
              "together); predicted " + ", ".join(f"{p:.2f} (E={e})" for e, p in zip(JUDGED, chance, strict=True)),
              settings=panels),
        claim("central-limit", "The central limit theorem gives the probability that a panel of 8 or more environments "
              "has a negative exponent.", _largest(gap, PANELS, 4.0), (0.0, 0.1), "largest gap between the share of "
              "panels and the formula, with its sampling error", settings=f"{PANELS} random panels, E={LARGE_PANELS}, "
              f"M={tuple(DIVERSITIES)}"),
        claim("more-help", "Above the threshold of the law more environments help.", bootstrap(strong, _gain),
              (0.1, 1.0), f"share of panels washed out with {COUNTS[-1]} environments minus that with one",
              settings=f"{small}, M={', '.join(f'{m:g}' for m in strong_enough)}"),
        claim("more-hurt", "Below the threshold of the law more environments hurt: a small panel may wash out by "
              "luck.", bootstrap(weak, _gain), (-1.0, -0.1), f"share of panels washed out with {COUNTS[-1]} "
              "environments minus that with one", settings=f"{small}, M={WEAK:g}"),
        claim("pooled", "Pooled batches learn the mean strength of the panel, which many environments do not cancel.",
              mean_interval(data["spurious"].sel(batching="pooled", judged=MANY).values), (0.5, 1.5),
              "mean spurious share; the mean strength of a panel is s + M / sqrt(E) N(0, 1)"),
        claim("hetero-nearer", "With many environments HeteroSGD ends nearer to A* than pooled batches on most "
              "panels.", share(many[:, 0] < many[:, 1]), (0.5, 1.0),
              f"share of panels; mean distances {many[:, 0].mean():.2g} and {many[:, 1].mean():.2g}; where the mean "
              "strength is negative, pooled batches learn no spurious signal either"),
        claim("new-hetero", "In a new environment of the same law leaving the spurious signal out costs s^2.",
              median(_excess(data, "hetero", MANY) / BIAS**2), (0.8, 1.2), "median of (q - s)^2 over s^2, the error "
              "beyond the variance M^2 of the law"),
        claim("new-pooled", "Pooled batches of few environments cost several times as much: the mean of the panel is "
              "far from that of the law.", mean_interval(_excess(data, "pooled", FEW) / BIAS**2), above(5.0),
              f"mean of (q - s)^2 over s^2; theory {pooled_excess(FEW):.1f}, and below one from E={_break_even()} on, "
              "where within the law pooled batches predict better", settings=f"{size}, M={DIVERSE:g}, E={FEW}, "
              f"T={JUDGED_STEPS}"),
        claim("directions-left", "Directions that do not vary in the panel stay spurious.",
              median(data["left"].sel(pairs=RANK // 2) / (BIAS * (RANK - RANK // 2))), (0.8, 1.2),
              "spurious signal over (number of directions that do not vary) times s",
              settings=f"{rank}, {RANK} environments"),
        claim("directions-gone", "When every direction varies, all are washed out.", median(data["all_move"]),
              below(RANK * WASHED_OUT), f"median of the spurious signal, sum over {RANK} directions, "
              f"{data.sizes['run']} fresh seeds", settings=f"{rank}, {2 * RANK} environments"),
    ]  # fmt: skip


def _excess(data: xr.Dataset, batching: str, count: int) -> np.ndarray:
    """(q - s)^2 of each panel, what training adds to the error in a new environment of the law."""
    return np.square(data["spurious"].sel(batching=batching, judged=count).values - BIAS)


def pooled_excess(count: int) -> float:
    """Its mean for pooled batches in the long run, which learn max(mean of the panel, 0): U U^T cannot be negative."""
    spread = DIVERSE / np.sqrt(count)
    return spread**2 * NORMAL.expectation(lambda n: np.square(np.maximum(n, -BIAS / spread)))


def _break_even() -> int:
    """The least number of environments from which on pooled batches cost less than s^2."""
    return next(count for count in range(1, 10_000) if pooled_excess(count) < BIAS**2)


def _gain(pairs: np.ndarray) -> float:
    """The difference of two shares over (panels, 2)."""
    return float(pairs[:, 1].mean() - pairs[:, 0].mean())


def _largest(gaps: np.ndarray, panels: int, errors: float) -> Estimate:
    """The largest gap between shares of panels and a formula, with so many standard errors of a share of one half."""
    largest, error = float(gaps.max()), errors * 0.5 / np.sqrt(panels)
    return Estimate(largest, max(largest - error, 0.0), largest + error)


def answer(data: xr.Dataset) -> str:
    """How many environments it takes, with numbers."""
    washed = (data["spurious"].sel(batching="hetero") < WASHED_OUT).mean("seed")
    seen = ", ".join(f"{float(washed.sel(judged=count)):.0%} of panels of {count}" for count in JUDGED)
    far = float(data["distance"].sel(batching="pooled", judged=MANY).median())
    needed = {m: _law(m).needed(0.95) for m in (DIVERSE, DIVERSITIES[-1])}
    asked = ", ".join(f"{count:.0f} at M={m:g}" for m, count in needed.items())
    return (
        f"HeteroSGD washes out the spurious signal on {seen} environments (M={DIVERSE:g}); pooled batches stay at a "
        f"median distance of {far:.2g} from A* even with {MANY}. A panel's own exponent decides, so number and "
        f"diversity count together: by theory 95 % of panels wash out from about {asked} on, and below the threshold "
        "of diversity more environments make failure more certain. Directions that no environment moves stay spurious, "
        f"and within the law itself pooled batches predict better from {_break_even()} environments on: invariance "
        "pays when the law shifts."
    )


EXPERIMENT = study(
    "number_of_environments", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=64, quick_seeds=8
)
