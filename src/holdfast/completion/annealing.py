"""Annealed SGD on a deep linear network for a list of observed entries: how large a ridge and a step, and the runs.

With balanced layers the penalty lambda ||theta||^2 costs a singular value s of A = W_L ... W_1 the amount
lambda L s^(2/L). Entries observed at random pull it towards the singular value x that the data has there, so it lies
at a minimum of

    f(s) = (s - x)^2 / (2 h w) + lambda L s^(2/L),    h, w: numbers of rows and columns

For L > 2 the minimum away from 0 exists if x is above a threshold: below it the direction is lost, and since f grows
faster than any quadratic at 0, it stays lost. That is the one-way jump of Wang and Jacot (ICLR 2024) in one dimension;
the noise of SGD makes it happen earlier, as the threshold is a barrier that it only has to cross once.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from holdfast.completion.deep_linear import deep_linear, orthogonal_layers
from holdfast.completion.observations import Fold, Observations, balanced_factors
from holdfast.completion.oracles import ObservedEntries, sampled_entries
from holdfast.core.progress import Progress
from holdfast.core.progress import stages as bar_stages
from holdfast.core.run import Run, run

# The stages after the first: (part of the step size, part of the ridge). Without noise first, then with less bias.
ANNEALING = ((1 / 4, 1.0), (1 / 4, 0.3), (1 / 4, 0.1), (1 / 4, 0.01), (1 / 16, 0.001))
# A stage of the annealing is this share of the first stage.
ANNEALED_SHARE = 0.3
# Records in the first stage, and in each other one.
RECORDS, ANNEALED_RECORDS = 50, 15
# Runs that one compiled program holds: folds, ridges and restarts are divided into as many as needed.
SLAB = 4
# Power iterations for the largest singular value of the data, which is needed to a few percent.
ITERATIONS = 50


def threshold_ridge(singular_value: float, depth: int, shape: tuple[int, int]) -> float:
    """The ridge at which a singular value of the data is lost.

        x = (q c)^(1/(1+q)) (1 + 1/q),    q = 1 - 2/L,  c = 2 h w lambda,    solved for lambda; x = c for L = 2

    Args:
        singular_value: x.
        depth: L, at least 2.
        shape: (h, w).

    Example, at depth 2 the penalty is the nuclear norm, which takes c off every singular value:
        >>> threshold_ridge(3.0, 2, (10, 10))
        0.015
    """
    power = 1 - 2 / depth
    reach = singular_value if depth == 2 else (singular_value / (1 + 1 / power)) ** (1 + power) / power
    return float(reach / (2 * shape[0] * shape[1]))


def stable_step_size(singular_value: float, depth: int, shape: tuple[int, int], batch_size: int) -> float:
    """The step size beyond which single entries make layers of this size unstable, for incoherent singular vectors.

        eta = m / (L x^(2 - 2/L) (1/h + 1/w))

    The squared gradient of an entry with respect to all layers is about L x^(2 - 2/L) (1/h + 1/w) / 2, and a batch of m
    divides its fluctuation by m. Measured on random matrices: runs are stable at 1 and diverge at 2 times this.

    Args:
        singular_value: x, the largest of the data.
        depth: L.
        shape: (h, w).
        batch_size: m.
    """
    return batch_size / (depth * singular_value ** (2 - 2 / depth) * (1 / shape[0] + 1 / shape[1]))


def largest_singular_value(observations: Observations) -> float:
    """The largest singular value of the observed values, 0 elsewhere, divided by the share that is observed."""
    rows, columns, values, (height, width) = observations
    v: np.ndarray = np.random.default_rng(0).standard_normal(width)
    size = 0.0
    for _ in range(ITERATIONS):
        norm = float(np.linalg.norm(v))
        if norm == 0:
            return 0.0
        u = np.bincount(rows, values * v[columns] / norm, minlength=height)
        v = np.bincount(columns, values * u[rows], minlength=width)
        size = float(np.linalg.norm(u))
    return size * height * width / len(values)


class Trained(NamedTuple):
    """Factors of the fitted matrices of several runs after each stage, and their singular values on the way.

    Attributes:
        factors: for each stage, (left, right): (runs, height, width of the network), (runs, width, ...).
        steps: (records,), over all stages.
        singular_values: (runs, records, width of the network), of the fitted matrices.
        norms: for each stage, (runs,), the squared norm of all layers.
        diverged: (runs,), whether a run left the finite region.
    """

    factors: list[tuple[np.ndarray, np.ndarray]]
    steps: np.ndarray
    singular_values: np.ndarray
    norms: list[np.ndarray]
    diverged: np.ndarray


class Assignment(NamedTuple):
    """What one run fits, and how.

    Attributes:
        fold: rows and columns are the same in all runs.
        ridge: lambda.
        seed: of the start and of the entries that are drawn.
    """

    fold: Fold
    ridge: float
    seed: int


def anneal(
    assignments: list[Assignment],
    *,
    depth: int,
    width: int,
    step_size: float,
    start: float,
    batch_size: int,
    steps: int,
    stages: int,
    record: bool = False,
    progress: Progress | None = None,
) -> Trained:
    """SGD with weight decay, then stages with smaller steps and ridges, one run for each assignment.

    Arrays are padded to rounded shapes, so that tables of similar size share one compiled program, and so do selection
    and final fit: what is held out is an argument of a run.

    Args:
        assignments: one for each run.
        depth: L.
        width: of the hidden layers.
        step_size: eta of the first stage.
        start: singular values of the product of the layers at the start.
        batch_size: m.
        steps: of the first stage.
        stages: how many stages of the annealing follow.
        record: whether singular values are recorded within the stages.
        progress: called with (steps done, steps in all).
    """
    observations, count = assignments[0].fold.observations, len(assignments)
    shape, length = observations.shape, rounded(len(observations.rows))
    padding = (0, length - len(observations.rows))
    lists = tuple(np.pad(part.astype(np.int32), padding) for part in (observations.rows, observations.columns))
    layers = _starts(assignments, depth, width, start ** (1 / depth))
    folds = [each.fold for each in assignments]
    values = np.stack([np.pad(fold.observations.values.astype(np.float32), padding) for fold in folds])
    begin, held_out = np.array([(fold.begin, fold.end - fold.begin) for fold in folds], np.int32).T
    seen = (values, np.full(count, len(observations.rows), np.int32), begin, held_out)
    ridges, seeds = np.array([each.ridge for each in assignments]), np.array([each.seed for each in assignments])
    factors, norms, taken, spectra, diverged, done = [], [], [], [], np.zeros(count, bool), 0
    lengths = [steps] + [max(1, round(ANNEALED_SHARE * steps))] * stages
    reports = bar_stages(progress, lengths)
    for stage, (step_part, ridge_part) in enumerate([(1.0, 1.0), *ANNEALING[:stages]]):
        length = lengths[stage]
        every = max(1, length // (RECORDS if stage == 0 else ANNEALED_RECORDS)) if record else length
        parameters: dict[str, Any] = {
            "seen": seen,
            "layers": layers,
            "step_size": np.full(count, step_size * step_part, np.float32),
            "ridge": (ridges * ridge_part).astype(np.float32),
        }
        # A stage has random numbers of its own.
        records = run(
            _EntryRun(batch_size), lists, parameters, seeds + 1009 * stage, steps=length, every=every,
            slab=min(SLAB, count), progress=reports[stage],
        )  # fmt: skip
        recorded: Any = records.values["layers"]
        layers = tuple(layer[:, -1] for layer in recorded)
        diverged |= records.diverged_at >= 0
        factors.append(_factors(layers, shape))
        norms.append(sum(np.square(layer.astype(float)).sum((-2, -1)) for layer in layers))
        first = 0 if stage == 0 else 1  # the first record of a later stage is the last of the one before
        taken.append(done + records.steps[first:])
        spectra.append(balanced_factors(*_factors(recorded, shape))[1][:, first:])
        done += length
    return Trained(factors, np.concatenate(taken), np.concatenate(spectra, 1), norms, diverged)


def rounded(size: int) -> int:
    """The next multiple of a quarter of the power of two below: at most a quarter more than needed."""
    unit = max(4, (1 << (size.bit_length() - 1)) // 4)
    return -(-size // unit) * unit


@dataclass(frozen=True)
class _EntryRun:
    """Makes one run; equal builders are compiled once."""

    batch_size: int

    def __call__(self, lists: tuple[jax.Array, jax.Array], parameters: dict[str, Any]) -> Run:
        gradient = sampled_entries(ObservedEntries(*lists, *parameters["seen"]), self.batch_size)
        algorithm = deep_linear(gradient, parameters["layers"], parameters["step_size"], parameters["ridge"])
        return Run(algorithm, lambda layers: {"layers": layers})


def _starts(assignments: list[Assignment], depth: int, width: int, init_scale: float) -> tuple[np.ndarray, ...]:
    """Random rotations, 0 for rows and columns of which a run sees nothing: what is fitted there would be the start."""
    runs = []
    for fold, _, seed in assignments:
        seen = fold.training
        height, breadth = seen.shape
        first, *inner, last = orthogonal_layers((breadth, *(width,) * (depth - 1), height), init_scale, seed)
        first = first * (np.bincount(seen.columns, minlength=breadth) > 0)
        last = last * (np.bincount(seen.rows, minlength=height) > 0)[:, None]
        first = np.pad(first, ((0, 0), (0, rounded(breadth) - breadth)))
        last = np.pad(last, ((0, rounded(height) - height), (0, 0)))
        runs.append((first, *inner, last))
    return tuple(np.stack(layer).astype(np.float32) for layer in zip(*runs, strict=True))


def _factors(layers: tuple[np.ndarray, ...], shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """left, right with left @ right^T = W_L ... W_1, in double precision and without the padding."""
    left = layers[-1][..., : shape[0], :].astype(float)
    for layer in reversed(layers[1:-1]):
        left = left @ layer
    return left, layers[0][..., : shape[1]].astype(float).swapaxes(-1, -2)
