"""What rows that a fit has not seen say: errors in new environments, intervals that selection does not distort."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_X_y

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.core.progress import Progress
from holdfast.estimators.array_rows import array_rows, class_codes
from holdfast.estimators.classifier import ClassRows, class_rows
from holdfast.estimators.contract import EnvironmentEstimator
from holdfast.estimators.inference import pooled_covariance, softmax_errors, standard_errors, with_intercept
from holdfast.estimators.search.class_fits import softmax_regression
from holdfast.estimators.search.evidence import Evidence, LogisticEvidence, SquaredEvidence

INTERVAL_COLUMNS = ("coefficient", "standard_error", "low", "high")


def held_out_errors(
    estimators: Mapping[str, EnvironmentEstimator],
    X: Any,
    y: Any,
    environments: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Leave out one environment after the other, fit the rest, and predict it.

    Args:
        estimators: name -> estimator: one of ours, or one of scikit-learn, which is fitted without the environments.
        X: (rows, features).
        y: (rows,).
        environments: one label for each row; at least two different ones.
        progress: called with (fits done, fits in all).

    Returns:
        environments x estimators: mean squared errors, or shares of wrong classes.

    Example, the second environment is shifted by 1:
        >>> from holdfast.estimators.baselines import PooledRegressor
        >>> x, environments = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
        >>> y = x[:, 0] + (environments == "b")
        >>> held_out_errors({"pooled": PooledRegressor()}, x, y, environments).round(3)["pooled"].to_dict()
        {'a': 1.0, 'b': 1.0}
    """
    grouping = group_rows(environments, len(X))
    if grouping.count < 2:
        raise ValueError(f"environments must hold two different labels, for one to be held out, got {grouping.labels}")
    labels = np.array(grouping.labels, dtype=object)[grouping.codes]
    table, response = pd.DataFrame(X).reset_index(drop=True), np.asarray(y)
    out = pd.DataFrame(index=pd.Index(grouping.labels, name="environment"), columns=list(estimators), dtype=float)
    for number, label in enumerate(grouping.labels):
        held_out = grouping.codes == number
        if len(np.unique(response[~held_out])) < 2:
            raise ValueError(f"y must vary among the rows that are left when {label!r} is held out, got one value only")
        for name, estimator in estimators.items():
            takes = "environments" in signature(estimator.fit).parameters
            extra = {"environments": labels[~held_out]} if takes else {}
            predicted = clone(estimator).fit(table[~held_out], response[~held_out], **extra).predict(table[held_out])
            true = response[held_out]
            losses = predicted != true if is_classifier(estimator) else (predicted - true) ** 2
            out.loc[label, name] = float(np.mean(losses))
            if progress is not None:
                progress(int(out.notna().to_numpy().sum()), out.size)
    return out


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
    columns = np.flatnonzero(chosen.invariant_)
    second, own_levels = ~first, settings.get("level", "common") == "environment"
    half, index = grouping.where(second), pd.Index([names[column] for column in columns], name="feature")
    if len(columns) == 0:
        return pd.DataFrame(columns=list(INTERVAL_COLUMNS), index=index, dtype=float)
    x, y, parameters = x[second][:, columns], response[second], len(columns) + (half.count if own_levels else 1)
    if is_classifier(estimator):
        classes = class_codes(response)[0]
        rows = class_rows(array_rows(None, x, y, half, classes=True), index.tolist(), classes)
    evidence: Evidence
    if is_classifier(estimator) and len(classes) > 2:
        coefficients, errors = _softmax_half(rows, clustered)
        index = pd.MultiIndex.from_product([index, classes], names=["feature", "class"])
    else:
        if is_classifier(estimator):
            evidence, units = LogisticEvidence(rows.one_against_all(1)), 1 / rows.table.scaling.scale
        else:
            known = standardized(collect_moments(x, y, half, names=index.tolist()), within=own_levels)
            evidence, units = SquaredEvidence(known), known.scale[-1] / known.scale[:-1]
        fitted = evidence.solve(np.arange(len(columns)))
        coefficients = fitted.coefficients * units
        evidence, fitted = with_intercept(evidence, fitted)
        covariance = pooled_covariance(evidence, fitted, np.arange(evidence.dimension), clustered=clustered)
        errors = standard_errors(covariance, len(x), parameters)[: len(units)] * units
    width = t.isf((1 - confidence) / 2, half.count - 1 if clustered else max(len(x) - parameters, 1)) * errors
    found = (coefficients, errors, coefficients - width, coefficients + width)
    return pd.DataFrame(dict(zip(INTERVAL_COLUMNS, found, strict=True)), index=index)


def _first_half(grouping: Grouping, random: np.random.Generator) -> np.ndarray:
    """(rows,): True for half of the rows of each environment, or one more."""
    first = np.zeros(len(grouping.codes), bool)
    for rows in grouping.rows():
        first[random.permutation(rows)[: (len(rows) + 1) // 2]] = True
    if first.all():
        raise ValueError("environments must have two rows or more for a split into halves, got one row in each")
    return first


def _softmax_half(rows: ClassRows, clustered: bool) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of multinomial logistic regression and their errors, of each feature and class."""
    scores = softmax_regression(rows.z.T, rows.codes, len(rows.classes), rows.weights)
    fits = [(1.0, np.eye(rows.z.shape[1]), scores)]
    errors = softmax_errors(rows.z, rows.codes, rows.weights, rows.parts, fits, clustered=clustered)
    centred = scores.coefficients - scores.coefficients.mean(0)
    scale = rows.table.scaling.scale
    return (centred / scale).T.ravel(), (errors / scale).T.ravel()
