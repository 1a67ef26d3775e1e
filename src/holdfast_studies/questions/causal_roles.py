"""Question 9: which roles in a linear structural model (causes, children, spouses of the target) are recovered."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import chi2

from holdfast.algorithms.hadamard import hadamard
from holdfast.algorithms.losses import squared
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.moments import MomentSums, StandardizedMoments, standardized
from holdfast.core.run import Run, run
from holdfast.core.statistics import median
from holdfast.datasets.structural import StructuralModel
from holdfast.estimators.search.evidence import SquaredEvidence
from holdfast.estimators.search.feature_sets import Groups
from holdfast.estimators.search.selection import select
from holdfast_studies.kit.drawing import Figure, draw_map, finished, new_figure, quantiles
from holdfast_studies.kit.runs import Effort, Progress, stages, tracked
from holdfast_studies.kit.study import Claim, ClaimBuilder, above, study

LEFT_OPEN = (
    "The model: y = c1 + c2 + N, child = y + spouse + N, all noise N(0, 1); 4 environments of 1,000 rows. Least "
    "squares on everything has the coefficients (1/2, 1/2, 1/2, -1/2) of (c1, c2, child, spouse).",
    "An intervention of strength delta: an effect of 1 becomes 1 + delta and 1 - delta in turn, a noise is multiplied "
    "by exp(delta) and exp(-delta), the level of y moves by delta and -delta.",
    "The method is the strict part of HeteroRegressor (the set that the exponents leave alive, least squares on it, "
    "significance 0.001); the runs of SGD on u*u - v*v have k=30, eta=0.02, 600 sweeps, without any choice from data.",
    "The graph: one more variable, a cause of c1, and 7 environments: one without interventions, and one for each "
    "variable, which there is set to N(0, 2^2), whatever its causes.",
)
FIRST_SEED = 1000
ROWS, ENVIRONMENTS = 1000, 4
STRENGTHS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)
STRENGTH, MAP_SEEDS = 0.5, 8
SIGNIFICANCE = 0.001
STEP_SIZE, AMPLIFICATION, INIT_SCALE, SWEEPS, RECORDS = 0.02, 30.0, 0.03, 600, 12
SET_TO = 2.0
"""The spread of a variable that an intervention sets."""

# Variables of the model in causal order; the graph of the last part has all of them.
NAMES = ("ancestor", "c1", "c2", "spouse", "y", "child")
ANCESTOR, C1, C2, SPOUSE, TARGET, CHILD = range(6)
EDGES = ((ANCESTOR, C1), (C1, TARGET), (C2, TARGET), (TARGET, CHILD), (SPOUSE, CHILD))
FEATURES = [C1, C2, CHILD, SPOUSE]
ROLES = ("cause", "cause", "child", "spouse")
TRUTH = np.array([1.0, 1.0, 0.0, 0.0])


@dataclass(frozen=True)
class Intervention:
    """What differs between environments.

    Attributes:
        effects: (cause, effect), whose strengths change.
        noises: variables whose noise changes.
        level: move the mean of y.
    """

    effects: tuple[tuple[int, int], ...] = ()
    noises: tuple[int, ...] = ()
    level: bool = False

    def environment(self, size: float) -> tuple[StructuralModel, np.ndarray]:
        """The model with this intervention of some size, positive or negative, and the means of its noise."""
        weights, scales = np.zeros((6, 6)), np.ones(6)
        for cause, effect in EDGES[1:]:  # without the ancestor, which is noise here
            weights[cause, effect] = 1 + (size if (cause, effect) in self.effects else 0.0)
        scales[list(self.noises)] *= np.exp(size)
        means = np.zeros(6)
        means[TARGET] = size if self.level else 0.0
        return StructuralModel(weights, scales, TARGET), means


INTERVENTIONS = {
    "causes": Intervention(noises=(C1, C2)),
    "spouse": Intervention(noises=(SPOUSE,)),
    "child's mechanism": Intervention(effects=((TARGET, CHILD),)),
    "child's noise": Intervention(noises=(CHILD,)),
    "noise of y": Intervention(noises=(TARGET,)),
    "level of y": Intervention(level=True),
    "y's mechanism": Intervention(effects=((C1, TARGET),)),
}
METHODS = ("least squares", "SGD on u*u - v*v", "strict selection")


def _scatter(model: StructuralModel, means: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(7, 7): the sum of r r^T over the rows r = (1, variables) of one environment, drawn by its law, not row by row.

    The mean of n normal rows is normal and independent of their scatter matrix, which has a Wishart law (Bartlett).
    """
    spread = np.linalg.inv(np.eye(6) - model.weights).T * model.scales
    centre = spread @ (random.standard_normal(6) / np.sqrt(ROWS) + means / model.scales)
    triangle = np.tril(random.standard_normal((6, 6)), -1)
    triangle[np.diag_indices(6)] = np.sqrt(random.chisquare(ROWS - 1 - np.arange(6)))
    # Any square root of the covariance serves, because the Wishart law of the identity is invariant under rotations.
    root, row = spread @ triangle, np.append(1.0, centre)
    sums = ROWS * np.outer(row, row)
    sums[1:, 1:] += root @ root.T
    return sums


