"""The washing-out on a table, as runs of the common loop."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.algorithms.hadamard import Hadamard, Slopes, hadamard
from holdfast.core.run import Run, RunBuilder, run
from holdfast.estimators.evidence import BORROWED_ROWS
from holdfast.estimators.moments import Centred

# The start is small, so that what does not grow counts for nothing, but not so small that growing takes most of a run.
INIT_SCALE = 0.03
# A coefficient survived if it ended at ten times the square of its start, 0.9 % of a standard deviation.
SURVIVED = 10 * INIT_SCALE**2
# Visits of environments in a run, over all of them; a sweep visits each once.
VISITS = 2400
FEWEST_SWEEPS = 40
FEW_ENVIRONMENTS = 4  # with fewer, a run is as long as with these
RECORDS = 40
SLAB = 8
# The gradient of a logistic run sees at most this many rows of an environment; the decisions after it see all.
ROWS_SEEN = 512


class Program(NamedTuple):
    """A loss on a table in the form that the loop runs.

    Arrays are padded with zeros to rounded shapes, so that tables of similar size share a compiled program.

    Attributes:
        build: the key of the compile cache.
        shared: arrays, with p_e under "weights".
        dimension: number of features, without the padding.
        environments: number of environments, without the padding.
    """

    build: RunBuilder
    shared: Mapping[str, Any]
    dimension: int
    environments: int

    @property
    def sweeps(self) -> int:
        """Steps of a run."""
        return max(FEWEST_SWEEPS, VISITS // max(self.environments, FEW_ENVIRONMENTS))


class Cell(NamedTuple):
    """The numbers that decide what is washed out: eta, k and theta of `holdfast.algorithms.hadamard`."""

    step_size: float
    amplification: float
    scaling: float


class Paths(NamedTuple):
    """Coefficients over time.

    Attributes:
        sweeps: (records,), sweeps done.
        coefficients: (runs, records, features).
    """

    sweeps: np.ndarray
    coefficients: np.ndarray

    @property
    def final(self) -> np.ndarray:
        """(runs, features), medians over the last quarter of the records."""
        return np.median(self.coefficients[:, -RECORDS // 4 :], axis=1)

    @property
    def survived(self) -> np.ndarray:
        """(runs, features), what was not washed out and has grown."""
        return np.abs(self.final) > SURVIVED


def squared_program(moments: Centred, tolerance: float) -> Program:
    """Least squares, from second moments."""
    environments, dimension = moments.cross.shape
    e, d = _rounded(environments, 2), _rounded(dimension, 8)
    shared = {
        "second": _padded(moments.second, e, d, d),
        "cross": _padded(moments.cross, e, d),
        "square": _padded(moments.square, e),
        "counts": _padded(moments.counts, e),
        "weights": _padded(moments.counts / moments.counts.sum(), e),
        "tolerance": np.float32(tolerance),
    }
    return Program(_build_squared, shared, dimension, environments)


def logistic_program(
    z: np.ndarray, positive: np.ndarray, codes: np.ndarray, row_weights: np.ndarray, tolerance: float, seed: int
) -> Program:
    """Logistic regression, on rows drawn from each environment."""
    random = np.random.default_rng(seed)
    environments, dimension = int(codes.max()) + 1, z.shape[1]
    chosen = [_some(np.flatnonzero(codes == number), random) for number in range(environments)]
    e, d, m = _rounded(environments, 2), _rounded(dimension, 8), _rounded(max(map(len, chosen)), 32)
    rows, labels, sizes = np.zeros((e, m, d), np.float32), np.zeros((e, m), np.float32), np.zeros((e, m), np.float32)
    for number, places in enumerate(chosen):
        rows[number, : len(places), :dimension] = z[places]
        labels[number, : len(places)] = positive[places]
        sizes[number, : len(places)] = row_weights[places]
    totals = np.bincount(codes, row_weights)
    shared = {
        "rows": rows,
        "labels": labels,
        "sizes": sizes,
        "weights": _padded(totals / totals.sum(), e),
        "tolerance": np.float32(tolerance),
    }
    return Program(_build_logistic, shared, dimension, environments)


def wash(program: Program, cells: list[Cell], critical: float, orders: int, seed: int) -> list[Paths]:
    """Run every cell with several random orders of the environments."""
    count = len(cells) * orders
    # whole slabs, so that any number of runs is the same program; what is beyond the count is thrown away
    padded = np.minimum(np.arange(-(-count // SLAB) * SLAB), count - 1) // orders
    parameters = {name: np.array([getattr(cell, name) for cell in cells], np.float32)[padded] for name in Cell._fields}
    parameters["critical"] = np.full(len(padded), critical, np.float32)
    seeds = np.random.default_rng(seed).integers(0, 2**32, len(padded), dtype=np.uint32)
    records = run(
        program.build,
        program.shared,
        parameters,
        seeds,
        steps=program.sweeps,
        every=max(1, program.sweeps // RECORDS),
        slab=SLAB,
    )
    values = records.values["coefficients"][:count, :, : program.dimension].astype(float)
    return [Paths(records.steps, part) for part in np.split(values, len(cells))]


def _observe(state: Hadamard) -> dict[str, jax.Array]:
    return {"coefficients": state.coefficients}


def _experiment(slopes: Any, weights: jax.Array, dimension: int, parameters: Any) -> Run:
    algorithm = hadamard(slopes, weights, dimension, init_scale=INIT_SCALE, **parameters)
    return Run(algorithm, _observe)


def _tolerant(slopes: Slopes, w: jax.Array, weights: jax.Array, tolerance: jax.Array) -> Slopes:
    """As `holdfast.estimators.evidence.tolerant_slopes`."""
    pooled = jnp.maximum(weights @ slopes.curvature, 1e-30)
    allowed = tolerance * (w - (weights @ slopes.gradient) / pooled) * slopes.curvature
    return slopes._replace(variance=slopes.variance + allowed**2)


def _build_squared(shared: Any, parameters: Any) -> Run:
    second, cross, weights = (jnp.asarray(shared[name]) for name in ("second", "cross", "weights"))
    counts = jnp.maximum(shared["counts"], 1e-30)
    diagonal = jnp.einsum("eii->ei", second)

    def slopes(w: jax.Array, intercept: jax.Array) -> Slopes:
        fitted = second @ w
        own = jnp.maximum(shared["square"] - 2 * cross @ w + fitted @ w, 0)
        errors = (counts * own + BORROWED_ROWS * jnp.sum(weights * own)) / (counts + BORROWED_ROWS)
        slopes = Slopes(fitted - cross, jnp.zeros_like(weights), diagonal, (errors / counts)[:, None] * diagonal)
        return _tolerant(slopes, w, weights, shared["tolerance"])

    return _experiment(slopes, weights, cross.shape[1], parameters)


def _build_logistic(shared: Any, parameters: Any) -> Run:
    rows, labels, sizes, weights = (jnp.asarray(shared[name]) for name in ("rows", "labels", "sizes", "weights"))
    totals = jnp.maximum(jnp.sum(sizes, 1), 1e-30)
    shares, squares = sizes / totals[:, None], rows**2

    def slopes(w: jax.Array, intercept: jax.Array) -> Slopes:
        p = jax.nn.sigmoid(rows @ w + intercept)
        gradient = jnp.einsum("em,emd->ed", shares * (p - labels), rows)
        curvature = jnp.einsum("em,emd->ed", shares * p * (1 - p), squares)
        variance = jnp.einsum("em,emd->ed", shares * (p - labels) ** 2, squares) / totals[:, None]
        level = jnp.sum(shares * (p - labels), 1)
        return _tolerant(Slopes(gradient, level, curvature, variance), w, weights, shared["tolerance"])

    return _experiment(slopes, weights, rows.shape[2], parameters)


def _rounded(size: int, smallest: int) -> int:
    """The next power of two, or multiple of 32 beyond that."""
    power = max(smallest, 1 << (size - 1).bit_length())
    return power if power <= 64 else -(-size // 32) * 32


def _padded(array: np.ndarray, *shape: int) -> np.ndarray:
    out = np.zeros(shape, np.float32)
    out[tuple(slice(0, size) for size in array.shape)] = array
    return out


def _some(places: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return places if len(places) <= ROWS_SEEN else np.sort(random.choice(places, ROWS_SEEN, replace=False))
