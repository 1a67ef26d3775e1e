"""Published methods for invariance as estimators."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from holdfast.algorithms.invariance.base import InvarianceMethod
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.losses.logistic import rows_with_intercept
from holdfast.algorithms.losses.squared import second_moments
from holdfast.core.grouping import group_rows
from holdfast.core.moments import Scaling, own_units, standard_units
from holdfast.estimators.baselines.fitting import fit_side_by_side, uniform_starts
from holdfast.estimators.contract import LinearClassifier, LinearRegressor, two_classes


@dataclass(eq=False, repr=False)
class _ExplicitMethod:
    """The settings of both estimators, and the runs of their method."""

    method: InvarianceMethod | None = None
    _: KW_ONLY
    steps: int = 10_000
    standardize: bool = True
    random_state: int | np.random.RandomState | None = 0

    def _units(self, x: np.ndarray) -> Scaling:
        return standard_units(x) if self.standardize else own_units(x.shape[1])

    def _fit_method(
        self, summarise: Callable[..., Any], inputs: np.ndarray, targets: np.ndarray, environments: Any
    ) -> tuple[np.ndarray, float]:
        """Coefficients of the inputs, (features,), and the intercept; sets the labels of the environments."""
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        grouping, scaling = group_rows(environments, len(targets)), self._units(inputs)
        self.environments_ = grouping.labels
        data = summarise(scaling.apply(inputs), targets, grouping.rows())
        method = InvariantRiskMinimization() if self.method is None else self.method
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        starts = uniform_starts(1, inputs.shape[1], seed)
        found = fit_side_by_side([method], [data], starts[None], steps=self.steps, seeds=[seed])[0, 0]
        if not np.isfinite(found).all():
            raise ValueError(f"method diverged on these data: choose a smaller step_size than that of {method}")
        coefficients, shift = scaling.undo(found[:-1])
        return coefficients, float(found[-1] + shift)


class ExplicitRegressor(_ExplicitMethod, LinearRegressor):
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

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitRegressor":
        """Fit; without labels all rows are one environment."""
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        response = self._units(targets[:, None])
        scaled = response.apply(targets[:, None])[:, 0]
        coefficients, intercept = self._fit_method(second_moments, inputs, scaled, environments)
        self.coef_ = coefficients * response.scale[0]
        self.intercept_ = float(intercept * response.scale[0] + response.location[0])
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ExplicitClassifier(_ExplicitMethod, LinearClassifier):
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

    steps: int = 1_000

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitClassifier":
        """Fit; without labels all rows are one environment."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = two_classes(labels)
        coefficients, intercept = self._fit_method(rows_with_intercept, inputs, codes, environments)
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.classifier_tags.multi_class = False
        return tags
