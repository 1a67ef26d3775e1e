"""The contract of an estimator with environments, and the checks that all of ours share."""

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.estimators.grouping import Grouping, group_rows


class EnvironmentEstimator(Protocol):
    """A predictor that may use the environments of the rows it is fitted to; scikit-learn's conventions hold.

    Example, least squares that ignores the environments is one:
        >>> from holdfast.estimators.baselines import PooledRegressor
        >>> estimator: EnvironmentEstimator = PooledRegressor()
        >>> x = np.arange(4.0)[:, None]
        >>> estimator.fit(x, 2 * x[:, 0], environments=[0, 0, 1, 1]).predict([[10.0]]).round(3).tolist()
        [20.0]
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit to rows X, responses y and one label of an environment for each row; None: one environment."""
        ...

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        ...


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Prediction by `coef_` and `intercept_`; a subclass provides `fit`."""

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self.coef_ + self.intercept_


class BinaryClassifier(ClassifierMixin, BaseEstimator):
    """Prediction of two classes by `coef_`, (1, features), and `intercept_`, (1,); a subclass provides `fit`."""

    def decision_function(self, X: Any) -> np.ndarray:
        """(rows,), log-odds of the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, 2), probabilities of the two classes."""
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the more probable class."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.classifier_tags.multi_class = False
        return tags


def two_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two labels, and 0 or 1 for each row; ValueError if there are more or fewer.

    Example:
        >>> two_classes(np.array(["b", "a", "b"]))
        (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        # scikit-learn's own checks ask for this first sentence
        raise ValueError(f"Only binary classification is supported. y must hold two classes, got {len(classes)}")
    if len(classes) < 2:
        raise ValueError(f"y must hold two classes, got one class only: {classes.tolist()}")
    return classes, codes


class WeightedRows(NamedTuple):
    """The rows of a table that count.

    Attributes:
        x: (rows, features).
        y: (rows,).
        grouping: their environments; those without rows are left out.
        weights: (rows,), all positive; how many rows each row stands for.
    """

    x: np.ndarray
    y: np.ndarray
    grouping: Grouping
    weights: np.ndarray


def weighted_rows(x: np.ndarray, y: np.ndarray, environments: Any, sample_weight: Any) -> WeightedRows:
    """Leave out the rows of weight zero.

    Args:
        x: (rows, features).
        y: (rows,).
        environments: one label for each row; None: one environment.
        sample_weight: one number for each row, or one for all; None: 1.

    Example:
        >>> rows = weighted_rows(np.eye(3), np.arange(3), ["a", "b", "b"], [0, 2, 1])
        >>> rows.y.tolist(), rows.grouping.labels, rows.weights.tolist()
        ([1, 2], ['b'], [2.0, 1.0])
    """
    grouping = group_rows(environments, len(x))
    if sample_weight is None:
        return WeightedRows(x, y, grouping, np.ones(len(x)))
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim == 0:
        weights = np.full(len(x), float(weights))
    if weights.shape != (len(x),):
        raise ValueError(f"sample_weight must be one number for each of the {len(x)} rows, got shape {weights.shape}")
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    positive = weights > 0
    if not positive.any():
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    return WeightedRows(x[positive], y[positive], grouping.where(positive), weights[positive])


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


# argument -> (what is allowed, whether a value is)
_SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "amplification": ("None or a number of at least 0", lambda value: value is None or (_number(value) and value >= 0)),
    "step_size": (
        "None or a number between 0 and 1",
        lambda value: value is None or (_number(value) and 0 < value < 1),
    ),
    "pooling": (
        "'auto' or a number from 0 to 1",
        lambda value: value == "auto" if isinstance(value, str) else _number(value) and 0 <= value <= 1,
    ),
    "search": (
        "'exponents', 'elimination' or 'dynamics'",
        lambda value: value in ("exponents", "elimination", "dynamics"),
    ),
    "task": (
        "'auto', 'regression' or 'classification'",
        lambda value: value in ("auto", "regression", "classification"),
    ),
    "effects": ("'auto', 'smooth' or 'linear'", lambda value: value in ("auto", "smooth", "linear")),
    "interactions": (
        "'auto', True or False",
        lambda value: value == "auto" if isinstance(value, str) else isinstance(value, bool | np.bool_),
    ),
    "knots": (
        "'auto' or a whole number of at least 4",
        lambda value: value == "auto" or (isinstance(value, int | np.integer) and int(value) >= 4),
    ),
    "significance": ("a number between 0 and 1", lambda value: _number(value) and 0 < value < 1),
    "tolerance": ("a number of at least 0", lambda value: _number(value) and value >= 0),
    "orders": ("a whole number of at least 1", lambda value: isinstance(value, int | np.integer) and int(value) >= 1),
    "level": ("'common' or 'environment'", lambda value: value in ("common", "environment")),
    "rotation": ("True or False", lambda value: isinstance(value, bool | np.bool_)),
}


def check_settings(estimator: BaseEstimator) -> int:
    """Check the arguments of one of our estimators; returns the seed that its `random_state`, if any, gives."""
    settings = estimator.get_params(deep=False)
    for name, value in settings.items():
        allowed, valid = _SETTINGS.get(name, ("", lambda value: True))
        if not valid(value):
            raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return int(check_random_state(settings.get("random_state", 0)).randint(2**31 - 1))
