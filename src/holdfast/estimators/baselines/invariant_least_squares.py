"""Environment invariant linear least squares (EILLS)."""

from itertools import combinations
from typing import Any

import numpy as np

from holdfast.core.moments import StandardizedMoments, collect_moments, standardized
from holdfast.estimators.contract import LinearRegressor, regression_rows

# All sets of features are searched: 2^16 of them take seconds, each further feature doubles that.
MOST_FEATURES = 16


class InvariantLeastSquares(LinearRegressor):
    """Least squares that pays for each feature it uses whose product with the residual differs from 0 somewhere.

        mean_e E_e (y - w x)^2 + penalty sum_{j: w_j != 0} mean_e (E_e [x_j (y - w x)])^2

    For a fixed set of features this is a quadratic in w; all sets are searched. Features and target are standardised,
    so that the penalty has no unit. Known as EILLS.

    Reference: J. Fan, C. Fang, Y. Gu, T. Zhang, *Environment invariant linear least squares*, Annals of Statistics 52
    (2024), eq. 3.4; with equal weights of the environments.

    Args:
        penalty: gamma; the paper uses 20 in its simulations.

    Attributes:
        invariant_: (features,), True for those in use.
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.datasets import toy_dataset
        >>> data = toy_dataset(1.0, 0.5, seed=0, samples=500).train
        >>> fitted = InvariantLeastSquares().fit(data.inputs, data.targets, environments=data.environments)
        >>> bool(fitted.invariant_[:3].all()), bool(fitted.invariant_[3:6].any())
        (True, False)
    """

    def __init__(self, penalty: float = 20.0):
        self.penalty = penalty

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantLeastSquares":
        """Fit; with one environment the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not self.penalty >= 0:
            raise ValueError(f"penalty must be at least 0, got {self.penalty}")
        if inputs.shape[1] > MOST_FEATURES:
            raise ValueError(f"X must have at most {MOST_FEATURES} features, since all sets of them are searched, "
                             f"got {inputs.shape[1]}")  # fmt: skip
        known = standardized(collect_moments(inputs, targets, grouping))
        chosen, coefficients = _best_set(known, self.penalty)
        self.invariant_ = np.isin(np.arange(inputs.shape[1]), chosen)
        self.coef_ = np.zeros(inputs.shape[1])
        self.coef_[chosen] = coefficients * known.scale[-1] / known.scale[chosen]
        self.intercept_ = float(known.location[-1] - known.location[:-1] @ self.coef_)
        return self


def _best_set(known: StandardizedMoments, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """The set of features with the lowest objective, and their coefficients; sets of one size are solved together."""
    second, cross = known.second, known.cross
    features, count = second.shape[1], len(second)
    best: tuple[float, np.ndarray, np.ndarray] = (0.0, np.array([], int), np.array([]))  # w = 0, less E y^2
    for size in range(1, features + 1):
        sets = np.array(list(combinations(range(features), size)))
        inner = second[:, sets[:, :, None], sets[:, None, :]]  # (environments, sets, size, size)
        outer = cross[:, sets]
        # mean over e of w M w - 2 w c + penalty |M w - c|^2
        quadratic = inner.mean(0) + penalty / count * np.einsum("esji,esjk->sik", inner, inner)
        linear = outer.mean(0) + penalty / count * np.einsum("esji,esj->si", inner, outer)
        solved = np.einsum("sij,sj->si", np.linalg.pinv(quadratic, hermitian=True), linear)
        objective = penalty * np.square(outer).mean(0).sum(1) - np.einsum("si,si->s", linear, solved)
        lowest = int(objective.argmin())
        if objective[lowest] < best[0]:
            best = (float(objective[lowest]), sets[lowest], solved[lowest])
    return best[1], best[2]
