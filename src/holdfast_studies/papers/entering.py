"""Entering the sets B_r (Wang and Jacot, ICLR 2024): with which probability from where, and B_2 before B_1."""

import itertools

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.completion.jumps import SITTING, memory, ranks
from holdfast.completion.problem import MatrixCompletion, matrix_completion, two_by_two
from holdfast.completion.training import AlgorithmName, CompletionBuilder, simulate_completion, starts, train
from holdfast.core.statistics import Estimate
from holdfast.theory.absorbing import Constants, closedness, contains, successor
from holdfast_studies.kit.drawing import Figure, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, replace, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, exact_share, study, summary
from holdfast_studies.papers.absorbing import entries
from holdfast_studies.papers.jumps import DEPTH, EPSILON, RIDGE, RUN, STEP_SIZE, WIDTH, network_starts

LEFT_OPEN = (
    "The constants of B_r: those that the experiment `absorbing` arrives at, eps1=0.3, eps2=0.3, alpha=0.03, C=4, "
    "with f_alpha(x) = 1 - (1 - x / alpha)^2 below alpha.",
    "How small the probability of entering may be: the slides write O(r^T). Ours is a bound that can be computed. "
    "With one of N entries drawn T times in a row, which has the probability N^-T, only one direction is fed and the "
    "ridge removes the others; T is counted from each start.",
    "Starts, on the 2 x 2 example with the settings of the experiment `jumps`: rotations, the same twice as large in "
    "the first layer and half as large in the last, rotations times 1.3, and the minimum of rank 2 in which gradient "
    "descent ends. 10,000 steps, of which every 100th is looked at.",
    "The matrix for r >= 2: the lower triangle of A*_ij = epsilon^(i-j), 3 x 3, of rank 1, epsilon=0.05, eta=0.4, "
    "lambda=0.026, 40,000 steps, found on the seeds 0 to 15. The claims are measured on other seeds.",
)
QUICK_PART = 5  # a quick look takes one step in this many
CONSTANTS = Constants(balance=0.3, slack=0.3, level=0.03, bound=4.0)
STEPS, EVERY = 10_000, 100
ROTATIONS, UNBALANCED, LARGE, MINIMUM = "rotations", "unbalanced", "large", "minimum of rank 2"
# The 3 x 3 matrix, and the first of the seeds that had no part in finding it.
TRIANGLE_EPSILON, TRIANGLE_RIDGE, TRIANGLE_STEPS, FIRST_TESTED = 0.05, 0.026, 40_000, 10_000
# The theorem has no time limit: which share of the runs must be through by the end of ours.
MOST = 0.5
DESCENT_RUNS = 64  # of gradient descent, which is slower and has nothing random but its start


