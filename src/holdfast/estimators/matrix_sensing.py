"""Invariant matrix sensing and quadratic networks on tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.linear_algebra import pack_symmetric, symmetrised
from holdfast.core.moments import collect_moments, standard_units, standardized
from holdfast.estimators.contract import ArrayRows, array_rows, check_settings
from holdfast.estimators.search.matrices import MatrixSettings, evenly_scaled, fit_matrix


@dataclass(kw_only=True, eq=False, repr=False)
class _MatrixRegressor(MatrixSettings, RegressorMixin, BaseEstimator):
    """What both estimators share; a subclass provides `fit` and `predict`."""

    def _fit_packed(self, packed: np.ndarray, rows: ArrayRows) -> tuple[np.ndarray, float]:
        """The matrix and the intercept for packed measurements."""
        try:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            allowed = "None, a whole number from 0 to 2**32 - 1 or a RandomState"
            raise ValueError(f"random_state must be {allowed}, got {self.random_state!r}") from error
        known = standardized(collect_moments(packed, rows.y, rows.grouping, rows.weights))
        even, scale = evenly_scaled(known)
        found = fit_matrix(even, rows.grouping.labels, self, seed)
        self.directions_, self.invariant_ = found.directions, found.selected
        self.effects_, self.stability_ = found.effects, found.stability
        self.step_size_, self.amplification_ = found.settings
        self.environments_, self.advice_ = list(rows.grouping.labels), found.advice
        matrix = found.matrix * float(known.scale[-1]) / scale
        return matrix, float(known.location[-1] - known.location[:-1] @ pack_symmetric(matrix))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        # Many tables have no matrix in their columns, or no quadratic part in the response.
        tags.regressor_tags.poor_score = True
        return tags


class HeteroMatrixSensing(_MatrixRegressor):
    """The part of a low-rank matrix that all environments share, from measurements of it.

        y = <X, A* + A(e)> + noise,    fitted: P = U U^T - V V^T

    by HeteroSGD (Xu, Gu and Fang, NeurIPS 2024, Algorithm 3) on the table with amplified heterogeneity, as
    `holdfast.estimators.search.matrices` explains; the surviving directions get the matrix of pooled least squares.

    Args:
        significance: level of the test whether effects vary. Smaller values select more directions.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
        n_runs: runs of the dynamics, each with its own random order of the environments, reported in `stability_`.
        random_state: of the runs.

    Attributes:
        matrix_: (dimension, dimension), P, symmetric.
        coef_: its entries, in the order of the columns of X.
        intercept_: a number.
        directions_: (dimension, dimension), orthonormal columns, the selected ones first.
        invariant_: (dimension,), which of them survive.
        stability_, effects_: tables of directions, as for features in `HeteroRegressor`.
        amplification_, step_size_: the choice.
        advice_: sentences.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X, environments = random.standard_normal((4000, 3, 3)), np.repeat([0, 1], 2000)
        >>> strength = np.where(environments == 0, 2.0, -1.0)
        >>> y = X[:, 0, 0] + strength * X[:, 1, 1] + 0.1 * random.standard_normal(4000)
        >>> model = HeteroMatrixSensing(n_runs=2).fit(X, y, environments=environments)
        >>> np.abs(model.matrix_.round(1)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroMatrixSensing":
        """Fit to measurements.

        Args:
            X: (rows, dimension, dimension), or (rows, columns) with the entries of a matrix in each row, row by row;
                if their number is not a square, the last entries of the matrix are zero.
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        check_settings(self)
        rows = array_rows(self, _flat(X), y, environments, sample_weight)
        features = rows.x.shape[1]
        self.dimension_ = int(np.ceil(np.sqrt(features)))
        filled = np.zeros((len(rows.x), self.dimension_, self.dimension_))
        filled.reshape(len(filled), -1)[:, :features] = rows.x
        self.matrix_, self.intercept_ = self._fit_packed(pack_symmetric(symmetrised(filled)), rows)
        self.coef_ = self.matrix_.ravel()[:features]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, _flat(X), reset=False, dtype=np.float64)
        return X @ self.coef_ + self.intercept_


class HeteroQuadraticRegressor(_MatrixRegressor):
    """A network with quadratic activation whose neurons hold in all environments.

        y = sum_j s_j (a_j^T z)^2 + b = <z z^T, P> + b,    P = sum_j s_j a_j a_j^T

    on standardised features z: matrix sensing with measurements z z^T. The gradient of such measurements contains the
    trace of the residual, which Algorithm 4 of Xu, Gu and Fang (NeurIPS 2024) removes by a shrinkage; with a fixed
    table the intercept removes it: it centres z z^T and y, and what is left of the gradient is 2 (P - A) for normal
    features.

    Args:
        significance, tolerance, n_runs, random_state: as in `HeteroMatrixSensing`.

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
        >>> model = HeteroQuadraticRegressor(n_runs=2).fit(X, y, environments=environments)
        >>> bool(abs(model.matrix_[0, 0] - 1) < 0.1 > abs(model.matrix_[1, 1]))
        True
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroQuadraticRegressor":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        check_settings(self)
        rows = array_rows(self, X, y, environments, sample_weight)
        self.location_, self.scale_, _ = standard_units(rows.x.astype(float), rows.weights)
        self.matrix_, self.intercept_ = self._fit_packed(self._squares(rows.x), rows)
        self.coef_ = self.matrix_ / (self.scale_[:, None] * self.scale_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._squares(X) @ pack_symmetric(self.matrix_) + self.intercept_

    def _squares(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.location_) / self.scale_
        return pack_symmetric(z[:, :, None] * z[:, None, :])


def _flat(X: Any) -> Any:
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim == 3 else X
