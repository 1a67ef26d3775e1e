"""Question 6: HeteroSGD against explicit methods (IRM, V-REx, Group DRO, AND-mask, Fish) on matrix sensing itself."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jax.typing import ArrayLike
from scipy.optimize import brentq

from holdfast.algorithms.factored import Factors
from holdfast.algorithms.invariance.and_mask import AgreementMask
from holdfast.algorithms.invariance.average_risk import AverageRisk
from holdfast.algorithms.invariance.base import MatrixGradient, factored_risks
from holdfast.algorithms.invariance.fish import Fish
from holdfast.algorithms.invariance.group_dro import GroupDRO
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.invariance.vrex import RiskExtrapolation
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.run import Algorithm, Run, run
from holdfast.core.statistics import median
from holdfast.sensing.batching import Batch
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import two_point
from holdfast.sensing.oracles.law import law, population
from holdfast.sensing.problem import matrix_sensing
from holdfast.sensing.signals import signals
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.kit.drawing import Figure, draw_map, finished, new_figure, quantile_bars, quantiles
from holdfast_studies.kit.runs import Effort, Progress, over_seeds, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, above, below, over, study

LEFT_OPEN = (
    "All settings: d=100, r1=r2=1, two environments of strengths s - M and s + M, s=1, M=8, a batch of m=8000 of each "
    "environment in every step (symmetric measurements, exact law), alpha=1e-3, T=120; the map has infinite "
    "batches and d=10.",
    "All methods descend by plain gradients. HeteroSGD draws the environment of a step independently and uses its "
    "batch only; V-REx and Group DRO are given the risks without error.",
    "The rule for step size and penalty, the same for all: the pair on a grid with the smallest median distance to A*, "
    "for s=1, M=8, d=10, infinite batches and other seeds; the smallest step size of those within 0.01 of the best. No "
    "method could choose so well from data.",
    "IRM takes its penalty on a second batch of each environment, so that it is unbiased.",
)
FIRST_SEED, TUNING_SEED = 1000, 0
DIMENSION, BATCH_SIZE, INIT_SCALE, STEPS, EVERY = 100, 8000, 1e-3, 120, 5
BIAS, HETEROGENEITY = 1.0, 8.0
SUMMARY = "d=100, r1=r2=1, m=8000 of each environment, s=1, M=8, alpha=1e-3, T=120, exact law"
POOLED, HETERO, IRM, VREX, DRO, MASK, FISH = range(7)
METHODS = ("pooled", "HeteroSGD", "IRM", "V-REx", "Group DRO", "AND-mask", "Fish")
GRADIENTS = (2, 1, 4, 2, 2, 2, 2)
"""Batches of one environment that a step uses, with two environments."""
# The grid: step sizes for all, and what each method adds to them (one number if it adds nothing).
STEP_SIZES = (0.1, 0.15, 0.2)
PENALTIES = {
    POOLED: (0.0,),
    HETERO: (0.0,),
    IRM: (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    VREX: (0.01, 1.0),  # with 0.1 it swings for ever, and rounding decides where the last step finds it
    DRO: (0.001, 0.01, 0.1),
    MASK: (0.0,),
    FISH: (0.25, 0.5, 1.0),
}
STRONG_PENALTY = 30.0
# The ends of the colour scale of the map: no cell is farther out.
WIDEST = 3.0
SMALL, TUNING_SEEDS, MAP_SEEDS = 10, 5, 3
BIASES, SPREADS = np.linspace(0.25, 2.0, 8), np.linspace(0.0, 12.0, 13)
# Distances in tuning that count as equal: the smaller step size, then the smaller penalty, is chosen.
TIE = 0.01


class _OneEnvironment:
    """HeteroSGD: each step descends on the risk of one environment, drawn at random."""

    def direction(self, risks, parameters, weights, key):
        return risks.gradient(parameters, jax.random.randint(key, (), 0, len(weights))), weights


def _build(frame: jax.Array, parameters: dict, dimension: int, sampled: bool) -> Run:
    environments = two_point(parameters["bias"], parameters["heterogeneity"])
    problem = matrix_sensing(frame, 1, environments)
    oracle = law(problem, symmetric_gaussian) if sampled else population(problem)
    strengths = jnp.asarray(environments.strengths)
    count = environments.count
    step_size, penalty = parameters["step_size"], parameters["penalty"]
    # IRM here is mean_e R_e + penalty mean_e D_e^2, that is (1 + share) times the mean of the method with this weight.
    share = penalty / count
    methods: dict[int, tuple[Any, ArrayLike]] = {
        POOLED: (AverageRisk(), step_size),
        HETERO: (_OneEnvironment(), step_size),
        IRM: (InvariantRiskMinimization(weight=share / (1 + share)), step_size * (1 + share)),
        VREX: (RiskExtrapolation(penalty), step_size),
        DRO: (GroupDRO(penalty), step_size),
        MASK: (AgreementMask(threshold=1 - 0.5 / count), step_size),  # all agree, up to rounding
        FISH: (Fish(step_size), penalty),
    }

    def values(fitted: jax.Array) -> jax.Array:
        residual = fitted - problem.invariant_matrix
        return jax.vmap(lambda each: jnp.sum(jnp.square(residual - problem.spurious_matrix(each))) / 2)(strengths)

    def on_batch(key: jax.Array) -> MatrixGradient:
        """The gradient on one batch of each environment."""
        keys = jax.random.split(key, count)
        size = jnp.full(1, float(BATCH_SIZE))
        return lambda fitted, environment: oracle(keys[environment], fitted, Batch(strengths[environment][None], size))

    def step(key: jax.Array, state: tuple[jax.Array, jax.Array], number) -> tuple[jax.Array, jax.Array]:
        first, second, draw = jax.random.split(key, 3)

        def move(method: int) -> tuple[jax.Array, jax.Array]:
            batches = (second, first) if method == FISH else (first, second)
            risks = factored_risks(values, *map(on_batch, batches))
            chosen, rate = methods[method]
            factor, weights = state
            direction, weights = chosen.direction(risks, factor, weights, draw)
            return factor - rate * direction, weights

        # The method is a number, so that one compiled program serves all of them.
        return jax.lax.switch(parameters["method"], [partial(move, method) for method in range(len(METHODS))])

    start = INIT_SCALE * jnp.eye(dimension), jnp.full(count, 1 / count)
    algorithm = Algorithm(lambda: start, step, lambda state: state[0])
    recorded = ("invariant", "spurious", "distance")

    def observe(factor: jax.Array) -> dict[str, jax.Array]:
        found = signals(problem, Factors.symmetric(factor))
        return {name: found[name] for name in recorded}

    return Run(algorithm, observe)


_SAMPLED = partial(_build, dimension=DIMENSION, sampled=True)
_EXACT = partial(_build, dimension=SMALL, sampled=False)


def _run(build, dimension: int, cells: list[dict], seeds: int, first: int, slab: int, progress: Progress | None):
    """Name -> (cells, seeds) at the end, and the mean share of the second half; infinite for a run that diverged."""
    frame = orthonormal_frame(dimension, 2).astype(np.float32)
    default = {"bias": BIAS, "heterogeneity": HETEROGENEITY}
    given = {name: [(default | cell)[name] for cell in cells] for name in ("step_size", "penalty", "method", *default)}
    parameters, numbers = over_seeds(given, seeds, first, np.float32)
    parameters["method"] = parameters["method"].astype(np.int32)  # the branch of a switch
    records = run(build, frame, parameters, numbers, steps=STEPS, every=EVERY, slab=slab, progress=progress)
    lost = records.diverged_at >= 0
    ends = {name: values[:, -1] for name, values in records.values.items()}
    ends["mean_spurious"] = records.values["spurious"][:, len(records.steps) // 2 :].mean(1)
    return {name: np.where(lost, np.inf, values).reshape(len(cells), seeds) for name, values in ends.items()}


def tune(seeds: int = TUNING_SEEDS, progress: Progress | None = None) -> dict[int, dict[str, float]]:
    """The step size and penalty of each method by the rule of the experiment.

    Example, HeteroSGD needs a step size at which the exponent is negative:
        >>> STEP_SIZES.index(tune(seeds=2)[HETERO]["step_size"]) >= 0
        True
    """
    grid = [
        {"method": method, "step_size": step_size, "penalty": penalty}
        for method, penalties in PENALTIES.items()
        for step_size in STEP_SIZES
        for penalty in penalties
    ]
    distances = np.median(_run(_EXACT, SMALL, grid, seeds, TUNING_SEED, 128, progress)["distance"], 1)
    chosen = {}
    for method in PENALTIES:
        rows = [row for row, cell in enumerate(grid) if cell["method"] == method]
        best = min(distances[row] for row in rows)
        chosen[method] = grid[next(row for row in rows if distances[row] <= best + TIE)]
    return chosen


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Tune, then all methods on sampled batches, and the map on infinite ones."""
    biases, spreads = (BIASES[::3], SPREADS[::3]) if effort.quick else (BIASES, SPREADS)
    reports = stages(progress, [10, 100, 50])
    chosen = tune(progress=reports[0])
    strong = chosen[IRM] | {"penalty": STRONG_PENALTY}
    cells = [*chosen.values(), strong]
    # Without vectorisation a branch that is not taken costs nothing.
    runs = _run(_SAMPLED, DIMENSION, cells, effort.seeds, FIRST_SEED, 1, reports[1])
    places = [{"bias": bias, "heterogeneity": spread} for bias in biases for spread in spreads]
    plane = [chosen[method] | place for method in chosen for place in places]
    mapped = _run(_EXACT, SMALL, plane, MAP_SEEDS, FIRST_SEED, 128, reports[2])
    shape = (len(METHODS), len(biases), len(spreads), MAP_SEEDS)
    labels = [*METHODS, f"IRM, λ={STRONG_PENALTY:g}"]
    return xr.Dataset(
        {
            **{name: (("algorithm", "seed"), values) for name, values in runs.items()},
            "map": (("base", "bias", "heterogeneity"), np.median(mapped["distance"].reshape(shape), -1)),
            "map_share": (("base", "bias", "heterogeneity"), np.median(mapped["spurious"].reshape(shape), -1)),
            "step_size": (("base",), [chosen[method]["step_size"] for method in range(len(METHODS))]),
            "penalty": (("base",), [chosen[method]["penalty"] for method in range(len(METHODS))]),
            "gradients": (("base",), list(GRADIENTS)),
        },
        {
            "algorithm": labels,
            "base": list(METHODS),
            "seed": np.arange(effort.seeds) + FIRST_SEED,
            "bias": biases,
            "heterogeneity": spreads,
        },
    )


