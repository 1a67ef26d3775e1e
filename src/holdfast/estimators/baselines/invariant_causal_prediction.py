"""Invariant causal prediction."""

from typing import Any

import numpy as np
from sklearn.linear_model import lars_path
from sklearn.utils import Tags

from holdfast.core.moments import standard_units
from holdfast.core.versions import for_comparisons
from holdfast.estimators.contract import LinearRegressor, regression_rows

# A test of equal residuals in an environment needs a few of them; smaller ones are left out of the tests.
FEWEST_ROWS = 10


class InvariantCausalRegressor(LinearRegressor):
    """Least squares on the features that belong to every set which predicts the target equally well everywhere.

    All sets of features are tested, by the package `causalicp`, for residuals whose mean and variance do not depend on
    the environment; the intersection of the accepted sets is the estimate, which errs on the side of leaving out. The
    sets are drawn from the first few features on the path of the lasso, since their number doubles with each.

    Reference: J. Peters, P. Bühlmann, N. Meinshausen, *Causal inference by using invariant prediction*, Journal of the
    Royal Statistical Society B 78 (2016), Method II; the preselection as in section 3.5.

    Args:
        significance: level of the tests.
        candidates: features on the path of the lasso whose sets are tested.

    Attributes:
        invariant_: (features,), True for those in the estimate; if there are none, the mean is predicted.
        accepted_: whether any set was accepted at all; if not, the model is wrong for these data.
        coef_: (features,), of least squares on the estimate, 0 elsewhere.
        intercept_: a number.
        environments_: the labels of the environments.

    Example, the second feature follows y with a sign that changes:
        >>> random, environments = np.random.default_rng(0), np.repeat([0, 1], 100)
        >>> cause = (1 + environments) * random.standard_normal(200)
        >>> y = cause + 0.5 * random.standard_normal(200)
        >>> follower = (1 - 3 * environments) * y + 0.5 * random.standard_normal(200)
        >>> model = InvariantCausalRegressor().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    def __init__(self, significance: float = 0.05, *, candidates: int = 8):
        self.significance = significance
        self.candidates = candidates

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantCausalRegressor":
        """Fit; with one environment nothing can be tested, and the estimate is empty."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not 0 < self.significance < 1:
            raise ValueError(f"significance must be between 0 and 1, got {self.significance}")
        chosen = _on_lasso_path(inputs, targets, self.candidates)
        parts = [rows for rows in grouping.rows() if len(rows) >= FEWEST_ROWS]
        found: set[int] | None = set()
        if len(parts) > 1 and len(chosen):
            data = [np.column_stack([inputs[np.ix_(rows, chosen)], targets[rows]]) for rows in parts]
            package = for_comparisons("causalicp", "invariant causal prediction")
            found = package.fit(data, len(chosen), alpha=float(self.significance)).estimate
        self.accepted_ = found is not None
        self.invariant_ = np.isin(np.arange(inputs.shape[1]), chosen[sorted(found or ())])
        selected = inputs[:, self.invariant_]
        centre, mean = selected.mean(0), targets.mean()
        self.coef_ = np.zeros(inputs.shape[1])
        self.coef_[self.invariant_] = np.linalg.lstsq(selected - centre, targets - mean, rcond=None)[0]
        self.intercept_ = float(mean - self.coef_[self.invariant_] @ centre)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # without environments it predicts the mean
        return tags


def _on_lasso_path(inputs: np.ndarray, targets: np.ndarray, count: int) -> np.ndarray:
    """The features that enter the path of the lasso first, in their order in the table."""
    scaling = standard_units(inputs)
    varying = np.flatnonzero(~scaling.constant)
    if len(varying) <= count:
        return varying
    _, _, coefficients = lars_path(scaling.apply(inputs)[:, varying], targets - targets.mean(), method="lasso")
    entry = np.where(coefficients.any(1), (coefficients != 0).argmax(1), coefficients.shape[1])
    return np.sort(varying[np.argsort(entry, kind="stable")[:count]])
