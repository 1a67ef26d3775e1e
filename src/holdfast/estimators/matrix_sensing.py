"""Invariant matrix sensing and quadratic networks on tables."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from holdfast.core.linear_algebra import pack_symmetric, symmetrised
from holdfast.estimators.advice import advise_matrix
from holdfast.estimators.grouping import Grouping, group_rows, rows_counted
from holdfast.estimators.matrices import MatrixFit, evenly_scaled, fit_matrix
from holdfast.estimators.moments import centred, collect_moments

CONSTRAINTS: dict[str, list] = {
    "significance": [Interval(Real, 0, 1, closed="neither")],
    "tolerance": [Interval(Real, 0, None, closed="left")],
    "orders": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


class HeteroMatrixSensing(RegressorMixin, BaseEstimator):
    """The part of a low-rank matrix that all environments share, from measurements of it.

        y = <X, A* + A(e)> + noise,    fitted: P = U U^T - V V^T

    by HeteroSGD (Xu, Gu and Fang, NeurIPS 2024, Algorithm 3) on the kept table with amplified heterogeneity, as
    `holdfast.estimators.matrices` explains; the surviving directions get the matrix of pooled least squares.

    Args:
        significance: level of the test whether effects vary. Small values keep more.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
        orders: random orders of the environments whose runs are reported in `stability_`.
        random_state: of the orders.

    Attributes:
        matrix_: (dimension, dimension), P, symmetric.
        coef_: its entries, in the order of the columns of X.
        intercept_: a number.
        directions_: (dimension, dimension), orthonormal columns, the kept ones first.
        invariant_: (dimension,), which of them survive.
        stability_, effects_: tables of directions, as for features in `HeteroRegressor`.
        amplification_, step_size_: the choice.
        advice_: sentences.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X, environments = random.standard_normal((4000, 3, 3)), np.repeat([0, 1], 2000)
        >>> strength = np.where(environments == 0, 2.0, -1.0)
        >>> y = X[:, 0, 0] + strength * X[:, 1, 1] + 0.1 * random.standard_normal(4000)
        >>> model = HeteroMatrixSensing(orders=2).fit(X, y, environments=environments)
        >>> np.abs(model.matrix_.round(1)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    _parameter_constraints = CONSTRAINTS

    def __init__(self, *, significance=0.001, tolerance=0.0, orders=8, random_state=0):
        self.significance = significance
        self.tolerance = tolerance
        self.orders = orders
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroMatrixSensing":
        """Fit to measurements.

        Args:
            X: (rows, dimension, dimension), or (rows, columns) with the entries of a matrix in each row, row by row;
                if their number is no square, the last entries of the matrix are zero.
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        self._validate_params()
        X, y = validate_data(self, _flat(X), y, y_numeric=True, dtype=np.float64)
        self.dimension_ = int(np.ceil(np.sqrt(X.shape[1])))
        packed = pack_symmetric(symmetrised(_square(X, self.dimension_)))
        fitted, scale, location, response = _fit_packed(self, packed, y, environments, sample_weight, self.dimension_)
        self.matrix_ = fitted.matrix * response / scale
        self.intercept_ = float(location[-1] - location[:-1] @ pack_symmetric(self.matrix_))
        self.coef_ = self.matrix_.ravel()[: X.shape[1]]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, _flat(X), reset=False, dtype=np.float64)
        return X @ self.coef_ + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.regressor_tags.poor_score = True  # on tables whose columns are no matrix
        return tags


class HeteroQuadraticRegressor(RegressorMixin, BaseEstimator):
    """A network with quadratic activation whose neurons hold in all environments.

        y = sum_j s_j (a_j^T z)^2 + b = <z z^T, P> + b,    P = sum_j s_j a_j a_j^T

    on standardised features z: matrix sensing with measurements z z^T. The gradient of such measurements contains the
    trace of the residual, which Algorithm 4 of Xu, Gu and Fang (NeurIPS 2024) removes by a shrinkage; with a kept
    table the intercept removes it: it centres z z^T and y, and what is left of the gradient is 2 (P - A) for normal
    features.

    Args:
        significance, tolerance, orders, random_state: as in `HeteroMatrixSensing`.

    Attributes:
        matrix_: (features, features), P, for standardised features.
        location_, scale_: means and standard deviations of the features.
        coef_: (features, features), P in the units of the table.
        intercept_: b.
        directions_, invariant_, stability_, effects_, amplification_, step_size_, advice_: as in
            `HeteroMatrixSensing`; the directions are the neurons a_j.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X, environments = random.standard_normal((6000, 3)), np.repeat(["a", "b"], 3000)
        >>> y = X[:, 0] ** 2 + np.where(environments == "a", 2.0, -1.0) * X[:, 1] ** 2
        >>> model = HeteroQuadraticRegressor(orders=2).fit(X, y, environments=environments)
        >>> bool(abs(model.matrix_[0, 0] - 1) < 0.1 > abs(model.matrix_[1, 1]))
        True
    """

    _parameter_constraints = CONSTRAINTS

    def __init__(self, *, significance=0.001, tolerance=0.0, orders=8, random_state=0):
        self.significance = significance
        self.tolerance = tolerance
        self.orders = orders
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroQuadraticRegressor":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.location_ = np.average(X, axis=0, weights=weights)
        variance = np.average((X - self.location_) ** 2, axis=0, weights=weights)
        self.scale_ = np.sqrt(np.where(variance > 1e-13 * np.maximum(self.location_**2, 1e-300), variance, 1.0))
        packed = self._squares(X)
        fitted, scale, location, response = _fit_packed(self, packed, y, environments, sample_weight, X.shape[1])
        self.matrix_ = fitted.matrix * response / scale
        self.intercept_ = float(location[-1] - location[:-1] @ pack_symmetric(self.matrix_))
        self.coef_ = self.matrix_ / (self.scale_[:, None] * self.scale_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._squares(X) @ pack_symmetric(self.matrix_) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.regressor_tags.poor_score = True  # on responses without quadratic part
        return tags

    def _squares(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.location_) / self.scale_
        return pack_symmetric(z[:, :, None] * z[:, None, :])


def _flat(X: Any) -> Any:
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim == 3 else X


def _square(X: np.ndarray, dimension: int) -> np.ndarray:
    filled = np.zeros((len(X), dimension * dimension))
    filled[:, : X.shape[1]] = X
    return filled.reshape(-1, dimension, dimension)


def _fit_packed(
    estimator: Any, packed: np.ndarray, y: np.ndarray, environments: Any, sample_weight: Any, dimension: int
) -> tuple[MatrixFit, float, np.ndarray, float]:
    """Fit and set the attributes that both estimators share; returns the fit and the units to undo."""
    grouping: Grouping = group_rows(environments, len(packed))
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, packed, dtype=np.float64, ensure_non_negative=True)
        there = weights > 0
        packed, y, weights, grouping = packed[there], y[there], weights[there], rows_counted(grouping, there)
    known = centred(collect_moments(packed, y, grouping, weights))
    even, scale = evenly_scaled(known)
    fitted = fit_matrix(
        even,
        dimension,
        grouping.labels,
        significance=estimator.significance,
        tolerance=estimator.tolerance,
        orders=estimator.orders,
        seed=int(check_random_state(estimator.random_state).randint(2**31 - 1)),
    )
    estimator.directions_ = fitted.directions
    estimator.invariant_ = fitted.kept
    estimator.stability_ = fitted.stability
    estimator.effects_ = fitted.effects
    estimator.amplification_ = fitted.amplification
    estimator.step_size_ = fitted.step_size
    estimator.environments_ = list(grouping.labels)
    estimator.advice_ = advise_matrix(
        fitted.kept, fitted.pooled_test.significance, grouping.count, fitted.explained, fitted.explained_by_all
    )
    return fitted, scale, known.location, float(known.scale[-1])
