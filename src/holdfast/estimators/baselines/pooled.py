"""Regression that does not look at environments."""

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.validation import validate_data

from holdfast.core.grouping import group_rows
from holdfast.core.moments import standard_units
from holdfast.estimators.contract import LinearClassifier, LinearRegressor, regression_rows


class PooledRegressor(LinearRegressor):
    """Least squares or ridge regression on all rows: scikit-learn's, with an argument for the environments.

        sum_i (y_i - w x_i - b)^2 + regularization * rows * |w|^2

    Args:
        regularization: 0 for least squares.

    Attributes:
        coef_: (features,), w.
        intercept_: b.
        environments_: the labels of the environments.

    Example:
        >>> PooledRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
        array([7.])
    """

    def __init__(self, regularization: float = 0.0):
        self.regularization = regularization

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "PooledRegressor":
        """Fit; the environments are checked and not used."""
        inputs, targets, _ = regression_rows(self, X, y, environments)
        if self.regularization < 0:
            raise ValueError(f"regularization must be at least 0, got {self.regularization}")
        penalty = self.regularization * len(targets)
        fitted = (Ridge(penalty) if penalty else LinearRegression()).fit(inputs, targets)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)
        return self


class PooledClassifier(LinearClassifier):
    """Logistic regression on all rows with standardised features: scikit-learn's, with an argument for environments.

    Args:
        regularization: of the coefficients of standardised features, relative to the mean loss.

    Attributes:
        classes_: the labels.
        coef_: (1, features) for two classes, (classes, features) for more.
        intercept_: (1,) or (classes,).

    Example:
        >>> PooledClassifier().fit([[-2.0], [-1.0], [1.0], [2.0]], list("aabb")).predict([[3.0]])
        array(['b'], dtype='<U1')
    """

    def __init__(self, regularization: float = 1e-4):
        self.regularization = regularization

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "PooledClassifier":
        """Fit; the environments are checked and not used."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        group_rows(environments, len(labels))
        if not self.regularization > 0:
            raise ValueError(f"regularization must be above 0, got {self.regularization}")
        inverse = 1 / (self.regularization * len(labels))
        scaling = standard_units(inputs)
        fitted = LogisticRegression(C=inverse, max_iter=1000).fit(scaling.apply(inputs), labels)
        self.coef_, shift = scaling.undo(fitted.coef_)
        self.classes_, self.intercept_ = fitted.classes_, fitted.intercept_ + shift
        return self
