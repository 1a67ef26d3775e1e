"""The mean logistic loss of a linear model, from the rows of an environment.

    loss_e(w, b) = mean over the rows of e of log(1 + exp(-s (w x + b))),    s = 1 for the label 1, s = -1 for 0

All functions take arrays of NumPy or of jax, of one environment or with leading axes of several that are padded to one
length: rows of weight zero count for nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from holdfast.algorithms.losses.slopes import Arrays, Slopes

# Below minus this score the exponential would overflow in single precision; the probability is under 1e-34.
LARGEST_SCORE = 80.0


class LogisticRows(NamedTuple):
    """All that the logistic loss depends on.

    Attributes:
        columns: (..., features, rows), x, features first: the order that a CPU reads fastest.
        labels: (..., rows), 0 or 1.
        weights: (..., rows), how many rows each row stands for; 0 where an environment is padded.

    Example, without coefficients the risk is log 2:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.ones(2))
        >>> risk(rows, np.zeros(1)).round(4).item()
        0.6931
    """

    columns: Arrays
    labels: Arrays
    weights: Arrays


def rows_with_intercept(inputs: np.ndarray, labels: np.ndarray, rows: Sequence[np.ndarray]) -> LogisticRows:
    """The rows of all environments, padded, with a feature that is always one, for the intercept, at the end.

    Args:
        inputs: (rows, features).
        labels: (rows,), 0 or 1.
        rows: the positions of the rows of each environment.

    Example:
        >>> found = rows_with_intercept(np.array([[5.0], [6.0]]), np.array([0, 1]), [np.array([0, 1])])
        >>> found.columns.tolist()
        [[[5.0, 6.0], [1.0, 1.0]]]
    """
    return padded([
        LogisticRows(np.vstack([inputs[own].T, np.ones(len(own))]), labels[own], np.ones(len(own))) for own in rows
    ])  # fmt: skip


def padded(parts: Sequence[LogisticRows]) -> LogisticRows:
    """Environments stacked into arrays of single precision, with zeros wherever they are shorter.

    Args:
        parts: one for each environment.

    Example:
        >>> parts = [LogisticRows(np.ones((3, n)), np.ones(n), np.ones(n)) for n in (2, 4)]
        >>> padded(parts).columns.shape, padded(parts).weights.sum(1).tolist()
        ((2, 3, 4), [2.0, 4.0])
    """
    longest = max(len(part.labels) for part in parts)
    columns = np.zeros((len(parts), len(parts[0].columns), longest), np.float32)
    labels, weights = np.zeros((2, len(parts), longest), np.float32)
    for number, part in enumerate(parts):
        own = slice(0, len(part.labels))
        columns[number, :, own] = part.columns
        labels[number, own], weights[number, own] = part.labels, part.weights
    return LogisticRows(columns, labels, weights)


def sigmoid(scores: Arrays) -> Arrays:
    """1 / (1 + exp(-t)), without overflow and with derivatives of every order.

    Example:
        >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).round(6).tolist()
        [0.0, 0.5, 1.0]
    """
    xp = scores.__array_namespace__()
    return 1 / (1 + xp.exp(-xp.maximum(scores, -LARGEST_SCORE)))


def probabilities(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(..., rows): p, the probability of the label 1.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> probabilities(rows, np.zeros(1)).tolist()
        [0.5, 0.5]
    """
    return sigmoid(w @ rows.columns + intercept)


def row_losses(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(..., rows): log(1 + exp(-s (w x + b))), which for a large score of the wrong sign is its size.

    Example:
        >>> rows = LogisticRows(np.array([[200.0]]), np.array([0.0]), np.array([1.0]))
        >>> row_losses(rows, np.array([1.0])).tolist()
        [200.0]
    """
    xp = rows.columns.__array_namespace__()
    margins = (2 * rows.labels - 1) * (w @ rows.columns + intercept)
    # To absolute precision: log1p would be right for tiny losses too, and takes twice as long on a CPU.
    return xp.maximum(-margins, 0) + xp.log(1 + xp.exp(-xp.abs(margins)))


def risk(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(...): the mean loss of each environment.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> risk(rows, np.zeros(1)).round(4).tolist()
        0.6931
    """
    return (_shares(rows) * row_losses(rows, w, intercept)).sum(-1)


def gradient(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(..., features): mean of (p - y) x.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> gradient(rows, np.zeros(1)).tolist()
        [1.0]
    """
    return _weighted(rows.columns, _shares(rows) * (probabilities(rows, w, intercept) - rows.labels))


def slopes(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Slopes:
    """Gradients of single features, with curvature mean of p (1 - p) x^2 and variance mean of (p - y)^2 x^2 / n.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> found = slopes(rows, np.zeros(1))
        >>> found.curvature.tolist(), found.variance.tolist()
        ([3.25], [1.625])
    """
    shares, p, squares = _shares(rows), probabilities(rows, w, intercept), rows.columns**2
    errors = p - rows.labels
    variance = _weighted(squares, shares * errors**2) / _totals(rows)
    curvature = _weighted(squares, shares * p * (1 - p))
    return Slopes(_weighted(rows.columns, shares * errors), (shares * errors).sum(-1), curvature, variance)


def curvature_matrix(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(..., features, features): mean of p (1 - p) x x^T, the derivative of the gradient.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> curvature_matrix(rows, np.zeros(1)).round(3).tolist()
        [[3.25]]
    """
    p = probabilities(rows, w, intercept)
    return _mean_outer(rows, p * (1 - p))


def gradient_covariance(rows: LogisticRows, w: Arrays, intercept: ArrayLike = 0.0) -> Arrays:
    """(..., features, features): mean of (p - y)^2 x x^T / n, of the sampling error of the gradient.

    Example:
        >>> rows = LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
        >>> gradient_covariance(rows, np.zeros(1)).round(3).tolist()
        [[1.625]]
    """
    errors = probabilities(rows, w, intercept) - rows.labels
    return _mean_outer(rows, errors**2) / _totals(rows)[..., None]


def _totals(rows: LogisticRows) -> Arrays:
    """(..., 1): n, positive also where an environment only fills up an array."""
    xp = rows.weights.__array_namespace__()
    return xp.maximum(rows.weights.sum(-1), 1e-30)[..., None]


def _shares(rows: LogisticRows) -> Arrays:
    return rows.weights / _totals(rows)


def _weighted(columns: Arrays, values: Arrays) -> Arrays:
    return (columns @ values[..., None])[..., 0]


def _mean_outer(rows: LogisticRows, values: Arrays) -> Arrays:
    """Mean of values x x^T, for values of at least 0."""
    xp = rows.columns.__array_namespace__()
    # a matrix times its own transpose is half the work
    scaled = rows.columns * xp.sqrt(_shares(rows) * values)[..., None, :]
    return scaled @ scaled.swapaxes(-1, -2)
