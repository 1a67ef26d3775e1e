"""The axes in which several symmetric matrices are as close to diagonal as they can be together."""

from itertools import combinations

import numpy as np

# Over all pairs of axes. Matrices that nearly commute need about five; others get slowly better.
SWEEPS = 100
# Smaller angles are rounding errors: they are not turned by, and a sweep of none but those is the last.
SMALLEST_ANGLE = 1e-10
# Axes whose entries differ by less than this share of the largest entry are not told apart by any matrix.
ROUNDING = 1e-13


def joint_diagonalisation(matrices: np.ndarray) -> np.ndarray:
    """The rotation V that makes the off-diagonal entries of all V^T M V small together, by Jacobi's method.

        V = argmin over rotations of sum over M and i != j of (V^T M V)_ij^2

    Each pair of axes is turned by the angle that is best for all matrices at once, until none turns.

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
    turned = matrices.copy()
    size = matrices.shape[1]
    basis = np.eye(size)
    scale = float(np.abs(matrices).max(initial=0.0))
    for _ in range(SWEEPS):
        largest = 0.0
        for i, j in combinations(range(size), 2):
            gap, off = turned[:, i, i] - turned[:, j, j], 2 * turned[:, i, j]
            even, odd = gap @ gap - off @ off, 2 * gap @ off
            if gap @ gap + off @ off <= (ROUNDING * scale) ** 2:
                continue
            # The sum of squares off the diagonal has its minimum at this angle, and its maximum 45 degrees from it:
            # where all gaps vanish the half-angle formula of the reference stays at the maximum.
            angle = 0.25 * np.arctan2(odd, even)
            largest = max(largest, abs(angle))
            if abs(angle) > SMALLEST_ANGLE:
                turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                pair = [i, j]
                turned[:, pair] = turn.T @ turned[:, pair]
                turned[:, :, pair] = turned[:, :, pair] @ turn
                basis[:, pair] = basis[:, pair] @ turn
        if largest <= SMALLEST_ANGLE:
            break
    return basis
