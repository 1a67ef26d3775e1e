"""Linear algebra: coordinates of symmetric matrices, random frames, joint diagonalisation, bases of splines."""

import sys
from itertools import combinations
from typing import Any

import numpy as np

Arrays = Any
"""Arrays of NumPy or of jax; functions compute in the library of their arguments."""


def array_module(array: Arrays) -> Any:
    """The library of an array, whose functions have the same names in NumPy, jax and torch.

    Example:
        >>> array_module(np.ones(2)).exp is np.exp
        True
    """
    torch = sys.modules.get("torch")  # which nothing here imports
    return torch if torch is not None and isinstance(array, torch.Tensor) else array.__array_namespace__()


# Of the polynomials of splines.
DEGREE = 3
# Sweeps over all pairs of axes. Matrices that nearly commute need about five; others improve slowly.
SWEEPS = 100
# Smaller angles are rounding errors: they are skipped, and a sweep that finds no others is the last.
SMALLEST_ANGLE = 1e-10
# Axes whose entries differ by less than this share of the largest entry are the same for every matrix.
ROUNDING = 1e-13


def joint_diagonalisation(matrices: np.ndarray) -> np.ndarray:
    """The rotation V that makes the off-diagonal entries of all V^T M V small together, by Jacobi's method.

        V = argmin over rotations of sum over M and i != j of (V^T M V)_ij^2

    Each pair of axes is rotated by the angle that is best for all matrices at once, until no pair moves any more.

    Args:
        matrices: M, (count, size, size), symmetric.

    Returns:
        (size, size), V, orthonormal columns.

    Reference: J.-F. Cardoso, A. Souloumiac, SIAM J. Matrix Anal. Appl. 17 (1996).

    Example:
        >>> axes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
        >>> basis = joint_diagonalisation(np.stack([axes @ np.diag(row) @ axes for row in ([1.0, 3.0], [2.0, 1.0])]))
        >>> np.abs(basis).round(3).tolist()
        [[0.707, 0.707], [0.707, 0.707]]
    """
    rotated = matrices.copy()
    size = matrices.shape[1]
    basis = np.eye(size)
    scale = float(np.abs(matrices).max(initial=0.0))
    for _ in range(SWEEPS):
        largest = 0.0
        for i, j in combinations(range(size), 2):
            gap, off = rotated[:, i, i] - rotated[:, j, j], 2 * rotated[:, i, j]
            even, odd = gap @ gap - off @ off, 2 * gap @ off
            if gap @ gap + off @ off <= (ROUNDING * scale) ** 2:
                continue
            # The sum of squares off the diagonal has its minimum at this angle, and its maximum 45 degrees from it:
            # where all gaps vanish the half-angle formula of the reference stays at the maximum.
            angle = 0.25 * np.arctan2(odd, even)
            largest = max(largest, abs(angle))
            if abs(angle) > SMALLEST_ANGLE:
                rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                pair = [i, j]
                rotated[:, pair] = rotation.T @ rotated[:, pair]
                rotated[:, :, pair] = rotated[:, :, pair] @ rotation
                basis[:, pair] = basis[:, pair] @ rotation
        if largest <= SMALLEST_ANGLE:
            break
    return basis


def symmetrised(matrices: Arrays) -> Arrays:
    """The symmetric parts (M + M^T) / 2 of a stack of matrices.

    Example:
        >>> symmetrised(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
        [[1.0, 1.0], [1.0, 3.0]]
    """
    return (matrices + matrices.swapaxes(-1, -2)) / 2


def symmetric_size(dimension: int) -> int:
    """The number d (d + 1) / 2 of coordinates of a symmetric d x d matrix."""
    return dimension * (dimension + 1) // 2


def symmetric_dimension(size: int) -> int:
    """The dimension d of a symmetric matrix with `size` = d (d + 1) / 2 coordinates."""
    return int((np.sqrt(8 * size + 1) - 1) / 2)


def pack_symmetric(matrices: Arrays) -> Arrays:
    """(..., d, d) -> (..., d (d + 1) / 2): coordinates of symmetric matrices in an orthonormal basis.

    Inner products are preserved: sum_ij A_ij B_ij = pack(A) . pack(B).

    Example:
        >>> a, b = np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])
        >>> round(float(pack_symmetric(a) @ pack_symmetric(b)), 6) == float(np.sum(a * b))
        True
    """
    xp = matrices.__array_namespace__()
    dimension, lead = matrices.shape[-1], matrices.shape[:-2]
    upper, lower = _fold(dimension)
    scaled = xp.where(np.eye(dimension, dtype=bool), matrices, matrices * np.sqrt(2).astype(matrices.dtype))
    unpadded = ((0, 0),) * len(lead)
    left = xp.pad(scaled[..., :upper, :upper], (*unpadded, (0, 0), (0, lower + 1 - upper)))
    right = xp.pad(scaled[..., upper:, upper:], (*unpadded, (0, upper - lower), (1, 0)))
    rectangle = xp.where(np.tri(upper, lower + 1, dtype=bool), left, right)
    parts = (scaled[..., :upper, upper:].reshape(*lead, upper * lower), rectangle.reshape(*lead, upper * (lower + 1)))
    return xp.concatenate(parts, axis=-1)


