"""What follows from an isometry of the measurements: both sides of Lemmas 1 to 4 and 20 of Xu, Gu and Fang (2024)."""

import numpy as np

from holdfast.core.linear_algebra import pack_symmetric, symmetric_dimension, symmetrised
from holdfast.theory.assumptions import apply, error_tensor, inner, nearest_of_rank, random_of_rank


def symmetric_measurements(random: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Symmetric Gaussian matrices: N(0, 1) on the diagonal, N(0, 1/2) off it, so that E <X, M>^2 = ||M||_F^2."""
    # Half the sum of a square Gaussian and its transpose has variance 1/2 off the diagonal and 1 on it.
    return symmetrised(random.standard_normal((count, dimension, dimension)))


def antisymmetric_deviation(measurements: np.ndarray) -> float:
    """|(1/m) sum <X_i, M>^2 - 1| for the antisymmetric M = (e1 e2^T - e2 e1^T) / sqrt(2) of rank 2.

    It is one for every set of symmetric measurements: Definition 1 can only be meant for symmetric matrices.
    """
    products = (measurements[:, 0, 1] - measurements[:, 1, 0]) / np.sqrt(2)
    return float(abs(np.mean(products**2) - 1))


def largest_error_product(
    tensor: np.ndarray,
    rank: int,
    other_rank: int,
    random: np.random.Generator,
    *,
    starts: int = 8,
    iterations: int = 40,
) -> float:
    """The maximum of <E(X), Y> over X and Y of given ranks and unit Frobenius norm, by alternating maximisation.

    The left sides of Lemmas 1 to 4 are of this kind: with ranks (r, r) Lemma 1; (r, 1) Lemma 2, since the operator
    norm of E(X) is attained at a rank-one Y; (1, r) Lemma 3 and (1, 1) Lemma 4, since a ball of the nuclear norm is
    spanned by matrices of rank one.
    """
    dimension = symmetric_dimension(len(tensor))
    left = random_of_rank(random, starts, dimension, rank)
    for _ in range(iterations):
        right = nearest_of_rank(apply(tensor, left), other_rank)
        left = nearest_of_rank(apply(tensor, right), rank)
    return float(np.abs(inner(apply(tensor, left), right)).max())


def lemma_ratios(
    measurements: np.ndarray, delta: float, rank: int, random: np.random.Generator, *, samples: int = 32
) -> dict[str, float]:
    """The largest left side / (delta x right side) of Lemmas 1 to 4 (eqs. 27 to 30) over random matrices.

    X has the given rank in Lemmas 1 and 2 and full rank in Lemmas 3 and 4; Z is d x 3.

    Returns:
        A ratio for each of lemma_1 to lemma_4; at most one if the lemma holds with this delta.
    """
    dimension = measurements.shape[1]
    tensor = error_tensor(measurements)
    low, full = (random_of_rank(random, samples, dimension, size) for size in (rank, dimension))
    other = random_of_rank(random, samples, dimension, rank)
    factors = random.standard_normal((samples, dimension, 3))
    sizes = np.linalg.norm(factors, 2, axis=(1, 2))
    nuclear = np.linalg.norm(full, "nuc", axis=(1, 2))
    errors = {"low": apply(tensor, low), "full": apply(tensor, full)}
    images = {name: np.linalg.norm(error @ factors, 2, axis=(1, 2)) for name, error in errors.items()}
    return {
        "lemma_1": float(np.abs(inner(errors["low"], other)).max() / delta),
        "lemma_2": float((images["low"] / sizes).max() / delta),
        "lemma_3": float((np.abs(inner(errors["full"], other)) / nuclear).max() / delta),
        "lemma_4": float((images["full"] / (nuclear * sizes)).max() / delta),
    }


def planar_same_rank_ratio(measurements: np.ndarray, angles: int = 360) -> float:
    """The maximum of <E(X), Y> / delta_1 over X, Y of rank one in the plane, by exhaustion of the directions.

    A symmetric matrix of rank one in the plane is an angle and a sign, so both maxima are known up to the spacing of
    the grid. A value above one refutes Lemma 1 as printed, with the isometry at rank r where the proof needs 2 r.
    """
    if measurements.shape[1:] != (2, 2):
        raise ValueError(f"measurements must be 2 x 2 matrices, got shape {measurements.shape[1:]}")
    turns = np.linspace(0, np.pi, angles, endpoint=False)
    directions = np.stack([np.cos(turns), np.sin(turns)], 1)
    coordinates = pack_symmetric(directions[:, :, None] * directions[:, None, :])
    products = np.abs(coordinates @ error_tensor(measurements) @ coordinates.T)
    return float(products.max() / np.diag(products).max())


def truncated_rank_one_deviation(features: np.ndarray, matrix: np.ndarray, radius: float) -> float:
    """||(1/m) sum <x x^T, A> x x^T 1(|<x x^T, A>| <= R) - 2 A - tr(A) I|| / ||A||_* (eq. 121, Lemma 20).

    Args:
        features: x_i as rows.
        matrix: A, symmetric.
        radius: R.
    """
    total = np.zeros(matrix.shape)
    narrow = matrix.astype(features.dtype)
    # Blocks that stay in the cache; sums of a block may be of low precision, the sum of the blocks is not.
    for block in np.array_split(features, -(-len(features) // 32768)):
        columns = np.ascontiguousarray(block.T)  # sums of few long rows vectorise, sums along many short ones do not
        products = np.einsum("im,im->m", narrow @ columns, columns)
        products[np.abs(products) > radius] = 0
        total += (columns * products) @ block
    weighted = total / len(features)
    target = 2 * matrix + np.trace(matrix) * np.eye(len(matrix))
    return float(np.linalg.norm(weighted - target, 2) / np.linalg.norm(matrix, "nuc"))
