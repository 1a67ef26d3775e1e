"""Confidence intervals that a selection of features does not distort."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_X_y

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.moments import collect_moments, standard_units, standardized
from holdfast.estimators.class_inference import softmax_errors
from holdfast.estimators.contract import class_codes, two_classes
from holdfast.estimators.inference import pooled_covariance, standard_errors, with_constant
from holdfast.estimators.search.evidence import LinearModel, logistic_evidence, squared_evidence
from holdfast.estimators.search.logistic_fit import softmax_regression

INTERVAL_COLUMNS = ("coefficient", "standard_error", "low", "high")


def split_intervals(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    confidence: float = 0.95,
    clustered: bool = False,
    random_state: int = 0,
) -> pd.DataFrame:
    """Features from one half of the rows of each environment, confidence intervals from the other.

    A feature whose effect happens to look large is more likely to be selected, so intervals from the rows that selected
    it lie too far out. Rows that had no part in the selection know nothing of it. The price is half of them.

    Args:
        estimator: `HeteroRegressor`, `HeteroClassifier`, or any estimator with environments and `invariant_`.
        X: (rows, features).
        y: (rows,).
        environments: one label for each row; None: one environment.
        confidence: the share of intervals that cover the coefficient.
        clustered: whether the environments, and not only their rows, count as a sample; see
            `holdfast.estimators.inference.pooled_covariance`.
        random_state: of the halves.

    Returns:
        Selected features x (coefficient, standard_error, low, high): of the pooled fit of these features to the second
        half; without rows if nothing is selected. They belong to the invariant features alone, `strict_coef_`, whatever
        the pooling weight. For a classifier the coefficients are log-odds; of more than two classes the rows are
        (feature, class), and coefficients are measured from their mean over the classes.

    Reference: D. R. Cox, Biometrika 62 (1975); A. Rinaldo, L. Wasserman and M. G'Sell, Annals of Statistics 47 (2019).

    Example:
        >>> from holdfast.datasets import toy_dataset
        >>> from holdfast.estimators import HeteroRegressor
        >>> rows = toy_dataset(1.0, 0.5, seed=0, samples=400).train
        >>> found = split_intervals(HeteroRegressor(), rows.inputs, rows.targets, environments=rows.environments)
        >>> found.index.tolist(), found.columns.tolist()
        (['x0', 'x1', 'x2'], ['coefficient', 'standard_error', 'low', 'high'])
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a number between 0 and 1, got {confidence!r}")
    settings = estimator.get_params(deep=False)
    if settings.get("rotation", False):
        raise ValueError("rotation must be False for intervals of the coefficients of features, got True")
    names = list(X.columns) if isinstance(X, pd.DataFrame) else [f"x{number}" for number in range(np.shape(X)[1])]
    x, response = check_X_y(X, y, dtype=np.float64, y_numeric=not is_classifier(estimator))
    grouping = group_rows(environments, len(x))
    first = _first_half(grouping, np.random.default_rng(random_state))
    chosen = clone(estimator).fit(x[first], response[first], environments=grouping.codes[first])
    columns = np.flatnonzero(np.ravel(chosen.invariant_))
    own_levels = settings.get("level", "common") == "environment"
    if len(columns) == 0:
        return pd.DataFrame(columns=list(INTERVAL_COLUMNS), index=pd.Index([], name="feature"), dtype=float)
    if is_classifier(estimator) and len(np.unique(response)) > 2:
        return _softmax_half(x, response, grouping, ~first, columns, names, confidence, clustered)
    half = _logistic_half if is_classifier(estimator) else _squared_half
    coefficients, covariance = half(
        x[~first], response[~first], grouping.where(~first), columns, own_levels=own_levels, clustered=clustered
    )
    rows, count = int((~first).sum()), grouping.where(~first).count
    parameters = len(columns) + (count if own_levels else 1)
    errors = standard_errors(covariance, rows, parameters)
    width = t.isf((1 - confidence) / 2, count - 1 if clustered else max(rows - parameters, 1)) * errors
    return pd.DataFrame(
        dict(zip(INTERVAL_COLUMNS, (coefficients, errors, coefficients - width, coefficients + width), strict=True)),
        index=pd.Index([names[column] for column in columns], name="feature"),
    )


def _softmax_half(
    x: np.ndarray,
    y: np.ndarray,
    grouping: Grouping,
    second: np.ndarray,
    columns: np.ndarray,
    names: list,
    confidence: float,
    clustered: bool,
) -> pd.DataFrame:
    """Intervals of multinomial logistic regression, of each feature and class."""
    classes, codes = class_codes(y)
    scaling, environments = standard_units(x[second][:, columns]), grouping.where(second)
    z, weights, every = scaling.apply(x[second][:, columns]), np.ones(int(second.sum())), np.eye(len(columns))
    scores = softmax_regression(z.T, codes[second], len(classes), weights)
    fits = [(1.0, every, scores)]
    errors = softmax_errors(z, codes[second], weights, environments.rows(), fits, clustered=clustered) / scaling.scale
    coefficients = (scores.coefficients - scores.coefficients.mean(0)) / scaling.scale
    freedom = environments.count - 1 if clustered else max(len(z) - len(columns) - 1, 1)
    width = t.isf((1 - confidence) / 2, freedom) * errors
    found = (coefficients, errors, coefficients - width, coefficients + width)
    labels: Any = ([names[column] for column in columns], classes)
    index: pd.MultiIndex = pd.MultiIndex.from_product(labels, names=["feature", "class"])
    return pd.DataFrame(dict(zip(INTERVAL_COLUMNS, (part.T.ravel() for part in found), strict=True)), index=index)


def _first_half(grouping: Grouping, random: np.random.Generator) -> np.ndarray:
    """(rows,): True for half of the rows of each environment, or one more."""
    first = np.zeros(len(grouping.codes), bool)
    for rows in grouping.rows():
        first[random.permutation(rows)[: (len(rows) + 1) // 2]] = True
    if first.all():
        raise ValueError("environments must have two rows or more for a split into halves, got one row in each")
    return first


def _squared_half(
    x: np.ndarray, y: np.ndarray, grouping: Grouping, columns: np.ndarray, *, own_levels: bool, clustered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of least squares, and their covariance."""
    names = [f"x{column}" for column in columns]
    known = standardized(collect_moments(x[:, columns], y, grouping, names=names), within=own_levels)
    evidence, every = squared_evidence(known), np.arange(len(columns))
    fitted = evidence.solve(every)
    units = known.scale[-1] / known.scale[:-1]
    covariance = pooled_covariance(evidence, fitted, every, clustered=clustered)
    return fitted.coefficients * units, covariance * np.outer(units, units)


def _logistic_half(
    x: np.ndarray, y: np.ndarray, grouping: Grouping, columns: np.ndarray, *, own_levels: bool, clustered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of logistic regression, and their covariance; its environments share an intercept."""
    del own_levels
    _, positive = two_classes(y)
    scaling = standard_units(x[:, columns])
    z = scaling.apply(x[:, columns]).T
    rows = [LogisticRows(z[:, own], positive[own].astype(float), np.ones(len(own))) for own in grouping.rows()]
    w, intercept = logistic_evidence(rows).solve(np.arange(len(columns)))
    every = np.arange(len(columns) + 1)
    evidence = logistic_evidence([with_constant(part) for part in rows])
    covariance = pooled_covariance(evidence, LinearModel(np.append(w, 0.0), intercept), every, clustered=clustered)
    return w / scaling.scale, covariance[:-1, :-1] / np.outer(scaling.scale, scaling.scale)