def penalised_share(penalty: float, bias: float, heterogeneity: float) -> float:
    """The spurious share at which IRM rests once the invariant signal is learned.

        (q - s) + 2 lambda (q (q - s) (2 q - s) + q M^2) = 0

    Small q solve the linear part of it, q - s + 2 lambda q (s^2 + M^2) = 0, see `small_share`.

    Example, without a penalty the mean s:
        >>> penalised_share(0.0, 1.0, 8.0)
        1.0
    """

    def slope(q: float) -> float:
        return q - bias + 2 * penalty * (q * (q - bias) * (2 * q - bias) + q * heterogeneity**2)

    return float(brentq(slope, 0.0, bias))


def small_share(penalty: float, bias: float, heterogeneity: float) -> float:
    """Where a strong penalty rests: s / (1 + 2 lambda (s^2 + M^2)).

    Example:
        >>> round(small_share(1.0, 1.0, 8.0), 4), round(penalised_share(1.0, 1.0, 8.0), 4)
        (0.0076, 0.0076)
    """
    return bias / (1 + 2 * penalty * (bias**2 + heterogeneity**2))


def barrier(penalty: float) -> float:
    """The invariant share at which IRM stops on its way from a small start: 2 lambda p (1 - 2 p) = 1; 1 for lambda < 4.

    Example:
        >>> barrier(3.0), round(barrier(30.0), 4)
        (1.0, 0.0173)
    """
    return 1.0 if penalty < 4 else float((1 - np.sqrt(1 - 4 / penalty)) / 4)


