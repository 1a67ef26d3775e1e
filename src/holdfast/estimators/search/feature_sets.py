"""Sets of features, followed to where exponents take them: see `holdfast.estimators.search.selection`."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from holdfast.algorithms.losses.slopes import variation
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.evidence import (
    Equality,
    JointSlopes,
    SearchedEvidence,
    equal_effects,
    equality,
    information_criterion,
    tolerant_slopes,
)

# A classifier that is this sure of all rows leaves too little for a test of its effects.
LEAST_INFORMATION = 0.01
# Features that rows can tell apart, for each row; larger sets fit anything.
MOST_FEATURES = 0.5
# Of a large set that varies, this share is removed at once.
REMOVED_SHARE = 0.1


class Groups:
    """Features that are selected and tested together.

    Args:
        codes: (features,), the number of the group of each feature, from 0 on.
        second: (features,), for an interaction the number of the other group that it needs; None: no interactions.

    Attributes:
        count: number of groups.
        columns: the features of each group, without interactions with others.

    Example, the last feature is an interaction of both groups:
        >>> groups = Groups(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 1]))
        >>> groups.features(np.array([False, True])).tolist()
        [False, True, True, False]
        >>> groups.features(np.array([True, True])).tolist()
        [True, True, True, True]
    """

    def __init__(self, codes: np.ndarray, second: np.ndarray | None = None):
        self.codes, self.second = codes, codes if second is None else second
        self.count = int(max(self.codes.max(), self.second.max())) + 1
        self.columns = [np.flatnonzero((codes == number) & (self.second == number)) for number in range(self.count)]

    def features(self, members: np.ndarray) -> np.ndarray:
        """(features,): whether all groups that a feature needs are among the members, (groups,)."""
        return members[self.codes] if self.second is self.codes else members[self.codes] & members[self.second]

    def touched(self, some: np.ndarray) -> np.ndarray:
        """(features,): those of a group with one of some features, (features,), and the interactions that need it."""
        gone = self.codes[some & (self.codes == self.second)]
        return some | np.isin(self.codes, gone) | np.isin(self.second, gone)

    def size(self, members: np.ndarray) -> int:
        """How many features the members have."""
        return int(self.features(members).sum())

    def owned(self, members: np.ndarray, number: int | np.integer) -> np.ndarray:
        """The features that the members would lose without one of them, or gain with one more."""
        if self.second is self.codes:
            return self.columns[number]
        added = members.copy()
        added[number] = True
        return np.flatnonzero(self.features(added) & ((self.codes == number) | (self.second == number)))


class StableSet(NamedTuple):
    """A set of groups whose effects are equal in all environments.

    Attributes:
        criterion: its information criterion.
        members: (groups,), which of them are in the set.
        fitted: the pooled fit of their features.
    """

    criterion: float
    members: np.ndarray
    fitted: LinearModel


class FeatureSetSearch:
    """The sets of features that were examined, and which of them stay as they are.

    Args:
        evidence: the table.
        groups: features that come and go together.
        significance: level of the test that all effects of a set are equal.

    Attributes:
        seen: the examined sets, as bytes, and whether each passed.
        stable: the sets that passed.
    """

    def __init__(self, evidence: SearchedEvidence, groups: Groups, significance: float):
        self.evidence, self.groups, self.significance = evidence, groups, significance
        self.rows = float(evidence.counts.sum())
        # A feature pays for itself in the information criterion if it is this many standard errors from zero.
        self.least_score = np.sqrt(np.log(max(self.rows, 2.0)))
        self.start = evidence.solve(np.arange(0))
        self.seen: dict[bytes, bool] = {}
        self.stable: list[StableSet] = []
        self._fits: dict[bytes, tuple[LinearModel, Equality]] = {}
        self._near = self.start
        self._slopes = (b"", evidence.joint(self.start, np.arange(0)))

    def settle(self, members: np.ndarray) -> None:
        """Follow a set to where the exponents take it; stop at a set that was examined before.

        Args:
            members: (groups,), which groups are in the set.
        """
        while members.tobytes() not in self.seen and self.groups.size(members) <= MOST_FEATURES * self.rows:
            fitted, _ = self._pooled_fit(members)
            # features that do nothing would only dilute the test of the others
            needed = self._without_the_idle(members, fitted)
            if not np.array_equal(needed, members):
                self.seen[members.tobytes()] = False
                members = needed
                continue
            members = self._after(members)

    def examine(self, members: np.ndarray, near: LinearModel | None = None) -> bool:
        """Whether a set stays as it is, by itself.

        Args:
            members: (groups,), which groups are in the set.
            near: a fit to begin from; None: the last one.
        """
        self._near = near or self._near
        fitted, test = self._pooled_fit(members)
        accepted = test.significance >= self.significance
        if accepted and self._here(fitted) is self.start:
            accepted = not self.varying(self.start, members, members).any()
        self.seen[members.tobytes()] = accepted
        if accepted:
            criterion = information_criterion(self.evidence, fitted, self.groups.size(members))
            self.stable.append(StableSet(criterion, members, fitted))
        return accepted

    def _after(self, members: np.ndarray) -> np.ndarray:
        """The set that comes after one: with a group more if it stays as it is, else without the most variable one."""
        accepted, fitted = self.examine(members), self._pooled_fit(members)[0]
        if accepted:
            return self._with_one_more(members, fitted)
        return self._without_the_most_variable(members, self._here(fitted))

    def _here(self, fitted: LinearModel) -> LinearModel:
        """Where gradients are compared: at the fit, or at the start if the fit is too sure of all rows."""
        return fitted if self.evidence.information(fitted) >= LEAST_INFORMATION else self.start

    def eliminated(self) -> Iterator[np.ndarray]:
        """(groups,), masks of fewer and fewer groups, without those whose absence makes effects most nearly equal.

        The gradient of a single feature also varies when another one is to blame, in particular where levels differ;
        the joint test of what is left does not mistake them. It costs a test for every group that might go.
        """
        members = np.ones(self.groups.count, bool)
        while members.sum() > 1:
            chosen = np.flatnonzero(members)
            single = np.eye(len(members), dtype=bool)[chosen]
            nearby = self.evidence.near(self._pooled_fit(members)[0])
            scores = []
            for one in single:
                left = np.flatnonzero(self.groups.features(members & ~one))
                fitted = nearby.solve(left)
                test = equal_effects(nearby.joint(fitted, left), nearby.tolerance * fitted.coefficients[left])
                scores.append(_normal_score(test))
            members = members.copy()
            members[chosen[_lowest(np.array(scores))]] = False
            yield members

    def varying(self, fitted: LinearModel, tested: np.ndarray, members: np.ndarray) -> np.ndarray:
        """(groups,): those of the tested groups whose effects vary beyond sampling error, everything else as fitted.

        Args:
            fitted: the pooled fit.
            tested: (groups,), the groups in question.
            members: (groups,), the groups whose interactions with them count.
        """
        level = self.significance / self.groups.count
        tests = self._variations(fitted, tested, members)
        out = np.zeros(self.groups.count, bool)
        out[tested] = [test.significance < level for test in tests]
        return out

    def unsettling(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        """(groups,): those outside that would improve the fit, but would make the effects of the members vary."""
        grows, _ = self._growing(members, fitted)
        single = np.eye(len(members), dtype=bool)
        return np.array([one and not self._equal(members | more) for one, more in zip(grows, single, strict=True)])

    def _variations(self, fitted: LinearModel, tested: np.ndarray, members: np.ndarray) -> list[Equality]:
        """Of each tested group on its own."""
        evidence, chosen = self.evidence, np.flatnonzero(tested)
        degrees = len(evidence.counts) - 1
        slopes = tolerant_slopes(evidence, fitted)
        single = variation(slopes, evidence.weights, 1.0)
        significance = chdtrc(degrees, single) if degrees else np.ones_like(single)
        tests = []
        for number in chosen:
            columns = self.groups.owned(members, number)
            if len(columns) > 1:
                tests.append(equality(evidence, fitted, columns))
            else:
                tests.append(Equality(float(single[columns[0]]), degrees, float(significance[columns[0]])))
        return tests

    def _without_the_most_variable(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        scores = np.array([_normal_score(test) for test in self._variations(fitted, members, members)])
        left = members.copy()
        left[np.flatnonzero(members)[_lowest(-scores)]] = False
        return left

    def _with_one_more(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        grows, scores = self._growing(members, fitted)
        candidates = np.flatnonzero(grows)
        for number in candidates[np.argsort(-scores[candidates], kind="stable")]:
            more = members.copy()
            more[number] = True
            if self._equal(more):
                return more
        return members

    def _equal(self, members: np.ndarray) -> bool:
        return self._pooled_fit(members)[1].significance >= self.significance

    def _pooled_fit(self, members: np.ndarray) -> tuple[LinearModel, Equality]:
        """The pooled fit of a set, and the test of its effects; computed once."""
        if (known := self._fits.get(members.tobytes())) is None:
            columns = np.flatnonzero(self.groups.features(members))
            fitted = self._near = self.evidence.solve(columns, self._near)
            tolerated = self.evidence.tolerance * fitted.coefficients[columns]
            test = equal_effects(self._joint(members, fitted, columns), tolerated)
            known = self._fits[members.tobytes()] = (fitted, test)
        return known

    def _joint(self, members: np.ndarray, fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        """The slopes of the pooled fit of a set; those of the last set are at hand."""
        if self._slopes[0] != members.tobytes():
            self._slopes = (members.tobytes(), self.evidence.joint(fitted, columns))
        return self._slopes[1]

    def _growing(self, members: np.ndarray, fitted: LinearModel) -> tuple[np.ndarray, np.ndarray]:
        """Groups outside whose mean gradient would pay for them in the information criterion, and all scores."""
        slopes, weights = self.evidence.slopes(fitted), self.evidence.weights[:, None]
        error = np.sqrt(np.maximum((weights**2 * slopes.variance).sum(0), 1e-300))
        single = np.abs((weights * slopes.gradient).sum(0)) / error
        scores = np.zeros(self.groups.count)
        for number in np.flatnonzero(~members):
            columns = self.groups.owned(members, number)
            if len(columns) == 1:
                scores[number] = single[columns[0]]
            else:
                gradient, _, covariance = self.evidence.joint(fitted, columns)
                pooled = np.tensordot(self.evidence.weights**2, covariance, 1)
                scores[number] = _length(self.evidence.weights @ gradient, pooled)
        return ~members & (scores > self.least_score), scores

    def _without_the_idle(self, members: np.ndarray, fitted: LinearModel) -> np.ndarray:
        """Leave out the weakest groups that do not pay for themselves in the information criterion."""
        chosen = np.flatnonzero(members)
        if len(chosen) == 0:
            return members
        columns = np.flatnonzero(self.groups.features(members))
        errors = sandwich(self._joint(members, fitted, columns), self.evidence.weights)
        scores = np.empty(len(chosen))
        for position, number in enumerate(chosen):
            own = np.searchsorted(columns, self.groups.owned(members, number))
            scores[position] = _length(fitted.coefficients[columns[own]], errors[np.ix_(own, own)])
        least = _lowest(scores)
        left = members.copy()
        left[chosen[least[scores[least] < self.least_score]]] = False
        return left


def _length(values: np.ndarray, covariance: np.ndarray) -> float:
    """The root mean square of some values in units of their errors; for one value, |value| / error."""
    if len(values) == 1:
        return float(abs(values[0]) / np.sqrt(max(covariance[0, 0], 1e-300)))
    return float(np.sqrt(max(values @ np.linalg.pinv(covariance, hermitian=True) @ values, 0.0) / len(values)))


def _normal_score(test: Equality) -> float:
    """A chi-square variable as a normal one (Wilson and Hilferty), so that different degrees of freedom compare."""
    if test.degrees == 0:
        return -np.inf
    spread = 2 / (9 * test.degrees)
    return float(((test.statistic / test.degrees) ** (1 / 3) - 1 + spread) / np.sqrt(spread))


def _lowest(values: np.ndarray) -> np.ndarray:
    """The positions of the lowest values: one, or `REMOVED_SHARE` of a large set."""
    return np.argsort(values, kind="stable")[: max(1, int(REMOVED_SHARE * len(values)))]


def sandwich(slopes: JointSlopes, weights: np.ndarray) -> np.ndarray:
    """(columns, columns): A^+ B A^+ of `pooled_covariance`, from slopes at the fit and the shares of environments.

    Example, the variance of a mean of 100 rows:
        >>> one = np.ones((1, 1, 1))
        >>> sandwich(JointSlopes(np.zeros((1, 1)), one, 0.01 * one), np.ones(1)).tolist()
        [[0.01]]
    """
    inverse = np.linalg.pinv(np.tensordot(weights, slopes.curvature, 1), hermitian=True)
    return inverse @ np.tensordot(weights**2, slopes.covariance, 1) @ inverse
