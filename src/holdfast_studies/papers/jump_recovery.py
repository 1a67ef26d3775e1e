"""A 20 x 20 matrix of rank 3: annealed SGD, and gradient descent at the same ridge and at one of its own."""

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.completion.jumps import ranks
from holdfast.completion.problem import MatrixCompletion, matrix_completion
from holdfast.completion.training import AlgorithmName, CompletionBuilder, LayerPaths, starts, train
from holdfast.core.validation import require
from holdfast_studies.kit.drawing import Figure, band, columns, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, Range, exact_share, study

LEFT_OPEN = (
    "The slides have no larger case. Ours is made of three turned copies of their 2 x 2 example: the block of large "
    "entries is never observed, of the other three blocks each row shows 4, 6 and 6 of 10 entries, 160 of 400 in all.",
    "L=3, eta=0.15, lambda=0.0022, label noise of variance 1, 100,000 steps from random rotations times 0.7, then "
    "lambda / 30 and / 1000 for 25,000 steps each with exact labels. The kind of matrix, the mask and these settings "
    "were tuned for SGD on this problem and other starts.",
    "So gradient descent is tuned as well: its own ridge is the one of five that completes the matrix from most of 8 "
    "starts, with a fifth of the steps. What is claimed is measured on starts that no choice has seen.",
    "One problem of this kind (seed 0). Where the observed entries of a random matrix are drawn uniformly there was "
    "no such trap: with ridges from 0.0005 to 0.002 gradient descent found rank 3 as well.",
)
QUICK_PART = 10  # a quick look takes one step in this many
HALF, RANK, EPSILON, PER_ROW, INIT_SCALE, DEPTH = 10, 3, 0.25, (4, 6, 6), 0.7, 3
STEPS, ANNEALED_STEPS, EVERY = 100_000, 25_000, 2500
# A test error below this, of entries whose mean square is 7, is a completion: runs that miss the rank end above 0.6.
COMPLETED = 0.2
STEP_SIZE, RIDGE, NOISE_VARIANCE = 0.15, 0.0022, 1.0
ANNEALING = (30, 1000)
# Ridges that gradient descent may choose from, on how many starts, and in which part of the steps.
RIDGES, CHOOSING_STARTS, CHOOSING_PART = (0.0022, 0.003, 0.0038, 0.0046, 0.0054), 8, 5
FIRST_TESTED = 1000  # the first seed of the starts that no choice has seen
NOISY, PLAIN, SAME, OWN = "SGD with label noise", "SGD", "gradient descent", "gradient descent, ridge of its own"
VARIANTS: dict[str, AlgorithmName] = {
    NOISY: "label-noise", PLAIN: "sgd", SAME: "gradient-descent", OWN: "gradient-descent"
}  # fmt: skip
SUMMARY = f"20 x 20, rank 3, 160 entries observed, L={DEPTH}, width 20, eta={STEP_SIZE}"


def hidden_block(
    half: int, rank: int, epsilon: float, per_row: tuple[int, int, int], seed: int = 0
) -> MatrixCompletion:
    """A larger relative of the 2 x 2 example: the block with the large entries is never observed.

        A* = c [[epsilon P Q^T, P S^T], [R Q^T, R S^T / epsilon]],    c = half / sqrt(rank)

    P, Q, R, S have orthonormal columns and rows of equal length, so all entries matter equally: `rank` copies of the
    2 x 2 example, turned. A completion with small entries puts 0 in the last block and has up to twice the rank.

    Args:
        half: size of a block; A* has twice as many rows and columns.
        rank: of A*, less than `half`.
        epsilon: as in `two_by_two`.
        per_row: observed entries in each row of the blocks (upper left, upper right, lower left); each column of a
            block has as many. Below `rank` in the last two the truth cannot be found.
        seed: of the directions and of which entries are observed.

    Example:
        >>> problem = hidden_block(10, 3, 0.25, (4, 6, 6))
        >>> problem.shape, problem.count, int(np.linalg.matrix_rank(problem.truth, 1e-4))
        ((20, 20), 160, 3)
    """
    require(1 <= rank < half, f"rank must be from 1 to half - 1 = {half - 1}", repr(rank))
    proper = all(0 <= number <= half for number in per_row)
    require(proper, f"per_row must be three numbers from 0 to half = {half}", repr(per_row))
    random = np.random.default_rng(seed)
    upper, lower = np.sqrt(epsilon), 1 / np.sqrt(epsilon)
    left, right = (
        np.concatenate([upper * _flat_frame(half, rank, random), lower * _flat_frame(half, rank, random)])
        for _ in range(2)
    )
    seen = np.zeros((2 * half, 2 * half), bool)
    offset = np.add.outer(np.arange(half), np.arange(half)) % half
    for (row, column), number in zip(((0, 0), (0, half), (half, 0)), per_row, strict=True):
        block = (offset < number)[random.permutation(half)][:, random.permutation(half)]
        seen[row : row + half, column : column + half] = block
    return matrix_completion(left @ right.T * half / np.sqrt(rank), seen)