def draw(data: xr.Dataset) -> Figure:
    """Distances, spurious shares against the heterogeneity, and who finds A* where."""
    figure, (left, middle, right) = new_figure(3, f"Implicit against explicit methods, {data.sizes['seed']} seeds")
    rows = np.arange(data.sizes["algorithm"])[::-1]
    for signal, marker, colour in (("distance", "o", "#1b6ca8"), ("spurious", "X", "#c8553d")):
        label = "distance to A*" if signal == "distance" else "spurious share"
        quantile_bars(left, rows, data[signal].clip(1e-5), horizontal=True, fmt=marker, color=colour, label=label)
    names = [
        f"{name} ({GRADIENTS[METHODS.index(name)]})" if name in METHODS else name for name in data["algorithm"].values
    ]
    left.set_yticks(rows, names)
    left.set(xscale="log", xlabel="10 %, median, 90 % over seeds", ylabel="method (gradients a step)",
             title="s=1, M=8")  # fmt: skip
    row = data["map_share"].sel(bias=BIAS, method="nearest")
    for name, style in zip(METHODS, ("-", "-", "--", (0, (1, 4)), "-.", ":", "--"), strict=True):
        label = f"{name} (swings)" if name == "Group DRO" else name
        middle.plot(row["heterogeneity"], row.sel(base=name), linestyle=style, label=label)
    middle.set(xlabel="heterogeneity M", ylabel="spurious share at the end",
               title=f"s={row['bias'].item():g}, infinite batches, as tuned at M=8", ylim=(-0.05, 1.55))  # fmt: skip
    label = "log10 of distance to A*: HeteroSGD / IRM"
    draw_map(
        right, data["bias"], data["heterogeneity"], advantage(data).T, label, cmap="RdBu_r", vmin=-WIDEST, vmax=WIDEST
    )
    right.set(xlabel="bias s", ylabel="heterogeneity M", title="Blue: HeteroSGD nearer, red: IRM (infinite batches)")
    step_size = data["step_size"].sel(base="HeteroSGD").item()
    fine = np.linspace(data["bias"].min().item(), data["bias"].max().item(), 50)
    right.plot(fine, [two_point_threshold(step_size, bias) for bias in fine], "k-", label="exponent zero")
    right.set_ylim(0, data["heterogeneity"].max())
    return finished(figure, 2)


