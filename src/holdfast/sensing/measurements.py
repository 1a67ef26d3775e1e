"""Explicit measurements: a fixed data set, packed once so that a step can stream it in blocks."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.validation import require
from holdfast.sensing.ensembles import Ensemble
from holdfast.sensing.environments import finitely_many
from holdfast.sensing.problem import MatrixSensing

__all__ = ["FixedDataSet", "collect", "fixed_data_set"]
__dir__ = __all__.copy

# A block is what one iteration of a streaming loop holds. It is large enough that XLA shares its two products among the
# cores, so that a single run uses them all (with less than 2.4 MiB it does not), and small enough to stay in the caches
# between the products.
BLOCK_BYTES = 3 * 2**20
# Rows start on a cache line: the products over unaligned rows are a fifth slower.
ROW_MULTIPLE = 64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FixedDataSet:
    """Measurements X_i as packed coordinates, responses y_i and environment numbers e_i, sorted by environment.

    Attributes:
        measurements: (blocks, rows, coordinates), padded with zero rows and zero coordinates.
        responses: (blocks * rows,), zero where padded.
        environment: (blocks * rows,), -1 where padded.
        counts: how many measurements each environment has.
        dimension: d.

    Example:
        >>> data = fixed_data_set(np.ones((3, 4)), np.array([5.0, 6.0, 7.0]), np.array([1, 0, 1]), dimension=2)
        >>> data.counts, data.responses.tolist()
        ((1, 2), [6.0, 5.0, 7.0])
    """

    measurements: jax.Array
    responses: jax.Array
    environment: jax.Array
    counts: tuple[int, ...] = field(metadata={"static": True})
    dimension: int = field(metadata={"static": True})

    @property
    def count(self) -> int:
        """Number of measurements."""
        return sum(self.counts)


def fixed_data_set(
    measurements: np.ndarray, responses: np.ndarray, environment: np.ndarray, dimension: int
) -> FixedDataSet:
    """A `FixedDataSet` from packed measurements (n, coordinates), responses (n,) and environment numbers (n,).

    Example:
        >>> data = fixed_data_set(np.eye(4), np.arange(4.0), np.array([0, 0, 1, 1]), dimension=2)
        >>> data.count, data.counts
        (4, (2, 2))
    """
    environment = np.asarray(environment)
    equal = len(measurements) == len(responses) == len(environment) > 0
    contract = "measurements, responses and environment must have the same length, at least 1"
    require(equal, contract, f"{len(measurements)}, {len(responses)} and {len(environment)}")
    counts = tuple(np.bincount(environment).tolist())
    require(0 not in counts, f"environment must use every number from 0 to {len(counts) - 1}", f"counts {counts}")
    order = np.argsort(environment, kind="stable")
    count, coordinates = measurements.shape
    width = -(-coordinates // ROW_MULTIPLE) * ROW_MULTIPLE
    rows = min(max(1, BLOCK_BYTES // (width * measurements.dtype.itemsize)), count)
    blocks = -(-count // rows)
    packed = np.zeros((blocks * rows, width), measurements.dtype)
    packed[:count, :coordinates] = measurements if (order == np.arange(count)).all() else measurements[order]
    padding = (0, blocks * rows - count)
    return FixedDataSet(
        jnp.asarray(packed.reshape(blocks, rows, width)),
        jnp.asarray(np.pad(np.asarray(responses, measurements.dtype)[order], padding)),
        jnp.asarray(np.pad(environment[order].astype(np.int32), padding, constant_values=-1)),
        counts,
        dimension,
    )


def collect(
    problem: MatrixSensing,
    ensemble: Ensemble,
    samples_per_environment: int,
    *,
    noise_variance: float = 0.0,
    seed: int = 0,
) -> FixedDataSet:
    """Measure a problem with finitely many environments: y = <X, A* + A(e)> + noise, drawn from `seed`.

    Example:
        >>> from holdfast.core.linear_algebra import orthonormal_frame
        >>> from holdfast.sensing.ensembles import gaussian
        >>> from holdfast.sensing.environments import two_point
        >>> from holdfast.sensing import matrix_sensing
        >>> problem = matrix_sensing(orthonormal_frame(6, 2), 1, two_point(1.0, 6.0))
        >>> collect(problem, gaussian, samples_per_environment=50).counts
        (50, 50)
    """
    environments = finitely_many(problem.environments, "a fixed data set needs finitely many environments")
    probabilities = np.asarray(environments.probabilities)
    contract = "probabilities must be equal for a fixed data set with equally many measurements of each environment"
    require(np.allclose(probabilities, 1 / environments.count), contract, probabilities.tolist())
    dtype = np.dtype(problem.invariant_basis.dtype)
    random = np.random.default_rng([seed, 1])  # not the stream that the directions of the problem are drawn from
    coordinates = ensemble.size(problem.dimension)
    measurements = random.standard_normal((environments.count * samples_per_environment, coordinates), dtype)
    environment = np.repeat(np.arange(environments.count), samples_per_environment)
    responses = np.sqrt(noise_variance) * random.standard_normal(len(environment))
    for number, strength in enumerate(environments.strengths):
        signal = np.asarray(ensemble.pack(problem.invariant_matrix + problem.spurious_matrix(strength)))
        rows = environment == number
        responses[rows] += measurements[rows] @ signal
    return fixed_data_set(measurements, responses, environment, problem.dimension)
