"""Explicit methods for invariance as estimators."""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.algorithms.explicit import InvariantRiskMinimization, Method
from holdfast.algorithms.risks import moments, signed_rows
from holdfast.estimators.baselines.fitting import fit_side_by_side, uniform_starts
from holdfast.estimators.grouping import group_rows


class ExplicitRegressor(RegressorMixin, BaseEstimator):
    """Linear regression by a method that treats environments explicitly: IRMv1, V-REx, Group DRO, AND-mask or Fish.

    Args:
        method: one of `holdfast.algorithms.explicit`, with its hyper-parameters; None is IRMv1 with the published ones.
        steps: full-batch steps.
        standardize: give the method features and a target of mean 0 and variance 1. The published code does not.
        random_state: of the start, and of the order of environments in Fish.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.algorithms.explicit import RiskExtrapolation
        >>> from holdfast.datasets import toy_dataset
        >>> data = toy_dataset(1.0, 0.5, seed=0, samples=500).train
        >>> fitted = ExplicitRegressor(RiskExtrapolation(penalty=10)).fit(
        ...     data.inputs, data.targets, environments=data.environments
        ... )
        >>> fitted.coef_.shape
        (12,)
    """

    def __init__(
        self,
        method: Method | None = None,
        *,
        steps: int = 10_000,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.method = method
        self.steps = steps
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitRegressor":
        """Fit; without labels all rows are one environment."""
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        grouping = group_rows(environments, len(targets))
        scaling = _Scaling(inputs, self.standardize)
        centre, spread = _units(targets[:, None], self.standardize)
        data = moments(scaling.apply(inputs), (targets - centre[0]) / spread[0], grouping.rows())
        found = _fit(self, data, inputs.shape[1])
        self.coef_, self.intercept_ = scaling.undo(found * spread[0])
        self.intercept_ += centre[0]
        self.environments_ = grouping.labels
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The linear prediction."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


class ExplicitClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression of two classes by a method that treats environments explicitly; see `ExplicitRegressor`.

    Args:
        method: see `ExplicitRegressor`.
        steps: full-batch steps.
        standardize: give the method features of mean 0 and variance 1. The published code does not.
        random_state: of the start, and of the order of environments in Fish.

    Attributes:
        classes_: the two labels.
        coef_: (1, features), of the score of the second.
        intercept_: (1,).
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.algorithms.explicit import AgreementMask
        >>> fitted = ExplicitClassifier(AgreementMask(step_size=0.1), steps=200)
        >>> fitted.fit([[-2.0], [-1.0], [1.0], [2.0]], list("aabb"), environments=[0, 1, 0, 1]).predict([[3.0]])
        array(['b'], dtype='<U1')
    """

    def __init__(
        self,
        method: Method | None = None,
        *,
        steps: int = 1_000,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.method = method
        self.steps = steps
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitClassifier":
        """Fit; without labels all rows are one environment."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        if type_of_target(labels, input_name="y", raise_unknown=True) != "binary":
            # scikit-learn's own checks ask for this first sentence
            raise ValueError(
                f"Only binary classification is supported. y must hold two classes, got {len(np.unique(labels))}"
            )
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes, got one class, {self.classes_[0]!r}")
        grouping = group_rows(environments, len(labels))
        scaling = _Scaling(inputs, self.standardize)
        data = signed_rows(scaling.apply(inputs), codes.astype(float), grouping.rows())
        coefficients, intercept = scaling.undo(_fit(self, data, inputs.shape[1]))
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
        self.environments_ = grouping.labels
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of the second class; above 0 it is predicted."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_[0] + self.intercept_[0]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class."""
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """The likelier class."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _fit(estimator: ExplicitRegressor | ExplicitClassifier, data: Any, features: int) -> np.ndarray:
    if estimator.steps < 1:
        raise ValueError(f"steps must be at least 1, got {estimator.steps}")
    method = InvariantRiskMinimization() if estimator.method is None else estimator.method
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    starts = uniform_starts(1, features, seed)
    (found,) = fit_side_by_side([method], data, starts, steps=estimator.steps, seed=seed)
    if not np.isfinite(found).all():
        raise ValueError(f"method diverged on these data: choose a smaller step_size than that of {method}")
    return found


def _units(columns: np.ndarray, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations, the latter 1 for a constant column; 0 and 1 if nothing is to be standardised."""
    if not standardize:
        return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
    spread = columns.std(0)
    return columns.mean(0), np.where(spread > 0, spread, 1.0)


class _Scaling:
    """Features to standard units, and parameters back."""

    def __init__(self, inputs: np.ndarray, standardize: bool):
        self._centre, self._spread = _units(inputs, standardize)

    def apply(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs - self._centre) / self._spread

    def undo(self, parameters: np.ndarray) -> tuple[np.ndarray, float]:
        coefficients = parameters[:-1] / self._spread
        return coefficients, float(parameters[-1] - coefficients @ self._centre)