def _table(sums: np.ndarray, features: list[int], target: int) -> StandardizedMoments:
    """Standardised moments of a regression of one variable on others."""
    rows = [0, *(number + 1 for number in features), target + 1]
    shift, unit = np.zeros(len(rows) - 1), np.ones(len(rows) - 1)
    return standardized(MomentSums(tuple(range(len(sums))), shift, unit, sums[:, rows][:, :, rows]))


def drawn_table(intervention: str, strength: float, seed: int) -> StandardizedMoments:
    """The table of one seed: y on (c1, c2, child, spouse) in four environments.

    Example:
        >>> drawn_table("spouse", 0.5, seed=0).second.shape
        (4, 4, 4)
    """
    random = np.random.default_rng(seed)
    sizes = strength * np.resize([1.0, -1.0], ENVIRONMENTS)
    chosen = INTERVENTIONS[intervention]
    sums = np.stack([_scatter(*chosen.environment(size), random) for size in sizes])
    return _table(sums, FEATURES, TARGET)


def strict_coefficients(table: StandardizedMoments) -> np.ndarray:
    """(features,): as `HeteroRegressor(pooling=0).coef_`, without the tables that describe a fit.

    Example, an intervention on the mechanism of the child leaves the causes:
        >>> strict_coefficients(drawn_table("child's mechanism", 0.5, seed=0)).round(1).tolist()
        [1.0, 1.0, 0.0, 0.0]
    """
    found = select(SquaredEvidence(table), Groups(np.arange(len(table.constant))), SIGNIFICANCE)
    return found.fitted.coefficients * table.scale[-1] / table.scale[:-1]


def _least_squares(table: StandardizedMoments) -> np.ndarray:
    pooled = np.linalg.solve(np.tensordot(table.weights, table.second, 1), table.weights @ table.cross)
    return pooled * table.scale[-1] / table.scale[:-1]


def _build(shared: None, moments: SecondMoments) -> Run:
    counts = jnp.full(ENVIRONMENTS, float(ROWS))
    level = chi2.ppf(1 - SIGNIFICANCE, ENVIRONMENTS - 1)
    algorithm = hadamard(
        lambda coefficients, intercept: squared.slopes(moments, counts, coefficients),
        jnp.full(ENVIRONMENTS, 1 / ENVIRONMENTS), len(FEATURES), STEP_SIZE, AMPLIFICATION, 0.0, level, INIT_SCALE,
    )  # fmt: skip
    return Run(algorithm, lambda state: {"coefficients": state.coefficients})


