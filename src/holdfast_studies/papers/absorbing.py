"""The absorbing sets of SGD (Wang and Jacot, ICLR 2024): constants chosen on some runs, and tested on others."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import xarray as xr

from holdfast.completion.problem import MatrixCompletion, two_by_two
from holdfast.completion.training import AlgorithmName, LayerPaths, simulate_completion
from holdfast.core.statistics import event_rate
from holdfast.theory.absorbing import Constants, closedness, contains, imbalance, layer_ranks, product_rank, successor
from holdfast_studies.kit.drawing import Figure, band, columns, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, replace, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, Position, exact_share, study, summary
from holdfast_studies.papers.absorbing_search import COUNTS, most_interior, search_constants
from holdfast_studies.papers.jumps import DEPTH, EPSILON, RUN, WIDTH

LEFT_OPEN = (
    "The form of f_alpha. Ours is 1 - (1 - x / alpha)^2 below alpha, the simplest with a continuous slope; the search "
    "also tries min(x / alpha, 1) and sqrt(x / alpha).",
    "The constants eps1, eps2, alpha, C. They are chosen on 64 runs, every 20th step of them: of all constants for "
    "which no run leaves B_1 and most enter it, those with the most neighbours in the grid of which the same is true. "
    "What is claimed is then measured on other runs, put aside, at every step.",
    "Settings of our choice: epsilon=0.25, L=3, width 6, eta=0.4, lambda=0.026, 5000 steps.",
    "How states of B_1 that SGD need not visit are drawn: balanced layers, the first squared singular value uniform "
    "up to C, the second one uniform up to where the conditions end, random directions.",
)
# Near the end of rank 2, so that the jump falls into a run that is short enough to look at every step.
STEP_SIZE, RIDGE, STEPS = RUN.step_size, 0.026, 5000
BALANCES, SLACKS = (0.03, 0.1, 0.3, 1.0), (0.1, 0.3, 0.6, 0.9)
LEVELS, BOUNDS = (0.01, 0.03, 0.1, 0.3), (1.6, 2.0, 4.0, 8.0)
TRIED = {"balance": BALANCES, "slack": SLACKS, "level": LEVELS, "bound": BOUNDS, "count": COUNTS}
# Runs on which the constants are chosen, and how many steps lie between the states that the search looks at.
SELECTION_RUNS, SEARCHED = 64, 20
# The runs of the test begin at this seed. Of the continuous approximation, which is slower, there are fewer.
FIRST_TESTED, SDE_RUNS, SUBSTEPS = 10_000, 64, 8
# The theorem has no time limit: which share of the runs must be inside by the end of ours.
MOST = 0.95
# Runs whose steps are in memory at a time, and states drawn from all of B_1.
AT_A_TIME, STATES = 64, 20_000
SUMMARY = summary(replace(RUN, ridge=RIDGE, steps=STEPS), "ours")


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Choose the constants on some runs, then follow every step of others, of SGD and of its approximation."""
    problem = two_by_two(EPSILON)
    selecting, few = min(effort.seeds, SELECTION_RUNS), min(effort.seeds, SDE_RUNS)
    reports = stages(progress, [selecting * STEPS, effort.seeds * STEPS, few * STEPS * SUBSTEPS])
    search = _search(_runs(range(selecting), SEARCHED, "sgd", reports[0]))
    constants = constants_of(search)
    parts: list[xr.Dataset] = [search]
    counts: dict[AlgorithmName, int] = {"sgd": effort.seeds, "sde": few}
    for (algorithm, count), report in zip(counts.items(), reports[1:], strict=True):
        seeds = range(FIRST_TESTED, FIRST_TESTED + count)
        chunks = [seeds[first : first + AT_A_TIME] for first in range(0, count, AT_A_TIME)]
        inner = stages(report, [len(chunk) * STEPS for chunk in chunks])
        found = [
            _followed(_runs(chunk, 1, algorithm, each), constants, problem, algorithm, chunk)
            for chunk, each in zip(chunks, inner, strict=True)
        ]
        parts.append(xr.concat(found, "seed" if algorithm == "sgd" else "sde_seed", join="exact"))
    drawn = states_of(constants, 1, STATES, (2, WIDTH, WIDTH, 2))
    left = np.stack([~contains(successor(drawn, *entry, STEP_SIZE, RIDGE), 1, constants) for entry in entries(problem)])
    parts.append(xr.Dataset({"drawn_left": (("entry", "state"), left)}))
    return xr.merge(parts, join="exact")


def _runs(seeds: Sequence[int], every: int, algorithm: AlgorithmName, progress: Progress | None) -> LayerPaths:
    # Substeps are those of the equation; left out of SGD, its program is that of the other experiments.
    substeps = SUBSTEPS if algorithm == "sde" else 1
    given = replace(RUN, algorithm=algorithm, substeps=substeps, every=every, seed=seeds[0], seeds=len(seeds))
    return simulate_completion(replace(given, ridge=RIDGE, steps=STEPS), progress).paths


