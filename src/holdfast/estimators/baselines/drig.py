"""Distributional robustness via invariant gradients (DRIG)."""

from typing import Any

import numpy as np
from scipy.linalg import eigh

from holdfast.algorithms.losses.squared import second_moments
from holdfast.core.moments import standard_units
from holdfast.estimators.contract import LinearRegressor, regression_rows

# A reference with fewer rows for each feature has no second moments to speak of.
ROWS_PER_FEATURE = 2
# The objective has no minimum from a certain gamma on; of the way there, this share is taken at most.
LARGEST_SHARE = 0.5
# Second moments are compared up to this share of the reference, for features that do not vary in it.
RIDGE = 1e-8


class InvariantGradientRegressor(LinearRegressor):
    """Least squares that pays more for the errors that environments add to those of a reference.

        L_0(w) + gamma sum_e p_e (L_e(w) - L_0(w)),    L_e(w) = E_e (y - w x)^2,    p_e = share of the rows in e

    A quadratic in w, solved from second moments. gamma = 1 is least squares through the origin; as gamma grows, the
    gradients of the losses become equal. If an environment varies less than the reference in some direction, the
    objective has no minimum from a certain gamma on, and a smaller one is used. Known as DRIG.

    The means of a known reference are the origin, so that shifts of the mean count as interventions. Where nobody knows
    the reference, its means are as arbitrary as any, and the origin is the mean of all rows.

    Reference: X. Shen, P. Bühlmann, A. Taeb, *Causality-oriented robustness: exploiting general noise interventions*,
    arXiv:2307.10299 (2023). Objective, weights and origin are those of the authors' code (`est_drig` of
    github.com/xwshen51/DRIG). Neither has a default gamma: the examples of the paper use 5, single cells up to 20.

    Args:
        gamma: at least 0; larger values protect against stronger interventions than those seen.
        reference: the label of the environment without interventions; None: the one whose features and target vary
            least, in standard units, among those with two rows for each feature.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        gamma_: what was used.
        reference_: the label of the reference.
        environments_: the labels of the environments.

    Example, the second feature follows y and is disturbed in the second environment:
        >>> random, environments = np.random.default_rng(0), np.repeat(["calm", "storm"], 500)
        >>> cause = np.where(environments == "calm", 1, 2) * random.standard_normal(1000)
        >>> y = cause + random.standard_normal(1000)
        >>> follower = y + np.where(environments == "calm", 0.5, 2) * random.standard_normal(1000)
        >>> X = np.column_stack([cause, follower])
        >>> for gamma in (1.0, 20.0):
        ...     model = InvariantGradientRegressor(gamma).fit(X, y, environments=environments)
        ...     print(model.reference_, model.coef_.round(1))
        calm [0.7 0.3]
        calm [1.  0.1]
    """

    def __init__(self, gamma: float = 5.0, *, reference: Any = None):
        self.gamma = gamma
        self.reference = reference

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantGradientRegressor":
        """Fit; with one environment the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, got {self.gamma}")
        if self.reference is not None and self.reference not in grouping.labels:
            raise ValueError(f"reference must be among {grouping.labels}, got {self.reference!r}")
        scaling, response = standard_units(inputs), standard_units(targets[:, None])
        if self.reference is not None:
            calm = grouping.rows()[list(grouping.labels).index(self.reference)]
            scaling = scaling._replace(location=inputs[calm].mean(0))
            response = response._replace(location=targets[calm].mean(keepdims=True))
        data = second_moments(scaling.apply(inputs), response.apply(targets[:, None])[:, 0], grouping.rows())
        # Everything is measured from the origin, so the column of ones is not needed.
        second, cross = np.asarray(data.second)[:, :-1, :-1], np.asarray(data.cross)[:, :-1]
        counts = np.array([len(rows) for rows in grouping.rows()])
        if self.reference is None:
            means = np.column_stack([np.asarray(data.second)[:, :-1, -1], np.asarray(data.cross)[:, -1]])
            variation = np.trace(second, axis1=1, axis2=2) + np.asarray(data.square) - np.square(means).sum(1)
            large = counts >= min(ROWS_PER_FEATURE * inputs.shape[1], counts.max())
            reference = int(np.argmin(np.where(large, variation, np.inf)))
        else:
            reference = list(grouping.labels).index(self.reference)
        shares = counts / counts.sum()
        pooled, pooled_cross = np.einsum("e,eij->ij", shares, second), shares @ cross
        self.gamma_ = min(float(self.gamma), _largest_gamma(pooled, second[reference]))
        quadratic = second[reference] + self.gamma_ * (pooled - second[reference])
        linear = cross[reference] + self.gamma_ * (pooled_cross - cross[reference])
        found = np.linalg.pinv(quadratic, hermitian=True) @ linear
        self.coef_, shift = scaling.undo(found * response.scale[0])
        self.intercept_ = float(response.location[0] + shift)
        self.reference_ = grouping.labels[reference]
        return self


def _largest_gamma(pooled: np.ndarray, reference: np.ndarray) -> float:
    """Half of the way from 1 to where gamma pooled - (gamma - 1) reference stops being positive definite.

    That is gamma / (gamma - 1) = s, for s the largest variance of the reference relative to all rows in any direction.
    """
    if not len(pooled):
        return np.inf
    ridge = RIDGE * np.eye(len(pooled))
    largest = float(eigh(reference + ridge, pooled + ridge, eigvals_only=True)[-1])
    return np.inf if largest <= 1 else 1 + LARGEST_SHARE * (largest / (largest - 1) - 1)
