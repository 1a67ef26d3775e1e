"""Coordinates to try when the features may be a rotation of what is invariant and what is not.

Washing out acts on coordinates, so it depends on them. If the table shows a mixture x = Q^T (invariant, spurious), the
coordinates have to be found first, from the features alone. Two systems commend themselves:

- `principal`: the principal components of all rows;
- `joint`: coordinates in which the features are uncorrelated in *every* environment, as far as there are any. After
  whitening, the covariances of the environments are brought as close to diagonal form as one rotation can. If what
  moves between environments moves on its own, it has coordinates of its own.

Which of them is used is decided by what the invariant features in it predict; see `holdfast.estimators.linear`.
"""

import numpy as np

from holdfast.core.linear_algebra import joint_diagonalisation
from holdfast.estimators.moments import Centred

# Components with a smaller share of the variance are rounding errors, not features.
SMALLEST_VARIANCE = 1e-10


def principal_directions(second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(features, components): whitened principal components, those without variance left out.

    Args:
        second: (environments, features, features), second moments.
        weights: (environments,), shares of the rows.
    """
    values, vectors = np.linalg.eigh(np.tensordot(weights, second, 1))
    there = values > SMALLEST_VARIANCE * max(values.max(), 1e-300)
    return vectors[:, there] / np.sqrt(values[there])


def joint_directions(second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(features, components): the rotation of the whitened components that makes all environments nearly uncorrelated.

    Example, two environments whose covariances share the axes (1, 1) and (1, -1):
        >>> axes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
        >>> second = np.stack([axes.T @ np.diag(variances) @ axes for variances in ([1.0, 3.0], [2.0, 1.0])])
        >>> directions = joint_directions(second, np.array([0.5, 0.5]))
        >>> bool(np.allclose(np.abs(directions[0]), np.abs(directions[1])))
        True
    """
    white = principal_directions(second, weights)
    return white @ joint_diagonalisation(white.T @ second @ white)


def rotated(moments: Centred, directions: np.ndarray) -> Centred:
    """The moments of the coordinates z^T directions."""
    components = directions.shape[1]
    return moments._replace(
        second=directions.T @ moments.second @ directions,
        cross=moments.cross @ directions,
        means=np.column_stack([moments.means[:, :-1] @ directions, moments.means[:, -1]]),
        constant=np.zeros(components, bool),
    )