def _search(paths: LayerPaths) -> xr.Dataset:
    """Entries and exits for all constants, and what the conditions bound, on the runs of the choice."""
    found = search_constants(paths.layers, 1, TRIED)
    data = found.rename({name: f"search_{name}" for name in found})
    layers = tuple(layer.astype(float) for layer in paths.layers)
    per_step = {
        "imbalance": imbalance(layers),
        "layer_rank": layer_ranks(layers, constants_of(data).level).max(-1),
        "largest_norm": np.max([np.square(layer).sum((-2, -1)) for layer in layers], axis=0),
    }
    return data.assign({name: (("run", "step"), part) for name, part in per_step.items()} | {"step": paths.steps})


def _closed(data: xr.Dataset) -> xr.DataArray:
    """For which constants no run of the choice left B_1, and most entered it."""
    return (data["search_exits"] == 0) & (data["search_entered"] > 0.5)


def constants_of(data: xr.Dataset) -> Constants:
    """What the runs of the choice lead to, with the first form of f; the loosest if a quick look finds none."""
    smooth = {"count": COUNTS[0].__name__}
    closed, entered = _closed(data).sel(smooth), data["search_entered"].sel(smooth)
    place = most_interior(closed.values, entered.values) if closed.values.any() else (-1,) * closed.ndim
    picked = {str(name): float(data[name][index]) for name, index in zip(closed.dims, place, strict=True)}
    return Constants(**picked, count=COUNTS[0])


def _followed(
    paths: LayerPaths, constants: Constants, problem: MatrixCompletion, algorithm: AlgorithmName, seeds: Sequence[int]
) -> xr.Dataset:
    """What becomes of runs in B_1 at every step; for SGD also whether any step that it might take leads out."""
    # Run by run: the states of one stay in the cache.
    inside = np.stack([contains(layers, 1, constants) for layers in zip(*paths.layers, strict=True)])
    found = closedness(inside)
    per_seed = {
        "entered": found.entered,
        "exits": found.exits,
        "steps_inside": inside[:, :-1].sum(1),
        "diverged": paths.diverged_at >= 0,
    }
    if algorithm == "sgd":
        product = reduce(lambda below, layer: layer @ below, paths.final)
        ends = product_rank(product, DEPTH, constants.level, constants.count)
        states = tuple(layer[:, ::SEARCHED].astype(float) for layer in paths.layers)
        leaves = [
            (~contains(successor(states, *entry, STEP_SIZE, RIDGE), 1, constants) & inside[:, ::SEARCHED]).sum(1)
            for entry in entries(problem)
        ]
        per_seed |= {
            "product_rank": ends,
            "inside_at_the_end": inside[:, -1],
            "successors_left": np.sum(leaves, axis=0),
            "successors_tried": inside[:, ::SEARCHED].sum(1) * problem.count,
        }
        return xr.Dataset({key: ("seed", part) for key, part in per_seed.items()}, {"seed": list(seeds)})
    return xr.Dataset({f"sde_{key}": ("sde_seed", part) for key, part in per_seed.items()}, {"sde_seed": list(seeds)})


def entries(problem: MatrixCompletion) -> list[tuple[int, int, float]]:
    """Row, column and value of every observed entry."""
    parts = zip(problem.rows.tolist(), problem.columns.tolist(), problem.values.tolist(), strict=True)
    return list(parts)


