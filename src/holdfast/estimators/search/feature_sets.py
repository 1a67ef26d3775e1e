"""Sets of features, followed to where the dynamics would take them.

At the pooled fit of a set its features have no mean gradient, so every exponent is at most -eta (1 + k)^2 Var / 2: a
feature whose effect varies beyond sampling error has a negative exponent at any amplification and goes, the most
variable first. A feature outside the set with a mean gradient comes in if all effects then still hold. Nothing else
counts, since the gradients of a missing feature vary with everything that it causes. A set that separates two classes
perfectly leaves no errors that could vary; in that case the exponents at the start decide, where nothing is fitted yet.
"""

import numpy as np

from holdfast.algorithms.hadamard import excess_share
from holdfast.estimators.search.evidence import (
    Evidence,
    LinearModel,
    equality,
    information_criterion,
    tolerant_slopes,
)
from holdfast.losses.slopes import Slopes

# A classifier that is this sure of all rows leaves too little for a test of its effects.
LEAST_INFORMATION = 0.01
# Features that rows can tell apart, for each row; larger sets fit anything.
MOST_FEATURES = 0.5
# Of a large set that varies, this share is removed at once.
REMOVED_SHARE = 0.1


class FeatureSetSearch:
    """The sets of features that were examined, and which of them stay as they are.

    Args:
        evidence: the table.
        critical: quantile below which the variation of an effect counts as sampling error.
        significance: level of the test that all effects of a set are equal.

    Attributes:
        seen: the examined sets, as bytes, and whether each passed.
    """

    def __init__(self, evidence: Evidence, critical: float, significance: float):
        self.evidence, self.critical, self.significance = evidence, critical, significance
        self.rows = float(evidence.counts.sum())
        # A feature pays for itself in the information criterion if it is this many standard errors from zero.
        self.least_score = np.sqrt(np.log(max(self.rows, 2.0)))
        self.start = tolerant_slopes(evidence, evidence.solve(np.arange(0)))
        self.seen: dict[bytes, bool] = {}
        self.stable: list[tuple[float, np.ndarray, LinearModel]] = []

    def settle(self, members: np.ndarray) -> None:
        """Follow a set to where the exponents take it; stop at a set that was examined before.

        Args:
            members: (features,), which features are in the set.
        """
        while members.tobytes() not in self.seen and members.sum() <= MOST_FEATURES * self.rows:
            columns = np.flatnonzero(members)
            fitted = self.evidence.solve(columns)
            # features that do nothing would only dilute the test of the others
            needed = self._without_the_idle(members, fitted)
            if not np.array_equal(needed, members):
                self.seen[members.tobytes()] = False
                members = needed
                continue
            informative = self.evidence.information(fitted) >= LEAST_INFORMATION
            slopes = tolerant_slopes(self.evidence, fitted) if informative else self.start
            equal = equality(self.evidence, fitted, columns).significance >= self.significance
            accepted = equal and (informative or not self._excess(slopes, self.critical)[columns].any())
            self.seen[members.tobytes()] = accepted
            if accepted:
                self.stable.append((information_criterion(self.evidence, fitted, len(columns)), members, fitted))
                members = self._with_one_more(members, fitted)
            else:
                members = self._without_the_most_variable(members, slopes)

    def best(self) -> tuple[np.ndarray, LinearModel]:
        """The stable set with the lowest information criterion, and its pooled fit."""
        _, members, fitted = min(self.stable, key=lambda entry: entry[0])
        return members, fitted

    def _excess(self, slopes: Slopes, critical: float) -> np.ndarray:
        return np.asarray(excess_share(slopes, self.evidence.weights, 1.0, critical))

    def _without_the_most_variable(self, members: np.ndarray, slopes: Slopes) -> np.ndarray:
        columns = np.flatnonzero(members)
        variation = self._excess(slopes, 1e-9)[columns]  # rises with T, since the critical value is almost zero
        left = members.copy()
        left[columns[_lowest(-variation)]] = False
        return left

    def _with_one_more(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        grows, scores = self._growing(members, fitted)
        candidates = np.flatnonzero(grows)
        for column in candidates[np.argsort(-scores[candidates], kind="stable")]:
            more = members.copy()
            more[column] = True
            if self._equal(more):
                return more
        return members

    def unsettling(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        """(features,): those outside that would improve the fit, but would make the effects of the members vary."""
        grows, _ = self._growing(members, fitted)
        single = np.eye(len(members), dtype=bool)
        return np.array([one and not self._equal(members | more) for one, more in zip(grows, single, strict=True)])

    def _equal(self, members: np.ndarray) -> bool:
        columns = np.flatnonzero(members)
        return equality(self.evidence, self.evidence.solve(columns), columns).significance >= self.significance

    def _growing(self, members: np.ndarray, fitted: LinearModel) -> tuple[np.ndarray, np.ndarray]:
        """Features outside whose mean gradient would pay for them in the information criterion, and all scores."""
        slopes = self.evidence.slopes(fitted)
        weights = self.evidence.weights[:, None]
        error = np.sqrt(np.maximum((weights**2 * slopes.variance).sum(0), 1e-300))
        scores = np.abs((weights * slopes.gradient).sum(0)) / error
        return ~members & (scores > self.least_score), scores

    def _without_the_idle(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        """Leave out the weakest features that do not pay for themselves in the information criterion."""
        columns = np.flatnonzero(members)
        if len(columns) == 0:
            return members
        weights = self.evidence.weights[:, None, None]
        _, curvature, covariance = self.evidence.joint(fitted, columns)
        inverse = np.linalg.pinv((weights * curvature).sum(0), hermitian=True)
        errors = np.sqrt(np.maximum(np.diag(inverse @ (weights**2 * covariance).sum(0) @ inverse), 1e-300))
        scores = np.abs(fitted.coefficients[columns]) / errors
        least = _lowest(scores)
        left = members.copy()
        left[columns[least[scores[least] < self.least_score]]] = False
        return left


def _lowest(values: np.ndarray) -> np.ndarray:
    """The positions of the lowest values: one, or `REMOVED_SHARE` of a large set."""
    return np.argsort(values, kind="stable")[: max(1, int(REMOVED_SHARE * len(values)))]