def unpack_symmetric(coordinates: Arrays) -> Arrays:
    """(..., d (d + 1) / 2) -> (..., d, d), the inverse of `pack_symmetric`.

    The triangles of the two diagonal blocks share one rectangle, so slices and transposes do all the work: a gather by
    index is three times slower on the CPU.
    """
    xp = coordinates.__array_namespace__()
    lead = coordinates.shape[:-1]
    upper, lower = _fold(symmetric_dimension(coordinates.shape[-1]))
    root_half = np.sqrt(0.5).astype(coordinates.dtype)
    corner = coordinates[..., : upper * lower].reshape(*lead, upper, lower) * root_half
    rectangle = coordinates[..., upper * lower :].reshape(*lead, upper, lower + 1)

    def symmetric(triangle: Arrays) -> Arrays:
        size = triangle.shape[-1]
        lower_triangle = np.tri(size, k=-1, dtype=bool)
        off_diagonal = xp.where(lower_triangle, triangle, triangle.swapaxes(-1, -2)) * root_half
        return xp.where(np.eye(size, dtype=bool), triangle, off_diagonal)

    first = symmetric(rectangle[..., :upper])
    last = symmetric(rectangle[..., :lower, 1:].swapaxes(-1, -2))
    return xp.block([[first, corner], [corner.swapaxes(-1, -2), last]])


def gather_symmetric(coordinates: Arrays) -> Arrays:
    """The same as `unpack_symmetric`, by index: on an accelerator, where it becomes a part of what it is used for.

    Example:
        >>> coordinates = np.arange(6.0)
        >>> np.array_equal(gather_symmetric(coordinates), unpack_symmetric(coordinates))
        True
    """
    size = coordinates.shape[-1]
    on_diagonal = np.eye(symmetric_dimension(size), dtype=bool)
    # Each coordinate's own number, off the diagonal times the square root of 1/2, says where it belongs.
    index = unpack_symmetric(np.arange(size, dtype=np.float64)) * np.where(on_diagonal, 1, np.sqrt(2))
    scale = np.where(on_diagonal, 1, np.sqrt(0.5)).astype(coordinates.dtype)
    return coordinates[..., np.rint(index).astype(np.int32)] * scale


def _fold(dimension: int) -> tuple[int, int]:
    """Sizes of the two diagonal blocks that a symmetric matrix is cut into."""
    lower = dimension // 2
    return dimension - lower, lower


def orthonormal_frame(dimension: int, rank: int, seed: int = 0) -> np.ndarray:
    """`rank` orthonormal vectors of R^dimension, uniformly distributed, drawn from `seed`.

    Example:
        >>> frame = orthonormal_frame(dimension=5, rank=2)
        >>> np.allclose(frame.T @ frame, np.eye(2))
        True
    """
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimension, rank)))
    return q * np.sign(np.diag(r))


def spline_width(knots: int) -> int:
    """How many columns a curve with so many knots has.

    Example:
        >>> spline_width(5) == spline_basis(np.zeros(1), np.arange(5)).shape[1]
        True
    """
    return knots + DEGREE - 2


def spline_basis(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The B-splines of a column, all but the last one, since they add up to 1 and a model has an intercept.

        B_k(x) between the outer knots a and b,    B_k(a) + (x - a) B_k'(a) below,    B_k(b) + (x - b) B_k'(b) above

    The knots are continued at the distance of the outer two, as scikit-learn's `SplineTransformer` does.

    Args:
        values: (rows,); what is not finite has no splines.
        knots: (knots,), two or more, increasing.

    Returns:
        (rows, knots + 1), NaN where a value is not finite.

    Reference: P. H. C. Eilers and B. D. Marx, *Flexible smoothing with B-splines and penalties*, Statistical Science 11
        (1996), for the knots beyond the outer ones.

    Example, splines span the straight lines:
        >>> x = np.array([-7.0, 0.5, 2.0, 11.0])
        >>> columns = np.column_stack([np.ones(4), spline_basis(x, np.array([0.0, 1.0, 2.0, 4.0]))])
        >>> fitted = np.linalg.lstsq(columns, x, rcond=None)[0]
        >>> bool(np.allclose(columns @ fitted, x))
        True
    """
    from scipy.interpolate import BSpline  # takes a while to import, and few tables to be predicted have curves

    x, knots = np.asarray(values, float), np.asarray(knots, float)
    finite = np.isfinite(x)
    beyond = np.arange(1, DEGREE + 1)
    before = knots[0] - (knots[1] - knots[0]) * beyond[::-1]
    after = knots[-1] + (knots[-1] - knots[-2]) * beyond
    count = len(knots) + DEGREE - 1
    splines = BSpline(np.concatenate([before, knots, after]), np.eye(count)[:, :-1], DEGREE)
    inside = np.clip(np.where(finite, x, knots[0]), knots[0], knots[-1])
    found, outside = splines(inside), finite & (inside != x)
    with np.errstate(over="ignore", invalid="ignore"):  # of values that are as large as numbers can be
        found[outside] += (x - inside)[outside, None] * splines.derivative()(inside[outside])
    found[~finite] = np.nan
    return found
