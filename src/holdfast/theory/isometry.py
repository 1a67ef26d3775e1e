"""Restricted isometry of given measurements (Xu, Gu and Fang, 2024, appendix A.1), by search over symmetric matrices.

The measurements of the theory are symmetric, and <X, M> = 0 for every antisymmetric M, so that no isometry holds for
those.
"""

import numpy as np

from holdfast.core.linear_algebra import pack_symmetric, symmetric_dimension, symmetrised, unpack_symmetric


def error_tensor(measurements: np.ndarray) -> np.ndarray:
    """The error operator E(M) = (1/m) sum_i <X_i, M> X_i - M of symmetric measurements (eq. 20), as a matrix.

    It acts on the d (d + 1) / 2 coordinates of symmetric matrices in an orthonormal basis.
    """
    coordinates = pack_symmetric(symmetrised(measurements))
    return coordinates.T @ coordinates / len(coordinates) - np.eye(coordinates.shape[1])


def nearest_of_rank(matrices: np.ndarray, rank: int) -> np.ndarray:
    """The nearest symmetric matrices of this rank, scaled to unit Frobenius norm."""
    values, vectors = np.linalg.eigh(symmetrised(matrices))
    largest = np.sort(np.abs(values), -1)[..., -rank][..., None]
    truncated = np.where(np.abs(values) >= largest, values, 0.0)
    truncated = truncated / np.linalg.norm(truncated, axis=-1, keepdims=True)
    return (vectors * truncated[..., None, :]) @ vectors.swapaxes(-1, -2)


def random_of_rank(random: np.random.Generator, count: int, dimension: int, rank: int) -> np.ndarray:
    """Random symmetric matrices of a rank and of unit Frobenius norm, with eigenvalues of both signs."""
    vectors = np.linalg.qr(random.standard_normal((count, dimension, rank)))[0]
    values = random.standard_normal((count, rank))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def apply(tensor: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """E(M) of each of the matrices, for E of `error_tensor`."""
    # Not a product of the linear algebra library: for so little work its threads cost more than they save.
    return unpack_symmetric(np.einsum("ni,ij->nj", pack_symmetric(matrices), tensor))


def inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """<A, B> of each pair of matrices."""
    return np.einsum("nij,nij->n", left, right)


def isometry_deviations(tensor: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """|(1/m) sum <X_i, M>^2 - ||M||_F^2| for each of the matrices."""
    return np.abs(inner(apply(tensor, matrices), matrices))


def isometry_constant(
    tensor: np.ndarray, rank: int, random: np.random.Generator, *, starts: int = 8, iterations: int = 40
) -> float:
    """A lower bound of the restricted isometry constant delta of Definition 1 (eq. 8), by search.

    From each random start it climbs the deviation in both directions. With a shift c that makes +-E + c positive,
    M <- nearest_of_rank((+-E + c) M) maximises a tangent from below of a convex function, so it never descends.

    Args:
        tensor: the error operator, from `error_tensor`.
        rank: s.
        random: for the starts.
        starts: number of random matrices to climb from.
        iterations: steps of the ascent.
    """
    dimension = symmetric_dimension(len(tensor))
    ends = np.linalg.eigvalsh(tensor)[[0, -1]]
    best = 0.0
    for sign in (-1.0, 1.0):
        shift = max(0.0, -float((sign * ends).min()))
        matrices = random_of_rank(random, starts, dimension, rank)
        for _ in range(iterations):
            matrices = nearest_of_rank(sign * apply(tensor, matrices) + shift * matrices, rank)
        best = max(best, float(isometry_deviations(tensor, matrices).max()))
    return best
