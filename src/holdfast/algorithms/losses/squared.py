"""Half the mean squared error of a linear model in each environment, from second moments.

    loss_e(w) = E_e (y - w x)^2 / 2 = (w S_e w - 2 w c_e + q_e) / 2

The cost does not depend on the number of rows. All functions take arrays of NumPy or of jax.
"""

from collections.abc import Sequence

import numpy as np

from holdfast.algorithms.losses.slopes import Slopes
from holdfast.core.linear_algebra import Arrays
from holdfast.core.moments import SecondMoments

# An environment of few rows borrows this many rows from all of them to estimate the variance of its errors.
BORROWED_ROWS = 10.0
# The errors of a perfect fit are rounding: they count as this share of the mean square of the response.
SMALLEST_ERROR = 1e-12


def second_moments(inputs: np.ndarray, targets: np.ndarray, rows: Sequence[np.ndarray]) -> SecondMoments:
    """The moments of the environments of a table, with a feature that is always one, for the intercept, at the end.

    Args:
        inputs: (rows, features).
        targets: (rows,).
        rows: the positions of the rows of each environment.

    Example:
        >>> found = second_moments(np.array([[1.0], [3.0]]), np.array([2.0, 4.0]), [np.array([0, 1])])
        >>> found.second.tolist(), found.cross.tolist(), found.square.tolist()
        ([[[5.0, 2.0], [2.0, 1.0]]], [[7.0, 3.0]], [10.0])
    """
    parts = []
    for own in rows:
        x, y = np.column_stack([inputs[own], np.ones(len(own))]), targets[own]
        parts.append((x.T @ x / len(y), x.T @ y / len(y), y @ y / len(y)))
    return SecondMoments(*(np.stack(column) for column in zip(*parts, strict=True)))


def risk(moments: SecondMoments, w: Arrays) -> Arrays:
    """(environments,): loss_e(w).

    Example:
        >>> moments = SecondMoments(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([4.0]))
        >>> risk(moments, np.array([1.0])).tolist()
        [0.5]
    """
    return ((moments.second @ w - 2 * moments.cross) @ w + moments.square) / 2


def gradient(moments: SecondMoments, w: Arrays) -> Arrays:
    """(environments, features): S_e w - c_e. The curvature is S_e.

    Example:
        >>> moments = SecondMoments(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([4.0]))
        >>> gradient(moments, np.array([1.0])).tolist()
        [[-1.0]]
    """
    return moments.second @ w - moments.cross


def gradient_scale(moments: SecondMoments, counts: Arrays, w: Arrays) -> Arrays:
    """(environments,): sigma_e^2 / n_e, which times S_e is the covariance of the sampling error of the gradient.

        sigma_e^2 = (n_e E_e (y - w x)^2 + n_0 E (y - w x)^2) / (n_e + n_0),    n_0 = `BORROWED_ROWS`

    Args:
        moments: of the environments.
        counts: n_e, the numbers of rows; 0 for an environment that only fills up an array.
        w: coefficients.

    Example:
        >>> moments = SecondMoments(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([4.0]))
        >>> gradient_scale(moments, np.array([100.0]), np.array([1.0])).tolist()
        [0.01]
    """
    xp = moments.cross.__array_namespace__()
    weights = counts / counts.sum()
    own = xp.maximum(2 * risk(moments, w), 0)
    smallest = SMALLEST_ERROR * (weights @ moments.square)
    pooled = xp.maximum(weights @ own, xp.maximum(smallest, xp.finfo(own.dtype).tiny))
    return (counts * own + BORROWED_ROWS * pooled) / (counts + BORROWED_ROWS) / xp.maximum(counts, 1e-30)


def slopes(moments: SecondMoments, counts: Arrays, w: Arrays) -> Slopes:
    """The gradients of single features, for a response and features of mean zero; arguments as `gradient_scale`.

    Example:
        >>> moments = SecondMoments(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([4.0]))
        >>> slopes(moments, np.array([100.0]), np.array([1.0])).variance.tolist()
        [[0.01]]
    """
    xp = moments.cross.__array_namespace__()
    diagonal = xp.einsum("eii->ei", moments.second)
    variance = gradient_scale(moments, counts, w)[:, None] * diagonal
    return Slopes(gradient(moments, w), xp.zeros_like(moments.square), diagonal, variance)
