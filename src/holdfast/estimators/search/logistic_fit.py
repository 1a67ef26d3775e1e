"""Logistic regression by Newton's method: of several classes, and of each environment's complement."""

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax

from holdfast.algorithms.losses import logistic
from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.estimators.pooling import LinearModel

STEPS = 50  # of Newton; ten are enough unless classes can be separated
# A step that promises less than this gain in the mean loss is not worth a pass over the rows.
SMALLEST_GAIN = 1e-10
# The weak ridge of one observation keeps coefficients finite if classes can be separated; intercepts are almost free.
RIDGE, RIDGE_OF_INTERCEPT = 1.0, 1e-6


def softmax_regression(columns: np.ndarray, codes: np.ndarray, classes: int, weights: np.ndarray) -> LinearModel:
    """Multinomial logistic regression, with the weak ridge of one observation.

        minimise sum over rows of -log softmax(W x + b)[class] + |W|^2 / 2

    Args:
        columns: (features, rows), x, in standard units.
        codes: (rows,), the number of the class of each row.
        classes: their number.
        weights: (rows,), how many rows each row stands for.

    Example, without features the scores are the logarithms of the shares:
        >>> scores = softmax_regression(np.zeros((0, 4)), np.array([0, 1, 2, 2]), 3, np.ones(4))
        >>> np.exp(scores.intercept - scores.intercept[0]).round(3).tolist()
        [1.0, 1.0, 2.0]
    """
    design = np.vstack([columns, np.ones(len(codes))])
    size = len(design)
    ridge = np.tile(np.append(np.full(size - 1, RIDGE), RIDGE_OF_INTERCEPT), (classes, 1))
    target = np.eye(classes)[:, codes]
    parameters = np.zeros((classes, size))

    def objective(parameters: np.ndarray) -> float:
        chances = log_softmax(parameters @ design, axis=0)
        return float(-weights @ (target * chances).sum(0) + (ridge * parameters**2).sum() / 2)

    value = objective(parameters)
    for _ in range(STEPS):
        chances = np.exp(log_softmax(parameters @ design, axis=0))
        gradient = ((chances - target) * weights) @ design.T + ridge * parameters
        hessian = softmax_curvature(design, chances, weights)
        direction = np.linalg.solve(hessian, gradient.ravel()).reshape(classes, size)
        length = 1.0
        while (proposed := objective(parameters - length * direction)) > value and length > 1e-6:
            length /= 2
        parameters, change, value = parameters - length * direction, value - proposed, proposed
        if change <= SMALLEST_GAIN * weights.sum():
            break
    return LinearModel(parameters[:, :-1], parameters[:, -1])


