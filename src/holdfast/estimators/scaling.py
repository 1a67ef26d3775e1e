"""Features in standard units, and coefficients back in the units of the table."""

from typing import NamedTuple

import numpy as np

# A column whose standard deviation is below this share of its mean varies by no more than its last digits.
RESOLUTION = 8 * np.finfo(float).eps


def is_constant(deviation: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Which columns vary by no more than the last digits of their values.

    Args:
        deviation: standard deviations.
        mean: means, of the same columns.

    Example, a column around ten million that varies by 1 is not constant:
        >>> is_constant(np.array([1e-17, 1.0]), np.array([0.1, 1e7])).tolist()
        [True, False]
    """
    return deviation <= RESOLUTION * np.abs(mean)


class Scaling(NamedTuple):
    """The units of a table: z = (x - location) / scale.

    Attributes:
        location: (features,), means.
        scale: (features,), standard deviations; 1 for a constant column.
        constant: (features,), which columns are constant.
    """

    location: np.ndarray
    scale: np.ndarray
    constant: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:
        """(rows, features), z; exactly zero in constant columns."""
        return (x - self.location) / self.scale * ~self.constant

    def undo(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of x from those of z, (..., features), and the intercept that belongs to them, (...).

        Example:
            >>> Scaling(np.array([3.0]), np.array([2.0]), np.array([False])).undo(np.array([4.0]))
            (array([2.]), np.float64(-6.0))
        """
        own = coefficients / self.scale
        return own, -(own @ self.location)


def standard_units(x: np.ndarray, weights: np.ndarray | None = None) -> Scaling:
    """Mean 0 and variance 1 over all rows.

    Args:
        x: (rows, features).
        weights: how many rows each row stands for; None: one.

    Example:
        >>> standard_units(np.array([[1.0, 7.0], [3.0, 7.0]])).apply(np.array([[4.0, 7.0]])).tolist()
        [[2.0, 0.0]]
    """
    location = np.average(x, axis=0, weights=weights)
    deviation = np.sqrt(np.average((x - location) ** 2, axis=0, weights=weights))
    constant = is_constant(deviation, location)
    return Scaling(location, np.where(constant, 1.0, deviation), constant)


def own_units(features: int) -> Scaling:
    """Features as they are."""
    return Scaling(np.zeros(features), np.ones(features), np.zeros(features, bool))
