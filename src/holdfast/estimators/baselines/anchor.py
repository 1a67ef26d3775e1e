"""Anchor regression, with the environments as anchors."""

from typing import Any

import numpy as np

from holdfast.core.versions import for_comparisons
from holdfast.estimators.baselines.pooled import PooledRegressor
from holdfast.estimators.contract import LinearRegressor, regression_rows


class AnchorRegressor(LinearRegressor):
    """Least squares that pays more for errors which differ between environments on average.

        sum_i (y_i - w x_i)^2 + (gamma - 1) sum_i (mean of y - w x in the environment of i)^2,    y and x centred

    The work is done by the package `ivmodels`, which gets an indicator of each environment but the first as anchors.

    Reference: D. Rothenhäusler, N. Meinshausen, P. Bühlmann, J. Peters, *Anchor regression: heterogeneous data meet
    causality*, Journal of the Royal Statistical Society B 83 (2021), eq. 6.

    Args:
        gamma: 1 is least squares; larger values protect against larger shifts of the means.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> inputs, environments = np.array([[0.0], [1.0], [2.0], [4.0]]), ["a", "a", "b", "b"]
        >>> AnchorRegressor(gamma=1.0).fit(inputs, 2 * inputs[:, 0], environments=environments).coef_.round(6)
        array([2.])
    """

    def __init__(self, gamma: float = 5.0):
        self.gamma = gamma

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "AnchorRegressor":
        """Fit; with one environment there is no anchor, and the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments, ensure_min_samples=2)
        if not self.gamma > 0:
            raise ValueError(f"gamma must be above 0, got {self.gamma}")
        if grouping.count == 1:
            fitted = PooledRegressor().fit(inputs, targets)
        else:
            indicators = (grouping.codes[:, None] == np.arange(1, grouping.count)).astype(float)
            package = for_comparisons("ivmodels.models.anchor_regression", "anchor regression")
            fitted = package.AnchorRegression(gamma=self.gamma).fit(inputs, targets, Z=indicators)
        self.coef_ = np.asarray(fitted.coef_, float).ravel()
        self.intercept_ = float(fitted.intercept_)
        return self