def softmax_curvature(design: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(classes * columns, classes * columns): the curvature of the loss of `softmax_regression`, with its ridge.

    Args:
        design: (columns, rows), the features and a last column of ones.
        chances: (classes, rows), probabilities.
        weights: (rows,).

    Example, of a constant, one row and two classes:
        >>> softmax_curvature(np.ones((1, 1)), np.full((2, 1), 0.5), np.ones(1)).round(2).tolist()
        [[0.25, -0.25], [-0.25, 0.25]]
    """
    classes, size = len(chances), len(design)
    curvature = np.zeros((classes, size, classes, size))
    for one in range(classes):
        for other in range(one, classes):
            values = weights * chances[one] * ((one == other) - chances[other])
            curvature[one, :, other] = curvature[other, :, one] = (design * values) @ design.T
    ridge = np.tile(np.append(np.full(size - 1, RIDGE), RIDGE_OF_INTERCEPT), classes)
    return curvature.reshape(classes * size, -1) + np.diag(ridge)


def logistic_regression(rows: LogisticRows, begin: tuple[np.ndarray, float] | None = None) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of logistic regression, with the weak ridge of one observation.

    Args:
        rows: features in standard units, labels 0 and 1.
        begin: coefficients and intercept that are nearly right, which saves steps; None: 0.

    Example, a constant feature and as many ones as zeros:
        >>> w, intercept = logistic_regression(LogisticRows(np.zeros((1, 2)), np.array([0.0, 1.0]), np.ones(2)))
        >>> w.tolist(), intercept
        ([0.0], 0.0)
    """
    ridge = np.append(np.full(len(rows.columns), RIDGE), RIDGE_OF_INTERCEPT)
    start = np.zeros(len(ridge)) if begin is None else np.append(*begin)
    w = _descend([with_constant(rows)], np.array([rows.weights.sum()]), ridge, start)
    return w[:-1], float(w[-1])


def with_constant(rows: LogisticRows) -> LogisticRows:
    """Rows with one more feature that is always one: the intercept as a column.

    Features have mean zero, so the intercept of least squares does not depend on their coefficients. That of a
    logistic regression does, and counts among the columns of `pooled_covariance`.

    Example:
        >>> with_constant(LogisticRows(np.array([[5.0, 6.0]]), np.array([0.0, 1.0]), np.ones(2))).columns.tolist()
        [[5.0, 6.0], [1.0, 1.0]]
    """
    return rows._replace(columns=np.vstack([rows.columns, np.ones(rows.columns.shape[1])]))


def held_out_logistic_losses(environments: Sequence[LogisticRows], columns: np.ndarray) -> np.ndarray:
    """(environments,): the mean log loss in each environment of the logistic regression of all others.

    Newton's method from the fit of all rows. Gradients and curvatures of the environments at that fit are computed
    once, so that the first step of each fit costs nothing; with many environments it is the only one, and the cost is
    linear in the rows.

    Args:
        environments: rows of each, features in standard units, labels 0 and 1; at least two environments.
        columns: the features to use; none: a constant.

    Example, a constant prediction of one half:
        >>> halves = [LogisticRows(np.zeros((0, 2)), np.array([0.0, 1.0]), np.ones(2)) for _ in range(3)]
        >>> held_out_logistic_losses(halves, np.arange(0)).round(4).tolist()
        [0.6931, 0.6931, 0.6931]
    """
    parts = [with_constant(rows._replace(columns=rows.columns[columns])) for rows in environments]
    totals = np.array([rows.weights.sum() for rows in parts])
    ridge = np.append(np.full(len(columns), RIDGE), RIDGE_OF_INTERCEPT)
    pooled = _descend(parts, totals, ridge, np.zeros(len(ridge)))
    gradients = totals[:, None] * np.stack([logistic.gradient(rows, pooled) for rows in parts])
    curvatures = totals[:, None, None] * np.stack([logistic.curvature_matrix(rows, pooled) for rows in parts])
    all_gradients, all_curvatures = gradients.sum(0), curvatures.sum(0)
    losses = []
    for number, own in enumerate(parts):
        others = np.delete(np.arange(len(parts)), number)
        gradient = all_gradients - gradients[number] + ridge * pooled
        curvature = all_curvatures - curvatures[number] + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        fitted = pooled - step
        # Newton's method converges quadratically: what is left is the square of the first gain
        if gradient @ step / 2 > np.sqrt(SMALLEST_GAIN) * totals[others].sum():
            fitted = _descend([parts[other] for other in others], totals[others], ridge, fitted)
        losses.append(logistic.risk(own, fitted))
    return np.array(losses)


def _descend(parts: Sequence[LogisticRows], totals: np.ndarray, ridge: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The ridge fit to the rows of several environments by damped Newton steps."""

    def objective(w: np.ndarray) -> float:
        return float(totals @ [logistic.risk(rows, w) for rows in parts] + ridge @ w**2 / 2)

    def downhill(w: np.ndarray) -> np.ndarray:
        return totals @ np.stack([logistic.gradient(rows, w) for rows in parts]) + ridge * w

    gradient, least = downhill(w), SMALLEST_GAIN * totals.sum()
    value = objective(w)
    if value > (at_zero := objective(np.zeros_like(w))):
        w, value = np.zeros_like(w), at_zero  # a full step from afar may overshoot
        gradient = downhill(w)
    for _ in range(STEPS):
        curvature = np.tensordot(totals, [logistic.curvature_matrix(rows, w) for rows in parts], 1) + np.diag(ridge)
        direction = np.linalg.solve(curvature, gradient)
        if gradient @ direction / 2 <= least:
            break
        length = 1.0
        while (proposed := objective(w - length * direction)) > value and length > 1e-6:
            length /= 2
        w, value = w - length * direction, proposed
        gradient = downhill(w)
    return w
