"""The washing-out on a table, as runs of the common loop.

jax is imported when something runs: most fits decide without.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.algorithms.losses import logistic, squared
from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.algorithms.losses.slopes import Slopes, tolerant
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.moments import StandardizedMoments

if TYPE_CHECKING:
    import jax

    from holdfast.algorithms.hadamard import Hadamard
    from holdfast.core.run import Run, RunBuilder

# The start is small, so that what does not grow counts for nothing, but not so small that growing takes most of a run.
INIT_SCALE = 0.03
# A coefficient survived if it ended at ten times the square of its start, 0.9 % of a standard deviation.
SURVIVED = 10 * INIT_SCALE**2
# Visits of environments in a run, over all of them; a sweep visits each once.
VISITS = 2400
FEWEST_SWEEPS = 40
FEW_ENVIRONMENTS = 4  # with fewer, a run is as long as with these
RECORDS = 40
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
        sweeps: steps of a run.
        slab: runs in a compiled program; whole slabs are run, so that any number of runs is the same program.
    """

    build: "RunBuilder"
    shared: Mapping[str, Any]
    dimension: int
    environments: int
    sweeps: int
    slab: int = 8


class WashSettings(NamedTuple):
    """The numbers that decide what is washed out: eta, k and theta of `holdfast.algorithms.hadamard`."""

    step_size: float
    amplification: float
    scaling: float = 0.0

    @property
    def compared(self) -> str:
        """What is compared between environments, in words."""
        return "effects" if self.scaling else "gradients"


class CoefficientPaths(NamedTuple):
    """Coefficients over time.

    Attributes:
        sweeps: (records,), sweeps done.
        coefficients: (runs, records, features).
    """

    sweeps: np.ndarray
    coefficients: np.ndarray

    @property
    def final(self) -> np.ndarray:
        """(runs, features), where the runs end up: medians over the last quarter of the records."""
        return np.median(self.coefficients[:, -RECORDS // 4 :], axis=1)

    @property
    def survived(self) -> np.ndarray:
        """(runs, features), what was not washed out and has grown."""
        return np.abs(self.final) > SURVIVED


def squared_program(moments: StandardizedMoments, tolerance: float) -> Program:
    """Least squares, from second moments."""
    environments, dimension = moments.cross.shape
    e, d = _rounded(environments, 2), _rounded(dimension, 8)
    data = (_padded(moments.second, e, d, d), _padded(moments.cross, e, d), _padded(moments.square, e))
    shared = {
        "data": SecondMoments(*data),
        "counts": _padded(moments.counts, e),
        "weights": _padded(moments.weights, e),
        "tolerance": np.float32(tolerance),
    }
    return Program(_squared_run, shared, dimension, environments, _sweeps(environments))


def logistic_program(environments: Sequence[LogisticRows], tolerance: float, seed: int) -> Program:
    """Logistic regression, on rows drawn from each environment."""
    random = np.random.default_rng(seed)
    drawn = [_subsample(rows, random) for rows in environments]
    e, d = _rounded(len(drawn), 2), _rounded(len(drawn[0].columns), 8)
    counts = np.array([rows.weights.sum() for rows in environments])
    shared = {
        "data": logistic.padded(drawn, e, d, _rounded(max(len(rows.labels) for rows in drawn), 32)),
        "weights": _padded(counts / counts.sum(), e),
        "tolerance": np.float32(tolerance),
    }
    return Program(_logistic_run, shared, len(drawn[0].columns), len(drawn), _sweeps(len(drawn)))


def wash(
    program: Program, settings: list[WashSettings], critical: float, n_runs: int, seed: int
) -> list[CoefficientPaths]:
    """Run each of several settings with several random orders of the environments.

    Args:
        program: whose runs record "fitted".
        settings: of the runs.
        critical: the variation of an effect that is noise; see `holdfast.algorithms.hadamard`.
        n_runs: of each setting.
        seed: of the runs.
    """
    from holdfast.core.run import run

    count = len(settings) * n_runs
    rows = np.minimum(np.arange(-(-count // program.slab) * program.slab), count - 1) // n_runs
    given = [{**each._asdict(), "critical": critical} for each in settings]
    parameters = {name: np.array([each[name] for each in given], np.float32)[rows] for name in given[0]}
    seeds = np.random.default_rng(seed).integers(0, 2**32, len(rows), dtype=np.uint32)
    every = max(1, program.sweeps // RECORDS)
    records = run(
        program.build, program.shared, parameters, seeds, steps=program.sweeps, every=every, slab=program.slab
    )
    fitted = records.values["fitted"][:count, ..., : program.dimension].astype(float)
    return [CoefficientPaths(records.steps, part) for part in np.split(fitted, len(settings))]


def _sweeps(environments: int) -> int:
    return max(FEWEST_SWEEPS, VISITS // max(environments, FEW_ENVIRONMENTS))


def _observe(state: "Hadamard") -> dict[str, "jax.Array"]:
    return {"fitted": state.coefficients}


def _squared_run(shared: Any, parameters: Any) -> "Run":
    import jax.numpy as jnp

    data = SecondMoments(*map(jnp.asarray, shared["data"]))
    return _run(lambda w, intercept: squared.slopes(data, shared["counts"], w), data.cross.shape[1], shared, parameters)


def _logistic_run(shared: Any, parameters: Any) -> "Run":
    import jax.numpy as jnp

    data = LogisticRows(*map(jnp.asarray, shared["data"]))
    return _run(partial(logistic.slopes, data), data.columns.shape[1], shared, parameters)


def _run(own: "Callable[[jax.Array, jax.Array], Slopes]", dimension: int, shared: Any, parameters: Any) -> "Run":
    import jax.numpy as jnp

    from holdfast.algorithms.hadamard import hadamard
    from holdfast.core.run import Run

    weights = jnp.asarray(shared["weights"])

    def slopes(w: "jax.Array", intercept: "jax.Array") -> Slopes:
        return tolerant(own(w, intercept), weights, w, shared["tolerance"])

    return Run(hadamard(slopes, weights, dimension, init_scale=INIT_SCALE, **parameters), _observe)


def _rounded(size: int, smallest: int) -> int:
    """The next power of two, or multiple of 32 beyond that."""
    power = max(smallest, 1 << (size - 1).bit_length())
    return power if power <= 64 else -(-size // 32) * 32


def _padded(array: np.ndarray, *shape: int) -> np.ndarray:
    out = np.zeros(shape, np.float32)
    out[tuple(slice(0, size) for size in array.shape)] = array
    return out


def _subsample(rows: LogisticRows, random: np.random.Generator) -> LogisticRows:
    if len(rows.labels) <= ROWS_SEEN:
        return rows
    positions = np.sort(random.choice(len(rows.labels), ROWS_SEEN, replace=False))
    return LogisticRows(rows.columns[:, positions], rows.labels[positions], rows.weights[positions])