def states_of(constants: Constants, rank: int, count: int, widths: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """States of B_r, visited or not: balanced layers in random directions, drawn until all conditions hold."""
    random = np.random.default_rng(0)
    least = min(widths)
    squares = random.uniform(0, 1, (count, least)) * np.where(np.arange(least) < rank, constants.bound, constants.level)
    # Shrink what is too much: the sum of squares to C, the counts of the values after the first r to eps2.
    squares *= np.minimum(1, constants.bound / squares.sum(1))[:, None]
    over = constants.count(squares[:, rank:] / constants.level).sum(1) > constants.slack
    while over.any():
        squares[over, rank:] *= 0.9
        over = constants.count(squares[:, rank:] / constants.level).sum(1) > constants.slack
    frames = [np.linalg.qr(random.standard_normal((count, width, least)))[0] for width in widths]
    sizes = np.sqrt(squares)[:, None]
    return tuple((frames[k + 1] * sizes) @ frames[k].swapaxes(-1, -2) for k in range(len(widths) - 1))


def draw(data: xr.Dataset) -> Figure:
    """The conditions over time, and what the search found."""
    chosen = constants_of(data)
    figure, (left, right) = new_figure(2, f"Absorbing sets: {SUMMARY}")
    for name, label in (("layer_rank", "Σ f(s²), largest layer"), ("imbalance", "imbalance"), ("largest_norm", "‖W‖²")):
        band(left, data[name].rename(run="seed"), "step", label)
    left.axhline(1 + chosen.slack, color="0.3", linestyle=":", label=f"1 + eps2 = {1 + chosen.slack:g}")
    left.set(xlabel="step", ylabel="what B_1 bounds", yscale="log", ylim=(1e-3, 10))
    left.set_title("SGD, runs of the choice, medians and 10 % to 90 %")
    for number, level in enumerate(LEVELS):
        share = _closed(data).sel(level=level, balance=list(BALANCES[1:]), bound=list(BOUNDS[1:]))
        # Curves that lie on one another are distinguished by the size of their marks.
        look = {"marker": "o", "markersize": 10 - 2 * number, "color": f"C{number}", "label": f"alpha={level}"}
        right.plot(data["slack"], share.mean(("count", "balance", "bound")), **look)
    right.axvline(chosen.slack, color="0.3", linestyle=":", label=f"chosen: {_words(chosen)}")
    right.set(xlabel="eps2", ylabel="share of constants with B_1 closed", ylim=(-0.03, 1.05))
    right.set_title("Search: eps1 ≥ 0.1, C ≥ 2, three forms of f")
    return finished(figure)


def _words(constants: Constants) -> str:
    return f"eps1={constants.balance:g}, eps2={constants.slack:g}, alpha={constants.level:g}, C={constants.bound:g}"


def claims(data: xr.Dataset) -> list[Claim]:
    """Closedness of B_1 on runs that had no part in its choice, and the lemma on approximate ranks."""
    chosen = constants_of(data)
    tried = int(_closed(data).size)
    claim = ClaimBuilder("absorbing", "jumps: closed", f"{SUMMARY}, {_words(chosen)}")
    nearby = f"the states are those of SGD at eta={STEP_SIZE}, near critical points and not at them"
    inside, exits = data["entered"].values >= 0, data["exits"].values
    left = exact_share(exits[inside] > 0)
    hazard = event_rate(data["steps_inside"].values, exits)
    steps, out = int(data["successors_tried"].sum()), int(data["successors_left"].sum())
    sde_inside = data["sde_entered"].values >= 0
    sde_left = exact_share(((data["sde_exits"].values > 0) | data["sde_diverged"].values.astype(bool))[sde_inside])
    ends = data["inside_at_the_end"].values.astype(bool)
    over = data["product_rank"].values[ends] > 1 + chosen.slack
    drawn = data["drawn_left"].values.any(0)
    return [
        claim("entered", "SGD enters B_1.", exact_share(inside), (MOST, 1), "share of the runs that were inside at "
              f"some step; of {tried} constants tried on other runs {int(_closed(data).sum())} had no exit there",
              source="jumps: theorem", conditions=Conditions(chosen=("all settings", f"mark: {MOST:g} of the runs"))),
        claim("closed", "SGD does not leave B_1.", left, (0, 0.02), "share of the runs that entered and ever left, "
              f"exact interval: {int((exits[inside] > 0).sum())} of {int(inside.sum())}; {hazard.value:.2g} exits per "
              f"step inside ({hazard.low:.2g} to {hazard.high:.2g})"),
        claim("every-step", "None of the steps that SGD might take from the states it visits in B_1 leads out.",
              exact_share(data["successors_left"].values[inside] > 0), (0, 0.02),
              f"share of the runs with a step that leads out, all three entries tried at every 20th state: {out} of "
              f"{steps:,} steps"),
        claim("anywhere", "From no state of B_1, visited or not, a step of SGD leads out.", exact_share(drawn),
              (0, 0.001), "share of states drawn from B_1 from which one of the three steps leads out. At this step "
              "size the closed set is a property of the states that SGD visits, not of B_1: where the product has the "
              "wrong sign and size C^(L/2), one step is longer than B_1 is wide", expected=Position.OUTSIDE),
        claim("sde", "The continuous approximation leaves B_1 more often than SGD: the absorbing set is lost.",
              sde_left, (left.high, 1), "share of the runs that entered and then left or diverged, against the upper "
              "end of SGD's interval. Its noise is Gaussian and unbounded, so no bounded set holds it",
              source="jumps: continuous", settings=f"{SUMMARY}, {_words(chosen)}, Euler-Maruyama with {SUBSTEPS} "
              "substeps"),
        claim("lemma", "In B_1 the approximate rank of the product is at most 1 + eps2.", exact_share(over), (0, 0.02),
              "share of the runs inside at the end that are above it", source="jumps: lemma",
              conditions=Conditions((nearby,), ("all settings",))),
    ]  # fmt: skip


EXPERIMENT = study(
    "absorbing", __doc__, LEFT_OPEN, simulate, draw, columns("search_entered", "search_exits"), claims, seeds=300
)
