"""Invariant logistic regression."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from holdfast.estimators.dynamics import logistic_program
from holdfast.estimators.evidence import logistic_evidence
from holdfast.estimators.grouping import group_rows, rows_counted
from holdfast.estimators.linear import Coordinates, Table, fit_linear
from holdfast.estimators.regressor import publish
from holdfast.estimators.rotation import joint_directions, principal_directions


class HeteroClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression, for two classes, on the features whose effects are the same in all environments.

    As `HeteroRegressor`, with the logistic loss

        loss_e = mean over the rows of e of log(1 + exp(-s (z^T w + b))),    s = +-1

    The runs see at most 512 rows of each environment, drawn at random; the tests and the final fit of the surviving
    features see all of them. That fit has the weak ridge of one observation, which keeps it finite if the classes can
    be separated.

    Args:
        amplification: k; None: chosen from the data.
        step_size: eta; None: chosen from the data.
        significance: level of the tests whether an effect varies. Small values keep more.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
            With 0, the default, any variation beyond sampling error counts. A larger one needs more care than for
            regression: where classes are nearly separable, coefficients and what is allowed to them grow without
            bounds.
        orders: random orders of the environments whose runs are reported in `stability_`.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        random_state: of the orders and of the rows.

    Attributes:
        classes_: the two labels; coefficients are for the second.
        coef_: (1, features), exactly 0 where washed out.
        intercept_: (1,).
        invariant_, stability_, effects_, advice_, amplification_, step_size_, compares_, choice_, environments_,
            directions_, coordinates_, scale_, response_scale_, paths_: as in `HeteroRegressor`, effects in log-odds.

    Example:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["here", "there", "yonder"], 1000)
        >>> cause = random.standard_normal(3000)
        >>> y = np.where(cause + random.logistic(size=3000) > 0, "yes", "no")
        >>> strength = np.repeat([2.0, 0.2, 1.0], 1000)
        >>> follower = strength * (y == "yes") + random.standard_normal(3000)
        >>> model = HeteroClassifier().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    _parameter_constraints: dict = {  # noqa: RUF012  scikit-learn's convention
        "amplification": [Interval(Real, 0, None, closed="left"), None],
        "step_size": [Interval(Real, 0, 1, closed="neither"), None],
        "significance": [Interval(Real, 0, 1, closed="neither")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "orders": [Interval(Integral, 1, None, closed="left")],
        "rotation": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        amplification=None,
        step_size=None,
        significance=0.001,
        tolerance=0.0,
        orders=8,
        rotation=False,
        random_state=0,
    ):
        self.amplification = amplification
        self.step_size = step_size
        self.significance = significance
        self.tolerance = tolerance
        self.orders = orders
        self.rotation = rotation
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroClassifier":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,), two different labels.
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        grouping = group_rows(environments, len(X))
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        there = weights > 0
        X, y, weights, grouping = X[there], y[there], weights[there], rows_counted(grouping, there)
        self.classes_, positive = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(y)}.")
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes, got one class only: {self.classes_.tolist()}")
        location = np.average(X, axis=0, weights=weights)
        variance = np.average((X - location) ** 2, axis=0, weights=weights)
        constant = variance <= 1e-13 * np.maximum(location**2, 1e-300)
        scale = np.sqrt(np.where(constant, 1.0, variance))
        z = (X - location) / scale * ~constant
        names = getattr(self, "feature_names_in_", [f"x{number}" for number in range(X.shape[1])])
        share = float(np.average(positive, weights=weights))
        deviation, words = float(np.sqrt(share * (1 - share))), "the share of each class, whatever the features are"
        table = Table(names, grouping.labels, location, scale, 1.0, constant, deviation, words)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        def problem(system: Coordinates):
            rows = z if system.name == "features" else z @ system.directions
            arguments = (rows, positive.astype(float), grouping.codes, weights, self.tolerance)
            return logistic_evidence(*arguments), logistic_program(*arguments, seed)

        fitted = fit_linear(
            table,
            _systems(z, grouping.codes, weights, self.rotation),
            problem,
            significance=self.significance,
            orders=self.orders,
            seed=seed,
            step_size=self.step_size,
            amplification=self.amplification,
        )
        publish(self, fitted, table)
        self.coef_ = fitted.coefficients[None]
        self.intercept_ = np.atleast_1d(fitted.intercept - location @ fitted.coefficients)
        return self

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.classifier_tags.multi_class = False
        return tags


def _systems(z: np.ndarray, codes: np.ndarray, weights: np.ndarray, rotation: bool) -> list[Coordinates]:
    systems = [Coordinates("features", np.eye(z.shape[1]))]
    if rotation:
        counts = np.bincount(codes, weights)
        parts = [codes == number for number in range(len(counts))]
        second = np.stack([(z[part] * weights[part, None]).T @ z[part] / weights[part].sum() for part in parts])
        systems.append(Coordinates("principal", principal_directions(second, counts / counts.sum())))
        systems.append(Coordinates("joint", joint_directions(second, counts / counts.sum())))
    return systems
