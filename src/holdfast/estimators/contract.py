"""The contract of an estimator with environments, the settings of ours, and linear predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Protocol, Self, get_args, get_origin

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.progress import Progress
from holdfast.core.validation import NOT_NEGATIVE, SHARE, Rule
from holdfast.tables.frames import is_dask_frame, map_rows


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

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""


# Types of settings; what is not a number by the rule is one of the names.
PoolingWeight = Annotated[float | Literal["auto"], SHARE]
Search = Literal["exponents", "elimination"]
Significance = Annotated[float, Rule("a number between 0 and 1", lambda value: 0 < value < 1)]
Tolerance = Annotated[float, NOT_NEGATIVE]
KnotCount = Annotated[int | Literal["auto"], Rule("a whole number of at least 4", lambda value: value >= 4, whole=True)]
Level = Literal["common", "environment"]
Verbosity = Annotated[int | Progress, Rule("0, 1 or a function of (done, total)", lambda value: value >= 0)]


@dataclass(kw_only=True, eq=False, repr=False)
class FitSettings:
    """How what is invariant is searched for; `HeteroRegressor` explains the fields."""

    pooling: PoolingWeight = "auto"
    search: Search = "exponents"
    significance: Significance = 0.001
    tolerance: Tolerance = 0.0
    before: Sequence[Any] = ()
    after: Sequence[Any] = ()
    verbose: Verbosity = 0


@dataclass(kw_only=True, eq=False, repr=False)
class SearchSettings(FitSettings):
    """The same among features, which may be grouped or rotated."""

    groups: Sequence[Any] | None = None
    rotation: bool = False


def declared(settings: Any, names: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(features,) each: which are declared to come before the response, and which after it.

    Features are declared by their names, by their numbers, or all of a group at once by its label.

    Example:
        >>> declared(SearchSettings(before=["dose"], after=[2]), ["dose", "age", "marker"])[1].tolist()
        [False, False, True]
    """
    names, masks = [str(name) for name in names], []
    labels = getattr(settings, "groups", None)
    labels = names if labels is None or len(labels) != len(names) else labels
    for argument in ("before", "after"):
        given = getattr(settings, argument)
        mask = np.zeros(len(names), bool)
        for column in [given] if np.ndim(given) == 0 else given:
            number = isinstance(column, int | np.integer) and not isinstance(column, bool)
            meant = [
                place == column if number else isinstance(column, str) and column in (name, label)
                for place, (name, label) in enumerate(zip(names, labels, strict=True))
            ]
            if not any(meant):
                known = ", ".join(names[:20])
                raise ValueError(f"{argument} must hold names or numbers of features ({known}), got {column!r}")
            mask |= meant
        masks.append(mask)
    if (both := np.flatnonzero(masks[0] & masks[1])).size:
        raise ValueError(f"before and after must not share a feature, got {names[both[0]]!r} in both")
    return masks[0], masks[1]


def check_settings(estimator: Any) -> None:
    """Check the settings of one of our estimators by what the types of its fields say about numbers and names.

    Example:
        >>> from holdfast.estimators import HeteroRegressor
        >>> check_settings(HeteroRegressor(pooling=2))
        Traceback (most recent call last):
        ValueError: pooling must be 'auto' or a number from 0 to 1, got 2
    """
    for field in fields(estimator):
        kind, *extra = get_args(field.type) if get_origin(field.type) is Annotated else [field.type]
        rules = [each for each in extra if isinstance(each, Rule)]
        parts = [kind] if get_origin(kind) is Literal or kind is bool else get_args(kind)
        named = [name for part in parts if get_origin(part) is Literal for name in get_args(part)]
        named += [True, False] if bool in parts else []
        value = getattr(estimator, field.name)
        by_name = any(value is each or (isinstance(value, str | np.bool_) and value == each) for each in named)
        if not (named or rules) or by_name or (field.name == "verbose" and callable(value)):
            continue
        *first, last = [*map(repr, named), *(rule.allowed for rule in rules)]
        allowed = f"{', '.join(first)} or {last}" if first else last
        (rules[0] if rules else Rule("", lambda value: False))._replace(allowed=allowed).check(field.name, value)


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Prediction by `coef_` and `intercept_`; a subclass provides `fit`."""

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses; of a Dask data frame, a column of Dask."""
        check_is_fitted(self)
        if is_dask_frame(X):
            return map_rows(X, self.predict)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self.coef_ + self.intercept_


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Prediction of two or more classes by linear scores; a subclass provides `fit`.

    Two classes have one score, the log-odds of the second, with `coef_` of shape (1, features) and `intercept_` of
    shape (1,). More classes have a score each, whose softmax are their probabilities, with shapes (classes, features)
    and (classes,). Of a Dask data frame, all methods return what Dask computes later.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """(rows,), log-odds of the second of two classes, or (rows, classes), scores up to a number for each row."""
        check_is_fitted(self)
        if is_dask_frame(X):
            return map_rows(X, self.decision_function, self.classes_)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, classes), probabilities of the classes."""
        if is_dask_frame(X):
            return map_rows(X, self.predict_proba, self.classes_)
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return softmax(scores, axis=1)
        second = expit(scores)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the most probable class."""
        if is_dask_frame(X):
            return map_rows(X, self.predict)
        scores = self.decision_function(X)
        return self.classes_[scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(int)]