def _washed(tables: list[StandardizedMoments], progress: Progress | None) -> np.ndarray:
    """(tables, features): the medians over the last quarter of runs of SGD."""
    moments = jax.tree.map(lambda *leaves: np.stack(leaves).astype(np.float32), *[table.moments for table in tables])
    seeds = np.arange(len(tables))
    records = run(_build, None, moments, seeds, steps=SWEEPS, every=SWEEPS // RECORDS, slab=64, progress=progress)
    final = np.median(records.values["coefficients"][:, -RECORDS // 4 :], 1)
    return final * np.stack([table.scale[-1] / table.scale[:-1] for table in tables])


def _score(found: set, true: set) -> float:
    """The harmonic mean of precision and recall of the edges."""
    return 2 * len(found & true) / max(len(found) + len(true), 1)


def graph_scores(seed: int) -> tuple[float, float]:
    """How well the parents of all variables are found: with all environments, and without the target's own.

    Example:
        >>> everywhere, without_own = graph_scores(seed=0)
        >>> everywhere < without_own
        True
    """
    random = np.random.default_rng(seed)
    weights = np.zeros((6, 6))
    for cause, effect in EDGES:
        weights[cause, effect] = 1.0
    sums = []
    for changed in (None, *range(6)):
        cut, scales = weights.copy(), np.ones(6)
        if changed is not None:
            cut[:, changed], scales[changed] = 0.0, SET_TO
        sums.append(_scatter(StructuralModel(cut, scales, TARGET), np.zeros(6), random))
    environments = np.stack(sums)
    scores = []
    for leaves_out in (False, True):
        found = set()
        for target in range(6):
            features = [number for number in range(6) if number != target]
            seen = np.delete(environments, target + 1, 0) if leaves_out else environments
            alive = strict_coefficients(_table(seen, features, target)) != 0
            found |= {(features[number], target) for number in np.flatnonzero(alive)}
        scores.append(_score(found, set(EDGES)))
    return scores[0], scores[1]


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All interventions at one strength with all seeds, at others with a few, and graphs."""
    seeds = list(range(FIRST_SEED, FIRST_SEED + effort.seeds))
    names = list(INTERVENTIONS)
    report_runs, report_fits, report_graphs = stages(progress, [20, 40, 40])
    tables = [drawn_table(name, STRENGTH, seed) for name in names for seed in seeds]
    shape = (len(names), len(seeds), len(FEATURES))
    washed = _washed(tables, report_runs).reshape(shape)
    strict = [strict_coefficients(table) for table in tracked(tables, report_fits)]
    pooled = np.stack([_least_squares(table) for table in tables]).reshape(shape)
    few, strengths = seeds[:MAP_SEEDS], STRENGTHS[::5] if effort.quick else STRENGTHS
    mapped = [
        [np.median([fit(drawn_table(name, strength, seed)) for seed in few], 0) for strength in strengths]
        for fit in (strict_coefficients, _least_squares)
        for name in names
    ]
    curves = np.array(mapped).reshape(2, len(names), len(strengths), len(FEATURES))
    scores = [graph_scores(seed) for seed in tracked(seeds, report_graphs)]
    kinds = ("method", "intervention", "seed", "feature")
    curve = ("intervention", "strength", "feature")
    return xr.Dataset(
        {
            "coefficient": (kinds, np.stack([pooled, washed, np.stack(strict).reshape(shape)])),
            "strict_curve": (curve, curves[0]),
            "pooled_curve": (curve, curves[1]),
            "score": (("seed", "environments"), np.array(scores)),
        },
        {
            "method": list(METHODS),
            "intervention": names,
            "seed": seeds,
            "feature": [NAMES[number] for number in FEATURES],
            "strength": list(strengths),
            "environments": ["all", "without the target's own"],
        },
    )


def _errors(data: xr.Dataset) -> xr.DataArray:
    """The largest error of the four coefficients, of each method, intervention and seed."""
    return abs(data["coefficient"] - TRUTH).max("feature")


def draw(data: xr.Dataset) -> Figure:
    """Coefficients against the strength, the map of errors, and three methods at one strength."""
    figure, (left, middle, right) = new_figure(3, f"Roles in a structural model, {data.sizes['seed']} seeds")
    chosen = "child's mechanism"
    for index, colour in ((0, "#1b6ca8"), (2, "#c8553d"), (3, "#8a63a8")):
        for variable, style, method in (("strict_curve", "o-", "strict"), ("pooled_curve", ":", "least squares")):
            curve = data[variable].sel(intervention=chosen).isel(feature=index)
            left.plot(data["strength"], curve, style, color=colour, markersize=4, label=f"{ROLES[index]}, {method}")
    left.set(xlabel="strength of the intervention", ylabel="coefficient", title=f"Intervention on the {chosen}")
    wrong = abs(data["strict_curve"] - TRUTH).max("feature")
    rows, columns = np.arange(len(INTERVENTIONS)), np.arange(data.sizes["strength"])
    label = "largest error of a coefficient"
    draw_map(middle, columns, rows, wrong.values, label, cmap="viridis_r", vmin=0, vmax=1)
    middle.set_yticks(rows, list(INTERVENTIONS))
    middle.set_xticks(columns, [f"{strength:g}" for strength in data["strength"].values])
    for colour, words in (
        ("#fde725", "only the causes"), ("#21918c", "child and spouse stay in"), ("#440154", "a cause is lost"),
    ):  # fmt: skip
        middle.plot([], [], "s", color=colour, label=words)
    middle.set(xlabel="strength of the intervention", ylabel="what is intervened on", title="Where it flips")
    errors = _errors(data).median("seed")
    for offset, method, colour in zip((0.27, 0.0, -0.27), METHODS, ("0.6", "#3a9d5d", "#1b6ca8"), strict=True):
        right.barh(rows + offset, errors.isel(method=METHODS.index(method)), 0.25, color=colour, label=method)
    right.set_yticks(rows, list(INTERVENTIONS))
    right.set(xlabel="median over seeds of the largest error", ylabel="what is intervened on",
              title=f"Strength {STRENGTH:g}")  # fmt: skip
    return finished(figure, 2)


def claims(data: xr.Dataset) -> list[Claim]:
    """Written down before the first run, from which conditional laws an intervention leaves as they are."""
    errors = _errors(data).isel(method=2)
    strict = data["coefficient"].isel(method=2)
    settings = f"4 environments of {ROWS} rows, strength {STRENGTH:g}, significance {SIGNIFICANCE:g}"
    claim = ClaimBuilder("roles", "question 9", settings)

    def causes(name: str, intervention: str, why: str) -> Claim:
        statement = f"If environments differ in the {intervention}, only the causes stay, with their effects."
        measured = median(errors.sel(intervention=intervention))
        return claim(name, statement, measured, (0.0, 0.05), f"largest error of a coefficient; {why}")

    def blanket(intervention: str) -> Claim:
        statement = f"If environments differ in the {intervention} alone, the child stays in."
        measured = median(strict.sel(intervention=intervention).isel(feature=2))
        why = "y given all others has the same law everywhere: coefficient 1/2 as in least squares"
        return claim(intervention, statement, measured, (0.45, 0.55), why)

    score = data["score"]
    graph = f"6 variables, 7 environments of {ROWS} rows, each variable set in one"
    return [
        causes("child-mechanism", "child's mechanism", "the spouse goes with the child"),
        causes("child-noise", "child's noise", "the spouse goes with the child"),
        causes("target-noise", "noise of y", "the effects of the causes do not depend on it, that of the child does"),
        blanket("spouse"),
        blanket("causes"),
        claim("target-mechanism", "If the mechanism of y differs, a cause is lost.",
              median(errors.sel(intervention="y's mechanism")), above(0.3),
              "its effect varies; nothing tells a cause that varies from a child that does"),
        claim("graph", "Without the environment of the target's own intervention the graph is found.",
              median(score.isel(environments=1)), (0.9, 1.0), "F1 score of the edges", settings=graph),
        claim("graph-all", "With all environments for every target it is not.", median(score.isel(environments=0)),
              (0.0, 0.7), "F1 score of the edges; an intervention on the target cuts it from its causes",
              settings=graph),
    ]  # fmt: skip


def answer(data: xr.Dataset) -> str:
    """In words."""
    errors = _errors(data).median("seed")
    child = data["coefficient"].isel(method=2, feature=2).median("seed")
    score = data["score"].median("seed").values
    strict, runs = errors.isel(method=2), errors.isel(method=1)
    worst = strict.sel(intervention=["child's mechanism", "child's noise", "noise of y"]).max().item()
    return (
        "The direct causes, where environments differ in the child's mechanism or noise, or in the noise of y, and not "
        f"in the mechanism or the level of y (largest error {worst:.2f}); a spouse leaves with "
        "its child. Interventions on causes or spouses alone leave y given all others as it is, "
        f"and child and spouse stay in (child {child.sel(intervention='spouse').item():.2f}). A change of y's own "
        f"mechanism loses a cause. SGD itself on u*u - v*v is less reliable than the search by exponents (error "
        f"{runs.sel(intervention='causes').item():.2f} if the causes differ, where it washes out everything). A graph "
        f"needs, for each target, environments in which that target is left alone: F1 {score[1]:.2f} with them, "
        f"{score[0]:.2f} with all environments for all."
    )


NUMBERS = quantiles("coefficient")
EXPERIMENT = study("causal_roles", __doc__, LEFT_OPEN, simulate, draw, NUMBERS, claims, answer, seeds=64, quick_seeds=6)
