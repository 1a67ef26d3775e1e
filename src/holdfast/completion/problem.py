"""Matrix completion: some entries of a matrix are observed, the others are to be predicted."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.validation import require


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MatrixCompletion:
    """A matrix A*, and what is observed of it.

    The observed entries are represented twice: as a list for algorithms that see one at a time, and as a mask for those
    that see all of them.

    Attributes:
        rows: (N,), row i of each observed entry.
        columns: (N,), its column j.
        values: (N,), its observed value, A*_ij and perhaps noise.
        observed: (height, width), 1 where an entry was observed and 0 elsewhere.
        targets: (height, width), the observed values, 0 elsewhere.
        truth: A*, (height, width).

    Reference: Wang and Jacot (ICLR 2024), who write I for the observed entries and N for their number.

    Example:
        >>> problem = two_by_two(0.5)
        >>> problem.shape, problem.count, problem.test_error(problem.truth).item()
        ((2, 2), 3, 0.0)
    """

    rows: jax.Array
    columns: jax.Array
    values: jax.Array
    observed: jax.Array
    targets: jax.Array
    truth: jax.Array

    @property
    def count(self) -> int:
        """The number N of observed entries."""
        return self.rows.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of A*."""
        height, width = self.truth.shape
        return height, width

    def train_error(self, fitted: ArrayLike) -> np.ndarray:
        """The mean square over observed entries of fitted - observed value; 0 if none was observed."""
        return _mean_square(np.asarray(fitted, float) - np.asarray(self.targets), np.asarray(self.observed, float))

    def test_error(self, fitted: ArrayLike) -> np.ndarray:
        """The mean square over the entries that were not observed of fitted - A*; 0 if all were observed."""
        return _mean_square(np.asarray(fitted, float) - np.asarray(self.truth), 1 - np.asarray(self.observed, float))

    @property
    def scale(self) -> float:
        """The largest singular value of the observed values, with 0 for the others; 1 if all of it is 0."""
        return float(np.linalg.norm(np.asarray(self.targets, float), 2)) or 1.0


def matrix_completion(
    truth: ArrayLike, observed: ArrayLike, *, noise_variance: float = 0.0, seed: int = 0
) -> MatrixCompletion:
    """Completion of any matrix from any of its entries, seen exactly or with noise.

    Args:
        truth: A*.
        observed: of the same shape, true where an entry is seen. All may be, or none.
        noise_variance: of what is added, once, to each entry that is seen.
        seed: of this noise.

    Example:
        >>> problem = matrix_completion([[1.0, 2.0], [3.0, 6.0]], [[True, True], [True, False]])
        >>> problem.count, float(problem.test_error(np.zeros((2, 2))))
        (3, 36.0)
    """
    whole, mask = np.asarray(truth, float), np.asarray(observed, bool)
    matrix = whole.ndim == 2 and whole.size > 0
    require(matrix, "truth must be a matrix with at least one entry", f"shape {whole.shape}")
    require(mask.shape == whole.shape, f"observed must have the shape {whole.shape} of truth", mask.shape)
    require(noise_variance >= 0, "noise_variance must be a number of at least 0", repr(noise_variance))
    noise = np.sqrt(noise_variance) * np.random.default_rng(seed).standard_normal(whole.shape)
    targets = np.where(mask, whole + noise, 0.0)
    rows, columns = np.nonzero(mask)
    parts = (targets[mask], mask, targets, whole)
    # Cast by NumPy: jax would compile a program for each shape.
    floats = [part.astype(jnp.result_type(float)) for part in parts]
    return MatrixCompletion(*map(jnp.asarray, (rows.astype(np.int32), columns.astype(np.int32), *floats)))


def two_by_two(epsilon: float) -> MatrixCompletion:
    """The example of the slides: three entries of a 2 x 2 matrix of rank one.

        A* = [[1, 1 / epsilon], [epsilon, 1]],    the entry 1 / epsilon is missing

    Args:
        epsilon: the smaller it is, the further the truth is from every matrix that fits with small entries.

    Example:
        >>> two_by_two(0.25).truth.tolist()
        [[1.0, 4.0], [0.25, 1.0]]
    """
    require(0 < epsilon < np.inf, "epsilon must be a positive number", repr(epsilon))
    return matrix_completion([[1.0, 1 / epsilon], [epsilon, 1.0]], [[True, False], [True, True]])


def random_low_rank(
    height: int, width: int, rank: int, share: float, *, noise_variance: float = 0.0, seed: int = 0
) -> MatrixCompletion:
    """A random matrix of a given rank, a random share of whose entries is observed.

        A* = G H^T / sqrt(rank),    entries of G and H independent N(0, 1), so those of A* have variance one

    Args:
        height: number of rows.
        width: number of columns.
        rank: of A*, at most the smaller of the two.
        share: of the entries that are observed, rounded to a whole number of them.
        noise_variance: of the observed values.
        seed: of the matrix, of which entries are observed, and of the noise.

    Example:
        >>> problem = random_low_rank(20, 20, 3, 0.4)
        >>> problem.count, int(np.linalg.matrix_rank(problem.truth, 1e-4))
        (160, 3)
    """
    smaller = min(height, width)
    require(1 <= rank <= smaller, f"rank must be from 1 to the smaller side {smaller}", repr(rank))
    require(0 <= share <= 1, "share must be from 0 to 1", repr(share))
    random = np.random.default_rng(seed)
    truth = random.standard_normal((height, rank)) @ random.standard_normal((rank, width)) / np.sqrt(rank)
    chosen = random.permutation(height * width) < round(share * height * width)
    return matrix_completion(truth, chosen.reshape(height, width), noise_variance=noise_variance, seed=seed)


def _mean_square(errors: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean square over the entries in the mask; 0 for an empty mask."""
    return (mask * np.square(errors)).sum((-2, -1)) / max(mask.sum(), 1)
