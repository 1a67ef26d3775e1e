"""Multi-environment matrix sensing, y = <X, A* + A(e)>: with directions of one's choice, or those of a network."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.validation import require
from holdfast.sensing.environments import Environments, FiniteEnvironments


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MatrixSensing:
    """The signal A* that all environments share and the law of the signal A(e) that is different in each.

    A* = U* diag(invariant_spectrum) U*^T,   A(e) = V* S(e) V*^T,   S(e) ~ environments

    Attributes:
        invariant_basis: U*, (dimension, invariant_rank), orthonormal columns.
        invariant_spectrum: eigenvalues of A*, (invariant_rank,).
        spurious_basis: V*, (dimension, spurious_rank), orthonormal columns.
        environments: the law of S(e).

    Reference: Xu, Gu and Fang (NeurIPS 2024), eq. 1 and Assumption 1.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> (problem.invariant_matrix + problem.mean_spurious_matrix).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    invariant_basis: jax.Array
    invariant_spectrum: jax.Array
    spurious_basis: jax.Array
    environments: Environments

    @property
    def dimension(self) -> int:
        """The size d of the matrices."""
        return self.invariant_basis.shape[0]

    @property
    def invariant_rank(self) -> int:
        """The rank r1 of A*."""
        return self.invariant_basis.shape[1]

    @property
    def spurious_rank(self) -> int:
        """The rank r2 of A(e)."""
        return self.spurious_basis.shape[1]

    @property
    def invariant_matrix(self) -> jax.Array:
        """The invariant signal A*."""
        return (self.invariant_basis * self.invariant_spectrum) @ self.invariant_basis.T

    @property
    def mean_spurious_matrix(self) -> jax.Array:
        """The mean E A(e) of the spurious signal."""
        return self.spurious_matrix(self.environments.mean)

    def spurious_matrix(self, strength: jax.Array) -> jax.Array:
        """A(e) = V* S(e) V*^T for the strength matrix S(e)."""
        return self.spurious_basis @ strength @ self.spurious_basis.T


def matrix_sensing(
    frame: ArrayLike,
    invariant_rank: int,
    environments: Environments,
    *,
    overlap: ArrayLike = 0.0,
    condition_number: ArrayLike = 1.0,
) -> MatrixSensing:
    """Matrix sensing on the directions of `frame`, with a chosen overlap of the two subspaces.

    The first `invariant_rank` vectors of the frame span U*. Spurious vector number a is
    overlap * u_a + sqrt(1 - overlap^2) * n_a with n_a the a-th remaining vector of the frame, for as many a
    as U* has vectors, so ||U*^T V*|| = overlap exactly and V* stays orthonormal.

    Args:
        frame: (dimension, invariant_rank + spurious_rank), orthonormal columns; see `orthonormal_frame`.
        invariant_rank: r1.
        environments: the law of S(e); its rank is r2.
        overlap: eps1 of Assumption 1, in [0, 1].
        condition_number: kappa of A*; eigenvalues fall geometrically from 1 to 1 / kappa (Theorem 8).

    Example:
        >>> from holdfast.core.linear_algebra import orthonormal_frame
        >>> from holdfast.sensing.environments import two_point
        >>> problem = matrix_sensing(orthonormal_frame(8, 3), 2, two_point(1.0, 6.0), overlap=0.25)
        >>> float(jnp.linalg.norm(problem.invariant_basis.T @ problem.spurious_basis, 2).round(6))
        0.25
    """
    frame = jnp.asarray(frame)
    spurious_rank = environments.rank
    columns = f"invariant_rank + spurious_rank = {invariant_rank} + {spurious_rank} columns"
    fits = invariant_rank >= 1 and invariant_rank + spurious_rank == frame.shape[1] <= frame.shape[0]
    require(fits, f"frame must have {columns} and at least as many rows", f"shape {frame.shape}")
    proper = isinstance(overlap, jax.core.Tracer) or 0 <= np.asarray(overlap) <= 1
    require(bool(proper), "overlap must be in [0, 1]", overlap)
    invariant, rest = frame[:, :invariant_rank], frame[:, invariant_rank:]
    partners = min(invariant_rank, spurious_rank)
    tilted = overlap * invariant[:, :partners] + jnp.sqrt(1 - jnp.square(overlap)) * rest[:, :partners]
    exponents = np.linspace(0, 1, invariant_rank)
    spectrum = jnp.asarray(condition_number, frame.dtype) ** -exponents
    return MatrixSensing(
        invariant, spectrum.astype(frame.dtype), jnp.concatenate([tilted, rest[:, partners:]], 1), environments
    )


def quadratic_network(
    invariant_neurons: ArrayLike, spurious_neurons: ArrayLike, environments: FiniteEnvironments
) -> MatrixSensing:
    """The matrix sensing problem of a network whose first neurons stay and whose others change.

        y = sum_{j <= r1} (a_j^T x)^2 + sum_{j > r1} s_j(e) (a_j^T x)^2 = <x x^T, A* + A(e)>

    The neurons need not be orthogonal. A* is brought to its eigenvectors and A(e) = B diag(s) B^T to the orthonormal
    basis V* of B = V* R, where its strength matrix is R diag(s) R^T.

    Args:
        invariant_neurons: (dimension, r1), the a_j that all environments share.
        spurious_neurons: (dimension, r2), those whose weights change.
        environments: the law of diag(s).

    Reference: Xu, Gu and Fang (NeurIPS 2024), Example 1 and eq. 119, 120.

    Example, y = (2 x_1)^2 + s(e) (3 x_2)^2:
        >>> from holdfast.sensing.environments import table
        >>> problem = quadratic_network([[2.0], [0.0]], [[0.0], [3.0]], table([-1.0, 1.0]))
        >>> problem.invariant_matrix.tolist(), problem.environments.strengths.ravel().tolist()
        ([[4.0, 0.0], [0.0, 0.0]], [-9.0, 9.0])
    """
    invariant = np.asarray(invariant_neurons)
    left, singular_values, _ = np.linalg.svd(invariant, full_matrices=False)
    basis, mixing = np.linalg.qr(np.asarray(spurious_neurons))
    strengths = jnp.einsum("ij,ejk,lk->eil", mixing, environments.strengths, mixing)
    return MatrixSensing(
        jnp.asarray(left),
        jnp.asarray(np.square(singular_values)),
        jnp.asarray(basis),
        FiniteEnvironments(strengths, environments.probabilities),
    )


def random_neurons(dimension: int, count: int, seed: int = 0) -> np.ndarray:
    """`count` neurons a_j ~ N(0, I / d), nearly orthonormal in high dimension, one a column (Theorem 7).

    Example:
        >>> neurons = random_neurons(dimension=2000, count=3)
        >>> (neurons.T @ neurons).round(1).diagonal().tolist()
        [1.0, 1.0, 1.0]
    """
    return np.random.default_rng(seed).standard_normal((dimension, count)) / np.sqrt(dimension)
