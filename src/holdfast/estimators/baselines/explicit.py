"""Published methods for invariance as estimators."""

from typing import Any

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from holdfast.algorithms.invariance.base import InvarianceMethod
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.losses.logistic import LogisticRows, rows_with_intercept
from holdfast.algorithms.losses.squared import SecondMoments, second_moments
from holdfast.core.grouping import group_rows
from holdfast.core.moments import own_units, standard_units
from holdfast.estimators.baselines.fitting import fit_side_by_side, uniform_starts
from holdfast.estimators.contract import LinearClassifier, LinearRegressor, two_classes


class ExplicitRegressor(LinearRegressor):
    """Linear regression by a method that treats environments explicitly: IRMv1, V-REx, Group DRO, AND-mask or Fish.

    Args:
        method: one of `holdfast.algorithms.invariance`, with its hyper-parameters; None: IRMv1 with the published ones.
        steps: full-batch steps.
        standardize: give the method features and a target of mean 0 and variance 1. The published code does not.
        random_state: of the start, and of the order of environments in Fish.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.algorithms.invariance import RiskExtrapolation
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
        method: InvarianceMethod | None = None,
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
        scaling = standard_units(inputs) if self.standardize else own_units(inputs.shape[1])
        response = standard_units(targets[:, None]) if self.standardize else own_units(1)
        rows = grouping.rows()
        found = _fit(self, second_moments(scaling.apply(inputs), response.apply(targets[:, None])[:, 0], rows))
        found = found * response.scale[0]
        self.coef_, shift = scaling.undo(found[:-1])
        self.intercept_ = float(found[-1] + shift + response.location[0])
        self.environments_ = grouping.labels
        return self


class ExplicitClassifier(LinearClassifier):
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
        >>> from holdfast.algorithms.invariance import AgreementMask
        >>> fitted = ExplicitClassifier(AgreementMask(step_size=0.1), steps=200)
        >>> fitted.fit([[-2.0], [-1.0], [1.0], [2.0]], list("aabb"), environments=[0, 1, 0, 1]).predict([[3.0]])
        array(['b'], dtype='<U1')
    """

    def __init__(
        self,
        method: InvarianceMethod | None = None,
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
        self.classes_, codes = two_classes(labels)
        grouping = group_rows(environments, len(labels))
        scaling = standard_units(inputs) if self.standardize else own_units(inputs.shape[1])
        found = _fit(self, rows_with_intercept(scaling.apply(inputs), codes, grouping.rows()))
        coefficients, shift = scaling.undo(found[:-1])
        self.coef_, self.intercept_ = coefficients[None], np.array([found[-1] + shift])
        self.environments_ = grouping.labels
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.classifier_tags.multi_class = False
        return tags


def _fit(estimator: ExplicitRegressor | ExplicitClassifier, data: SecondMoments | LogisticRows) -> np.ndarray:
    if estimator.steps < 1:
        raise ValueError(f"steps must be at least 1, got {estimator.steps}")
    method = InvariantRiskMinimization() if estimator.method is None else estimator.method
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    starts = uniform_starts(1, estimator.n_features_in_, seed)
    found = fit_side_by_side([method], [data], starts[None], steps=estimator.steps, seeds=[seed])[0, 0]
    if not np.isfinite(found).all():
        raise ValueError(f"method diverged on these data: choose a smaller step_size than that of {method}")
    return found
