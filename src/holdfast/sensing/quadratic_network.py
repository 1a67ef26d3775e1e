"""Two-layer networks with quadratic activation: matrix sensing seen through rank-one measurements."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.sensing.environments import FiniteEnvironments
from holdfast.sensing.problem import MatrixSensing


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