def _flat_frame(size: int, rank: int, random: np.random.Generator) -> np.ndarray:
    """Orthonormal columns with rows of equal length: waves, turned, with random order and signs of the rows."""
    angles = 2 * np.pi * np.arange(size) / size
    waves = [np.sqrt(2) * wave(number * angles) for number in range(1, rank // 2 + 1) for wave in (np.cos, np.sin)]
    columns = np.stack([*([np.ones(size)] if rank % 2 else []), *waves], 1) / np.sqrt(size)
    turn = np.linalg.qr(random.standard_normal((rank, rank)))[0]
    return random.permutation(columns * random.choice([-1.0, 1.0], size)[:, None]) @ turn


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Choose a ridge for gradient descent on some starts, then run all variants from others, and anneal them."""
    problem = hidden_block(HALF, RANK, EPSILON, PER_ROW)
    part = QUICK_PART if effort.quick else 1
    few = min(effort.seeds, CHOOSING_STARTS)
    weights = [few * len(RIDGES) / CHOOSING_PART, *[effort.seeds] * len(VARIANTS)]
    reports = stages(progress, [round(1000 * weight) for weight in weights])
    completed = _completed(problem, range(few), part * CHOOSING_PART, reports[0])
    own = RIDGES[int(np.argmax(completed))]
    seeds = range(FIRST_TESTED, FIRST_TESTED + effort.seeds)
    found = []
    for (name, algorithm), report in zip(VARIANTS.items(), reports[1:], strict=True):
        ridge = own if name == OWN else RIDGE
        pieces = _trained(problem, np.asarray(seeds), np.full(len(seeds), ridge), algorithm, part, report)
        found.append(_observed(problem, pieces).expand_dims(variant=[name]))
    data = xr.concat(found, "variant", join="exact").assign_coords(seed=list(seeds))
    return data.assign(choosing=("ridge", completed), ridge=list(RIDGES)).assign_attrs(
        own_ridge=own, choosing=few, part=part
    )


def _completed(problem: MatrixCompletion, seeds: range, part: int, progress: Progress) -> np.ndarray:
    """From how many starts gradient descent completes the matrix, for every ridge."""
    each = np.tile(np.asarray(seeds), len(RIDGES))
    pieces = _trained(problem, each, np.repeat(RIDGES, len(seeds)), "gradient-descent", part, progress)
    errors = problem.test_error(pieces[-1].fitted[:, -1]).reshape(len(RIDGES), len(seeds))
    return (errors < COMPLETED).sum(1)


def _trained(
    problem: MatrixCompletion, seeds: np.ndarray, ridge: np.ndarray, algorithm: AlgorithmName, part: int,
    progress: Progress,
) -> list[LayerPaths]:  # fmt: skip
    """The run and its annealed pieces, with one step in `part`."""
    layers = starts((2 * HALF,) * (DEPTH + 1), INIT_SCALE, seeds)
    exact: AlgorithmName = "gradient-descent" if algorithm == "gradient-descent" else "sgd"
    stretches = [(STEPS, 1, algorithm), *((ANNEALED_STEPS, factor, exact) for factor in ANNEALING)]
    pieces: list[LayerPaths] = []
    reports = stages(progress, [steps for steps, _, _ in stretches])
    for (steps, factor, name), report in zip(stretches, reports, strict=True):
        pieces.append(train(
            problem, pieces[-1].final if pieces else layers, seeds, step_size=STEP_SIZE, ridge=ridge / factor,
            noise_variance=NOISE_VARIANCE, steps=steps // part, every=EVERY, build=CompletionBuilder(name),
            progress=report,
        ))  # fmt: skip
    return pieces


def _observed(problem: MatrixCompletion, pieces: list[LayerPaths]) -> xr.Dataset:
    """Ranks and errors along the pieces, joined; the first record of a later piece is the last of the one before."""
    fitted = np.concatenate([pieces[0].fitted, *(piece.fitted[:, 1:] for piece in pieces[1:])], 1)
    ends = np.cumsum([0] + [piece.steps[-1] for piece in pieces[:-1]])
    later = [piece.steps[1:] + end for piece, end in zip(pieces[1:], ends[1:], strict=True)]
    values = np.linalg.svd(fitted, compute_uv=False)
    diverged = np.any([piece.diverged_at >= 0 for piece in pieces], axis=0)
    return xr.Dataset(
        {
            "rank": (("seed", "step"), ranks(values, problem.scale).astype(float)),
            "test_error": (("seed", "step"), np.minimum(problem.test_error(fitted), 1e6)),
            "train_error": (("seed", "step"), np.minimum(problem.train_error(fitted), 1e6)),
            "diverged": ("seed", diverged),
        },
        {"step": np.concatenate([pieces[0].steps, *later]), "seed": np.arange(len(fitted))},
    )


def draw(data: xr.Dataset) -> Figure:
    """Rank and test error over time, and what every ridge does for gradient descent."""
    title = f"20 x 20, rank 3, 160 entries observed, L=3: {data.sizes['seed']} seeds, medians and 10 % to 90 %"
    figure, (left, middle, right) = new_figure(3, title)
    end = int(data["step"][-1])
    begin = end * STEPS // (STEPS + len(ANNEALING) * ANNEALED_STEPS)
    own = data.attrs["own_ridge"]
    for name in VARIANTS:
        runs = data.sel(variant=name)
        label = f"{name}, λ={own if name == OWN else RIDGE}".replace("ridge of its own, ", "")
        band(left, runs["rank"], "step", label)
        band(middle, runs["test_error"], "step", label)
    left.axhline(RANK, color="0.3", linestyle=":", label="rank of the truth")
    left.set(xlabel="step", ylabel="rank", ylim=(0, 12))
    middle.set(xlabel="step", ylabel="test error", yscale="log", ylim=(1e-3, 20))
    middle.axhline(COMPLETED, color="0.3", linestyle=":", label="completed below")
    for axes in (left, middle):
        axes.axvline(begin, color="0.6", linewidth=0.8, label="annealing begins")
        axes.set_xticks([0, begin, end], ["0", f"{begin:,}", f"{end:,}"])
    right.plot(data["ridge"], data["choosing"] / data.attrs["choosing"], "o-", label="gradient descent, other starts")
    right.set(xlabel="ridge λ", ylabel="share of completed starts", ylim=(-0.03, 1.05), title="Choice of the ridge")
    right.set_xticks(RIDGES)
    return finished(figure)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The last record of every run."""
    return columns("rank", "test_error", "train_error", "diverged")(data.isel(step=-1)).drop(columns="step")


def claims(data: xr.Dataset) -> list[Claim]:
    """Who completes the matrix."""
    final = data.isel(step=-1)
    errors = {name: final["test_error"].sel(variant=name).values for name in VARIANTS}
    own = data.attrs["own_ridge"]
    steps, annealed = (count // data.attrs["part"] for count in (STEPS, ANNEALED_STEPS))
    summary = f"{SUMMARY}, T={steps:,} and {len(ANNEALING)} x {annealed:,} annealed"

    build = ClaimBuilder("jump-recovery")

    def claim(key: str, name: str, statement: str, ridge: float, allowed: Range, why: str) -> Claim:
        chosen = (f"eta={STEP_SIZE}", f"lambda={ridge}", "the matrix, its mask, L, width, start and schedule")
        why = f"share of the runs with a test error below {COMPLETED}; the median is {np.median(errors[name]):.2g}{why}"
        return build(key, statement, exact_share(errors[name] < COMPLETED), allowed, why,
                     settings=f"{summary}, lambda={ridge} (ours)", conditions=Conditions(chosen=chosen))  # fmt: skip

    return [
        claim("sgd", NOISY, "Annealed SGD with label noise completes the matrix.", RIDGE, (0.5, 1),
              f". Label noise of variance {NOISE_VARIANCE:g}"),
        claim("plain", PLAIN, "SGD without label noise does not.", RIDGE, (0, 0.25),
              ". One entry a step of 160 is noise enough for 2 x 2, not here"),
        claim("same-ridge", SAME, "Gradient descent at the ridge of SGD does not.", RIDGE, (0, 0.25), ""),
        claim("own-ridge", OWN, "Gradient descent at a ridge of its own completes the matrix: it needs no jumps.", own,
              (0.5, 1), f". The ridge was chosen on {data.attrs['choosing']} other starts"),
    ]  # fmt: skip


EXPERIMENT = study("jump_recovery", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=16)