def advantage(data: xr.Dataset) -> xr.DataArray:
    """log10 of the distance of HeteroSGD to A* over that of IRM, over (bias, heterogeneity)."""
    ratio = data["map"].sel(base="HeteroSGD", drop=True) / data["map"].sel(base="IRM", drop=True)
    return ratio.copy(data=np.log10(ratio.values))


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Quantiles of each method, with its step size, penalty and cost."""
    runs = quantiles("invariant", "spurious", "distance")(data)
    settings = (
        data[["step_size", "penalty", "gradients"]].to_dataframe().reset_index().rename(columns={"base": "algorithm"})
    )
    return runs.merge(settings, on="algorithm", how="left").dropna(axis=0, subset=["distance"])


def claims(data: xr.Dataset) -> list[Claim]:
    """Each range follows from where the method rests, see docs/questions.md; written down before the first run."""
    build = ClaimBuilder("explicit", "question 6", SUMMARY)

    def claim(name, statement, method, signal, allowed, why, scale: float = 1.0, **more) -> Claim:
        return build(name, statement, over(median(data[signal].sel(algorithm=method)), scale), allowed, why, **more)

    rest = penalised_share(data["penalty"].sel(base="IRM").item(), BIAS, HETEROGENEITY)
    strong = data["algorithm"].values[-1]
    swing = data["spurious"].sel(algorithm="Group DRO").quantile([0.1, 0.9]).values
    return [
        claim("hetero", "HeteroSGD washes out the spurious signal.", "HeteroSGD", "spurious", below(0.05),
              "its exponent is negative"),
        claim("fish", "Fish, whose pass is a cycle of HeteroSGD, does so as well.", "Fish", "spurious", below(0.05),
              "the product of 1 + eta s(e) over a pass is below one"),
        claim("vrex", "V-REx learns the mean spurious signal.", "V-REx", "spurious", (0.9, 1.1),
              "risks of strengths s - M and s + M are equal at q = s, and not at A*"),
        claim("dro", "Group DRO learns the mean spurious signal, on average over steps.", "Group DRO",
              "mean_spurious", (0.8, 1.2),
              "mean of the last 60 steps: the largest of both risks is smallest at q = s; the weights swing, and the "
              f"share at the end lies between {swing[0]:.1g} and {swing[1]:.2g} in four of five runs"),
        claim("irm", "IRM keeps the spurious share at which its penalised risk is smallest.", "IRM", "spurious",
              (0.8, 1.25), f"measured over the predicted {rest:.3g}", rest),
        claim("irm-barrier", "With a penalty above 4 IRM does not get past a barrier on its way to A*.", strong,
              "invariant", (0.8, 1.25), f"measured over the predicted {barrier(STRONG_PENALTY):.3g}",
              barrier(STRONG_PENALTY)),
        claim("mask", "AND-mask does not find A* in coordinates of no meaning.", "AND-mask", "distance",
              above(0.5), "it does: once U has rank one, x y^T, its row i moves by u_i (u.x) + s(e) v_i (v.x), "
              "and v.x is small", expected=Position.OUTSIDE),
    ]  # fmt: skip


def answer(data: xr.Dataset) -> str:
    """In words."""
    mid = data.median("seed")
    share = {name: mid["spurious"].sel(algorithm=name).item() for name in METHODS}
    far = {name: mid["distance"].sel(algorithm=name).item() for name in METHODS}
    tail = data["spurious"].sel(algorithm="HeteroSGD").quantile(0.9).item()
    rest = small_share(data["penalty"].sel(base="IRM").item(), BIAS, HETEROGENEITY)
    nearer = advantage(data)
    step_size = data["step_size"].sel(base="HeteroSGD").item()
    threshold = nearer["bias"].copy(data=two_point_threshold(step_size, nearer["bias"].values))
    above = nearer.where(nearer["heterogeneity"] > threshold)
    better = [(cells < 0).sum().item() / cells.count().item() for cells in (nearer, above)]
    gain = [10 ** -cells.median().item() for cells in (above, above.isel(bias=0))]
    return (
        "HeteroSGD and Fish, which is HeteroSGD in cycles with a part of the step, find A* where the exponent is "
        f"negative (s = 1, M = 8: spurious shares {share['HeteroSGD']:.1g} and {share['Fish']:.1g}), HeteroSGD with "
        f"one gradient a step, but with a tail (90 % quantile {tail:.2g}). V-REx and Group DRO equalise risks and so "
        f"learn the mean spurious signal ({share['V-REx']:.2f}, {share['Group DRO']:.2f}). IRM works below the "
        "threshold as well, but "
        f"keeps a share of about s / (1 + 2 λ (s² + M²)) = {rest:.4f} (measured {share['IRM']:.4f}), needs λ < 4 to "
        f"leave a small start and four gradients a step; without sampling error HeteroSGD is nearer to A* in "
        f"{better[0]:.0%} of the map, and in {better[1]:.0%} of the cells above its threshold, there "
        f"{gain[0]:.0f} times in the median cell and {gain[1]:.0f} times at s = {nearer['bias'].min().item():g}. "
        f"AND-mask finds A* too (share {share['AND-mask']:.3f}), against what we expected. What is left of "
        f"the distance is sampling error: {far['HeteroSGD']:.2f} with one batch a step, {far['Fish']:.2f} with two."
    )


EXPERIMENT = study(
    "explicit_methods", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=64, quick_seeds=6
)
