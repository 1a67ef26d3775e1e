"""Both papers once more, in plain NumPy: written from the papers, importing nothing from the library.

Arrays have a leading axis of runs. Whatever is random takes a NumPy generator. `test_recomputation.py` compares what is
computed here with what the library computes, at other seeds.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

Random = np.random.Generator


class World(NamedTuple):
    """A* = U* diag(spectrum) U*^T and A(e) = s(e) V* V*^T; both strengths s(e) are equally likely."""

    invariant: np.ndarray
    spectrum: np.ndarray
    spurious: np.ndarray
    strengths: tuple[float, float]

    @property
    def target(self) -> np.ndarray:
        """The matrix A*."""
        return self.invariant * self.spectrum @ self.invariant.T

    @property
    def spurious_projection(self) -> np.ndarray:
        """The matrix V* V*^T."""
        return self.spurious @ self.spurious.T

    @property
    def pooled_target(self) -> np.ndarray:
        """The matrix A* + E A(e)."""
        return self.target + np.mean(self.strengths) * self.spurious_projection


def world(random: Random, dimension: int, spectrum: list[float], rank: int, bias: float, spread: float) -> World:
    """Random orthogonal subspaces, and strengths s - M and s + M."""
    frame = np.linalg.qr(random.standard_normal((dimension, len(spectrum) + rank)))[0]
    return World(
        frame[:, : len(spectrum)], np.array(spectrum), frame[:, len(spectrum) :], (bias - spread, bias + spread)
    )


# Who is in a batch: (random, runs, m) -> how many of the m samples come from each of the two environments.
Batch = Callable[[Random, int, int], np.ndarray]


def one_environment(random: Random, runs: int, size: int) -> np.ndarray:
    """HeteroSGD: all samples from one environment, by the toss of a coin."""
    first = size * random.integers(0, 2, runs)
    return np.stack([first, size - first], 1)


def one_per_sample(random: Random, runs: int, size: int) -> np.ndarray:
    """PooledSGD: a coin for every sample."""
    first = random.binomial(size, 0.5, runs)
    return np.stack([first, size - first], 1)


def half_of_each(random: Random, runs: int, size: int) -> np.ndarray:
    """PooledGD: all of the data, half of it from each environment."""
    return np.full((runs, 2), size // 2)


# How a batch is seen: (random, residuals (runs, 2, d, d), counts (runs, 2), symmetric) -> G, (runs, d, d).
Gradient = Callable[[Random, np.ndarray, np.ndarray, bool], np.ndarray]


def explicit(random: Random, residuals: np.ndarray, counts: np.ndarray, symmetric: bool) -> np.ndarray:
    """G = (1/m) sum_i <X_i, W_i> X_i with every X_i drawn: independent N(0, 1) entries.

    symmetric: the gradient of eq. 2, in which X + X^T stands where eq. 3 has X, divided by the 2 that eq. 3 drops.
    """
    runs, _, dimension, _ = residuals.shape
    found = np.zeros((runs, dimension**2))
    for run in range(runs):
        for residual, count in zip(residuals[run], counts[run], strict=True):
            measurements = random.standard_normal((count, dimension**2))
            found[run] += measurements.T @ (measurements @ residual.ravel())
    gradient = (found / counts.sum(1, keepdims=True)).reshape(runs, dimension, dimension)
    return (gradient + gradient.swapaxes(1, 2)) / 2 if symmetric else gradient


def by_law(random: Random, residuals: np.ndarray, counts: np.ndarray, symmetric: bool) -> np.ndarray:
    """Equal in law to `explicit`: X = g W' + rest, where W' = W / ||W|| and g is independent of the rest.

    sum_i <X_i, W> X_i = ||W|| (sum g_i^2 W' + sum g_i rest_i), and given all g the last sum is |g| times one rest.
    """
    sizes = np.maximum(np.linalg.norm(residuals, axis=(2, 3), keepdims=True), 1e-300)
    directions = residuals / sizes
    squares = np.where(counts > 0, random.chisquare(np.maximum(counts, 1)), 0.0)[:, :, None, None]
    rest = random.standard_normal(residuals.shape)
    if symmetric:
        rest = (rest + rest.swapaxes(2, 3)) / 2
    rest -= (rest * directions).sum((2, 3), keepdims=True) * directions
    sums = sizes * (squares * directions + np.sqrt(squares) * rest)
    return sums.sum(1) / counts.sum(1)[:, None, None]


def infinite_batch(random: Random, residuals: np.ndarray, counts: np.ndarray, symmetric: bool) -> np.ndarray:
    """The mean of G: no sampling error."""
    return np.einsum("re,reij->rij", counts / counts.sum(1, keepdims=True), residuals)


def sense(
    random: Random,
    world: World,
    runs: int,
    *,
    step_size: float,
    init_scale: float,
    steps: int,
    size: int,
    batch: Batch = one_environment,
    gradient: Gradient = by_law,
    symmetric: bool = True,
    observe: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """U <- (I - eta G) U from U = alpha I; what is observed of U at every step, (steps + 1, runs, ...).

    A run beyond 10^4 has diverged: it stays where it is.
    """
    dimension = len(world.invariant)
    factor = np.tile(init_scale * np.eye(dimension), (runs, 1, 1))
    signals = np.stack([world.target + strength * world.spurious_projection for strength in world.strengths])
    seen = [observe(factor)]
    for _ in range(steps):
        residuals = (factor @ factor.swapaxes(1, 2))[:, None] - signals
        moved = factor - step_size * gradient(random, residuals, batch(random, runs, size), symmetric) @ factor
        alive = np.square(factor).sum((1, 2)) < 1e8
        factor = np.where(alive[:, None, None], moved, factor)
        seen.append(observe(factor))
    return np.array(seen)


def share(factor: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The mean of |U^T v|^2 over the columns v of a basis."""
    return np.square(factor.swapaxes(1, 2) @ basis).sum((1, 2)) / basis.shape[1]


def distance(factor: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """||U U^T - goal||_F."""
    return np.linalg.norm(factor @ factor.swapaxes(1, 2) - goal, axis=(1, 2))


def quadratic_network(
    random: Random, world: World, runs: int, *, step_size: float, init_scale: float, steps: int, size: int
) -> np.ndarray:
    """Algorithm 4 with the mean of y as tau: U <- (I - eta G) U / (1 - eta (||U||^2 - tau)); the last U of each run.

    G = (1/m) sum_i (yhat_i - y_i) x_i x_i^T, with x ~ N(0, I) and y = x^T (A* + A(e)) x.
    """
    dimension = len(world.invariant)
    factor = np.tile(init_scale * np.eye(dimension), (runs, 1, 1))
    for _ in range(steps):
        for run in range(runs):
            strength = world.strengths[random.integers(0, 2)]
            inputs = random.standard_normal((size, dimension))
            labels = np.square(inputs @ world.invariant) @ world.spectrum
            labels += strength * np.square(inputs @ world.spurious).sum(1)
            errors = np.square(inputs @ factor[run]).sum(1) - labels
            moved = factor[run] - step_size * (inputs.T * errors) @ (inputs @ factor[run]) / size
            factor[run] = moved / (1 - step_size * (np.square(factor[run]).sum() - labels.mean()))
    return factor


def rotations(random: Random, runs: int, widths: tuple[int, ...]) -> list[np.ndarray]:
    """Layers whose singular values are all one: corners of random rotations."""
    layers = []
    for columns, rows in pairwise(widths):
        frames = np.linalg.qr(random.standard_normal((runs, max(rows, columns), max(rows, columns))))[0]
        layers.append(frames[:, :rows, :columns])
    return layers


def complete(
    random: Random, layers: list[np.ndarray], observed: dict[tuple[int, int], float], *, step_size: float, ridge: float,
    steps: int, every: int,
) -> np.ndarray:  # fmt: skip
    """W <- (1 - 2 eta lambda) W - eta (A_ij - A*_ij) dA_ij/dW for three layers; singular values of A at every record.

    The entry (i, j) is drawn anew in each step and for each run.
    """
    rows, columns = np.array(list(observed)).T
    targets = np.array(list(observed.values()))
    first, second, third = (layer.copy() for layer in layers)
    runs = np.arange(len(first))
    records = [np.linalg.svd(third @ second @ first, compute_uv=False)]
    for step in range(1, steps + 1):
        drawn = random.integers(0, len(targets), len(runs))
        below = first[runs, :, columns[drawn]]  # W_1 e_j
        above = third[runs, rows[drawn]]  # e_i^T W_3
        middle, back = np.einsum("rab,rb->ra", second, below), np.einsum("ra,rab->rb", above, second)
        error = step_size * ((above * middle).sum(1) - targets[drawn])
        keep = 1 - 2 * step_size * ridge
        first, second, third = (
            keep * first,
            keep * second - (error[:, None] * above)[:, :, None] * below[:, None],
            keep * third,
        )
        first[runs, :, columns[drawn]] -= error[:, None] * back
        third[runs, rows[drawn]] -= error[:, None] * middle
        if step % every == 0:
            records.append(np.linalg.svd(third @ second @ first, compute_uv=False))
    return np.stack(records, 1)


def furthest_apart(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference of two empirical distribution functions (Kolmogorov and Smirnov)."""
    marks = np.sort(np.concatenate([first, second]))
    steps = [np.searchsorted(np.sort(values), marks, side="right") / len(values) for values in (first, second)]
    return float(np.abs(steps[0] - steps[1]).max())