def triangle() -> MatrixCompletion:
    """The 2 x 2 example with one more row and column: the lower triangle of a 3 x 3 matrix of rank one.

    Example:
        >>> triangle().count, int(np.linalg.matrix_rank(triangle().truth))
        (6, 1)
    """
    number = np.arange(3.0)
    return matrix_completion(TRIANGLE_EPSILON ** np.subtract.outer(number, number), np.tril(np.ones((3, 3), bool)))


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Many runs from each of a few starts on the 2 x 2 example, and runs on the 3 x 3 matrix from random starts."""
    steps, long = effort.steps(STEPS, QUICK_PART), effort.steps(TRIANGLE_STEPS, QUICK_PART)
    few = min(effort.seeds, DESCENT_RUNS)
    reports = stages(progress, [4 * effort.seeds * steps, effort.seeds * long, few * long])
    parts = [_from_starts(effort.seeds, steps, reports[0])]
    parts.append(_on_the_triangle("sgd", "sgd", effort.seeds, long, reports[1]))
    parts.append(_on_the_triangle("gd", "gradient-descent", few, long, reports[2]))
    return xr.merge(parts, join="exact")


def chosen_starts() -> dict[str, tuple[np.ndarray, ...]]:
    """The parameters from which entering is tried, by name; no leading axis."""
    first = tuple(layer[0] for layer in network_starts([0]))
    descent = replace(RUN, algorithm="gradient-descent", steps=STEPS, every=STEPS, seeds=1)
    settled = simulate_completion(descent).paths
    return {
        ROTATIONS: first,
        UNBALANCED: (2 * first[0], *first[1:-1], first[-1] / 2),
        LARGE: tuple(1.3 * layer for layer in first),
        MINIMUM: tuple(layer[0].astype(float) for layer in settled.final),
    }


def _from_starts(seeds: int, steps: int, progress: Progress) -> xr.Dataset:
    """The share of runs inside B_1 over time from every start, and how soon one entry alone leads there."""
    problem, begins = two_by_two(EPSILON), chosen_starts()
    layers = tuple(
        np.concatenate([np.tile(begin[k], (seeds, 1, 1)) for begin in begins.values()]) for k in range(DEPTH)
    )
    paths = train(
        problem, layers, np.tile(np.arange(seeds), len(begins)), step_size=STEP_SIZE, ridge=RIDGE, steps=steps,
        every=EVERY, progress=progress,
    )  # fmt: skip
    inside = contains(paths.layers, 1, CONSTANTS).reshape(len(begins), seeds, -1)
    lengths = [[path_length(begin, [entry], 1) for entry in entries(problem)] for begin in begins.values()]
    return xr.Dataset(
        {
            "entered": (("start", "seed", "step"), np.maximum.accumulate(inside, axis=-1)),
            "path_length": (("start", "entry"), np.array(lengths, float)),
        },
        {"start": list(begins), "step": paths.steps, "seed": np.arange(seeds)},
    )


def path_length(layers: tuple[np.ndarray, ...], drawn: list[tuple[int, int, float]], rank: int) -> float:
    """Steps until B_r, if the entries come in turn and no others; NaN if the ridge has not done it in 20 memories.

    Example, from the zero matrix, which lies in every B_r:
        >>> path_length((np.zeros((2, 2)),) * 3, [(0, 0, 1.0)], rank=1)
        0.0
    """
    state = layers
    limit = round(SITTING * memory(STEP_SIZE, RIDGE))
    for step, (row, column, value) in zip(range(limit), itertools.cycle(drawn), strict=False):
        if contains(state, rank, CONSTANTS):
            return float(step)
        state = successor(state, row, column, value, STEP_SIZE, RIDGE)
    return np.nan


def _on_the_triangle(name: str, algorithm: AlgorithmName, count: int, steps: int, progress: Progress) -> xr.Dataset:
    """When runs on the 3 x 3 matrix enter B_2 and B_1, whether they leave again, and their ranks."""
    problem, seeds = triangle(), np.arange(FIRST_TESTED, FIRST_TESTED + count)
    paths = train(
        problem, starts((3, *(WIDTH,) * (DEPTH - 1), 3), 1.0, seeds), seeds, step_size=STEP_SIZE, ridge=TRIANGLE_RIDGE,
        steps=steps, every=EVERY, build=CompletionBuilder(algorithm), progress=progress,
    )  # fmt: skip
    values = np.linalg.svd(paths.fitted, compute_uv=False)
    path = ranks(values, problem.scale)
    run, step = f"{name}_run", "long_step"
    found = {rank: closedness(contains(paths.layers, rank, CONSTANTS)) for rank in (1, 2)}
    data = {
        f"{name}_rank": ((run, step), path),
        f"{name}_values": ((run, step, "value"), values),
        **{f"{name}_entered_{rank}": (run, each.entered) for rank, each in found.items()},
        **{f"{name}_exits_{rank}": (run, each.exits) for rank, each in found.items()},
    }
    return xr.Dataset(data, {step: paths.steps, run: seeds})


def draw(data: xr.Dataset) -> Figure:
    """The probability of entering, one run on the 3 x 3 matrix, and how many runs are at which rank."""
    title = f"Entering B_r: eta={STEP_SIZE}, L={DEPTH}, width {WIDTH}, {data.sizes['seed']} runs each"
    figure, (left, middle, right) = new_figure(3, title)
    for number, start in enumerate(data["start"].values.tolist()):
        entered = data["entered"].sel(start=start)
        shares = [exact_share(hits) for hits in entered.transpose("step", "seed").values]
        value, low, high = np.array(shares).T
        left.plot(data["step"], value, color=f"C{number}", label=start)
        left.fill_between(data["step"], low, high, color=f"C{number}", alpha=0.15, linewidth=0)
    left.set(xlabel="step", ylabel="share of the runs that entered B_1", ylim=(-0.03, 1.05))
    left.set_title(f"2 x 2, λ={RIDGE}, bands of 95 %")
    both = (data["sgd_entered_2"].values >= 0) & (data["sgd_entered_1"].values >= 0)
    gap = np.where(both, data["sgd_entered_1"].values - data["sgd_entered_2"].values, 0)
    typical = int(np.argsort(gap)[len(gap) // 2])
    for number in range(3):
        line = data["sgd_values"].isel(sgd_run=typical, value=number).clip(min=1e-6)
        middle.plot(data["long_step"], line, color=f"C{number}", linewidth=0.8, label=f"s{number + 1}")
    middle.set(xlabel="step", ylabel="singular values of the product", yscale="log", ylim=(1e-6, 5))
    middle.set_title(f"3 x 3, λ={TRIANGLE_RIDGE}, one run of SGD")
    for name, style, label in (("sgd", "-", "SGD"), ("gd", ":", "gradient descent")):
        for number in (1, 2, 3):
            share = (data[f"{name}_rank"] == number).mean(f"{name}_run")
            right.plot(data["long_step"], share, style, color=f"C{number}", label=f"rank {number}, {label}")
    right.set(xlabel="step", ylabel="share of the runs", ylim=(-0.03, 1.05), title="3 x 3: ranks over time")
    return finished(figure)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """For every start: the share that enters, its exact interval, and the bound from one entry drawn in a row."""
    rows = []
    for start in data["start"].values.tolist():
        chosen = data.sel(start=start)
        share = _entered(chosen)
        shortest = float(chosen["path_length"].min())
        rows.append(
            {"start": start, "entered": share.value, "low": share.low, "high": share.high, "shortest_path": shortest}
            | {"log10_of_bound": -shortest * np.log10(data.sizes["entry"])}
        )
    return pd.DataFrame(rows)


def _entered(runs: xr.Dataset) -> Estimate:
    return exact_share(runs["entered"].isel(step=-1))


def _in_order(data: xr.Dataset) -> np.ndarray:
    """Which runs enter B_2, stay for 20 memories of the ridge, and then enter B_1."""
    second, first = data["sgd_entered_2"].values, data["sgd_entered_1"].values
    stay = (first - second) * EVERY
    return (second >= 0) & (first >= 0) & (stay >= SITTING * memory(STEP_SIZE, TRIANGLE_RIDGE))


def claims(data: xr.Dataset) -> list[Claim]:
    """Entering with positive probability from anywhere; B_2, then B_1; and no way back."""
    table = numbers(data).set_index("start")
    constants = "eps1=0.3, eps2=0.3, alpha=0.03, C=4"
    steps, long = int(data["step"][-1]), int(data["long_step"][-1])
    small = summary(replace(RUN, steps=steps), "ours")
    large = summary(replace(RUN, epsilon=TRIANGLE_EPSILON, ridge=TRIANGLE_RIDGE, steps=long), "ours")
    claim = ClaimBuilder("entering", "jumps: theorem", f"3 x 3, {large}, {constants}")
    lengths = data["path_length"].values
    led = float(np.isfinite(lengths).mean())
    order = _in_order(data)
    stays = (data["sgd_entered_1"].values - data["sgd_entered_2"].values)[order] * EVERY
    path = data["sgd_rank"].values
    settled = int(np.searchsorted(data["long_step"].values, SITTING * memory(STEP_SIZE, TRIANGLE_RIDGE)))
    rose = (np.diff(path[:, settled:], axis=1) > 0).any(1)
    return [
        claim("path", "From every start a sequence of draws leads into B_1, so that its probability is above zero: one "
              "entry over and over.", led, (1, 1),
              f"share of {lengths.size} pairs of start and entry, no sampling error; after "
              f"{np.nanmin(lengths):.0f} to {np.nanmax(lengths):.0f} steps. Drawn at random, the shares of "
              f"the runs that enter within {steps:,} steps are "
              + ", ".join(f"{name} {row['entered']:.2f}" for name, row in table.iterrows()), source="jumps: enters",
              settings=f"2 x 2, {small}, {constants}"),
        claim("in-order", "SGD enters B_2, stays there, and then enters B_1.",
              exact_share(order), (MOST, 1), "share of the runs with at least "
              f"{SITTING * memory(STEP_SIZE, TRIANGLE_RIDGE):,.0f} steps between the two; the median is "
              f"{np.median(stays) if len(stays) else np.nan:,.0f}",
              conditions=Conditions(chosen=("all settings", f"mark: {MOST:g} of the runs"))),
        *(
            claim(f"closed-{rank}", f"SGD does not leave B_{rank}.",
                  exact_share(data[f"sgd_exits_{rank}"] > 0), (0, 0.02),
                  f"share of the runs that ever left, every {EVERY}th step looked at", source="jumps: closed")
            for rank in (2, 1)
        ),
        claim("one-way", "From rank 3 to 2 to 1: no rank ever rises.", exact_share(rose),
              (0, 0.02), "share of the runs whose rank rose after 20 memories of the ridge", source="jumps: one way"),
        claim("gradient-descent", "Gradient descent from the same starts stops at rank 2.",
              exact_share(data["gd_rank"].values[:, -1] < 2), (0, 0.1),
              "share of the runs that end at a lower rank", source="Holdfast"),
    ]  # fmt: skip


EXPERIMENT = study("entering", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=200)
