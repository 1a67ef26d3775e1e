"""Coordinates to try when the features may be a rotation of what is invariant and what is not.

Washing out acts on coordinates, so it depends on them. If the table holds a mixture x = Q^T (invariant, spurious), the
coordinates have to be found first, from the features alone. Two systems are tried:

- `principal`: the principal components of all rows;
- `joint`: coordinates in which the features are as uncorrelated as possible in *every* environment. After whitening,
  the covariances of the environments are brought as close to diagonal form as one rotation can. If what moves between
  environments moves on its own, it has coordinates of its own.

The system whose invariant coordinates predict best is used; see `holdfast.estimators.linear`.
"""

from typing import NamedTuple

import numpy as np

from holdfast.core.linear_algebra import joint_diagonalisation
from holdfast.core.moments import StandardizedMoments

# Components with a smaller share of the variance are rounding errors, not features.
SMALLEST_VARIANCE = 1e-10


class Coordinates(NamedTuple):
    """A coordinate system of the standardised features.

    Attributes:
        name: features, principal or joint.
        directions: (features, coordinates), z^T directions are the coordinates.
    """

    name: str
    directions: np.ndarray


def coordinate_systems(second: np.ndarray, counts: np.ndarray, rotation: bool) -> list[Coordinates]:
    """The systems to try: the features themselves and, if they may be rotated, the two others.

    Args:
        second: (environments, features, features), second moments.
        counts: (environments,), rows.
        rotation: whether the features may be a rotation of what is invariant and what is not.
    """
    systems = [Coordinates("features", np.eye(second.shape[1]))]
    if rotation:
        weights = counts / counts.sum()
        systems.append(Coordinates("principal", principal_directions(second, weights)))
        systems.append(Coordinates("joint", joint_directions(second, weights)))
    return systems


def principal_directions(second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(features, components): whitened principal components, those without variance left out.

    Args:
        second: (environments, features, features), second moments.
        weights: (environments,), shares of the rows.
    """
    values, vectors = np.linalg.eigh(np.tensordot(weights, second, 1))
    present = values > SMALLEST_VARIANCE * max(values.max(), 1e-300)
    return vectors[:, present] / np.sqrt(values[present])


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


def rotated(moments: StandardizedMoments, directions: np.ndarray) -> StandardizedMoments:
    """The moments of the coordinates z^T directions."""
    components = directions.shape[1]
    return moments._replace(
        second=directions.T @ moments.second @ directions,
        cross=moments.cross @ directions,
        means=np.column_stack([moments.means[:, :-1] @ directions, moments.means[:, -1]]),
        constant=np.zeros(components, bool),
    )
