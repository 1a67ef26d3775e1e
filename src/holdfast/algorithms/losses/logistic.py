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
# A look at the rows takes blocks that fit into the cache, and weights p (1 - p) that are not below the second number.
BLOCK, SMALLEST_WEIGHT = 2048, 1e-6


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


class Look(NamedTuple):
    """What the rows of some environments say at one fit; features are followed by the intercept.

    Attributes:
        loss: (environments,), mean logistic losses.
        gradient: (environments, features + 1), g_e.
        curvature: (environments, features + 1, features + 1), H_e.
        covariance: as `curvature`, V_e; zero if nobody asked.
        square: (environments,), means of (p - y)^2 / (p (1 - p)).

    Example, of two rows without features:
        >>> look([LogisticRows(np.zeros((0, 2)), np.array([0.0, 1.0]), np.ones(2))], np.zeros(1)).square.tolist()
        [1.0]
    """

    loss: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    covariance: np.ndarray
    square: np.ndarray


def look(
    environments: Sequence[LogisticRows], w: np.ndarray, columns: np.ndarray | None = None, *, covariance: bool = False
) -> Look:
    """Loss, gradient and curvature of environments from one pass over their rows, NumPy only.

    Args:
        environments: their rows.
        w: (columns + 1,), coefficients and intercept.
        columns: the features in use; None: all.
        covariance: whether V_e is needed too.

    Example, without coefficients:
        >>> found = look([LogisticRows(np.array([[1.0, 5.0]]), np.array([1.0, 0.0]), np.ones(2))], np.zeros(2))
        >>> found.loss.round(4).tolist(), found.gradient.tolist(), found.curvature.tolist()
        ([0.6931], [[1.0, 0.0]], [[[3.25, 0.75], [0.75, 0.25]]])
    """
    size = len(w)
    sums = Look(*(np.zeros((len(environments), *shape)) for shape in ((), (size,), (size, size), (size, size), ())))
    scaled = np.empty((BLOCK, size))
    for number, rows in enumerate(environments):
        for start in range(0, len(rows.labels), BLOCK):
            block = slice(start, start + BLOCK)
            x = (rows.columns[:, block] if columns is None else rows.columns[columns, block]).T
            labels, weights = rows.labels[block], rows.weights[block]
            scores = x @ w[:-1] + w[-1]
            p = sigmoid(scores)
            errors, spread, part = p - labels, p * (1 - p), scaled[: len(x)]
            sums.loss[number] += weights @ (np.logaddexp(0.0, scores) - labels * scores)
            sums.square[number] += weights @ (errors**2 / np.maximum(spread, SMALLEST_WEIGHT))
            sums.gradient[number, :-1] += (weights * errors) @ x
            sums.gradient[number, -1] += weights @ errors
            for matrix, values in ((sums.curvature, spread), (sums.covariance, errors**2))[: 1 + covariance]:
                root = np.sqrt(weights * values)
                np.multiply(x, root[:, None], out=part[:, :-1])
                part[:, -1] = root
                matrix[number] += part.T @ part
    counts = np.array([rows.weights.sum() for rows in environments])
    sums.covariance[:] /= counts[:, None, None]
    return Look(*(part / counts.reshape(-1, *[1] * (part.ndim - 1)) for part in sums))


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
