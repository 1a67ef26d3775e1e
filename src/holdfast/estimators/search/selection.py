"""Which features have effects that hold in all environments: sets of features, followed to where exponents take them.

At the pooled fit of a set its features have no mean gradient, so every exponent (`holdfast.theory.lyapunov`) is at most
-eta (1 + k)^2 Var / 2: a feature whose effect varies beyond sampling error has a negative exponent at any amplification
and goes, the most variable first. A feature outside the set with a mean gradient comes in if all effects then still
hold. Nothing else counts, since the gradients of a missing feature vary with everything that it causes. A set that
separates two classes perfectly leaves no errors that could vary; in that case the exponents at the start decide, where
nothing is fitted yet. Among the sets that stay as they are, the best by the Bayesian information criterion is selected.

What is left to decide is where to start. The sets that SGD could leave alive are those of features with the largest
washing strengths 2 |g| / Var g, the last to be washed out as the amplification grows, so the search starts from
nothing, from everything, and from the first features of that ranking: at the start and at the pooled fit, for gradients
and for effects. Features that belong together, such as the levels of a category, form a group; groups come and go as a
whole.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from holdfast.algorithms.losses.slopes import Slopes, expected_ratio, variation
from holdfast.core.progress import Progress, stages
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.evidence import (
    Equality,
    Evidence,
    JointSlopes,
    equal_effects,
    equality,
    information_criterion,
    tolerant_slopes,
)
from holdfast.theory.lyapunov import washing_strength

# A classifier that is this sure of all rows leaves too little for a test of its effects.
LEAST_INFORMATION = 0.01
# Features that rows can tell apart, for each row; larger sets fit anything.
MOST_FEATURES = 0.5
# Of a large set that varies, this share is removed at once.
REMOVED_SHARE = 0.1
# Sets whose fits to all rows are searched around, at most.
ROUNDS = 8
# Sizes of the first sets of a ranking: all up to this many groups, beyond it as many, spaced geometrically.
SIZES = 16


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

    def __init__(self, evidence: Evidence, groups: Groups, significance: float):
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


class Selection(NamedTuple):
    """The features whose effects hold in all environments, and what was found on the way.

    Attributes:
        selected: (features,), which of them.
        fitted: the pooled fit of these features.
        varies: (features,), whose effects vary beyond sampling error given the selected features, or make theirs vary.
        varying: the share of the groups of features that vary.
        test: of equal effects of the selected features.
        pooled: the pooled fit of all features.
        pooled_test: of equal effects of all features.
        criterion: the information criterion of `fitted`.
    """

    selected: np.ndarray
    fitted: LinearModel
    varies: np.ndarray
    varying: float
    test: Equality
    pooled: LinearModel
    pooled_test: Equality
    criterion: float


def select(
    evidence: Evidence,
    groups: Groups,
    significance: float,
    *,
    eliminate: bool = False,
    progress: Progress | None = None,
) -> Selection:
    """Find the best set of features among those whose effects are equal in all environments.

    The search itself stays near a fit (`Evidence.near`): first that of all features, then that of none. What it finds
    there is fitted and tested on all rows, and the search goes on near these fits until it finds nothing new. The
    squared loss is the same near any fit, so that one search is all.

    Args:
        evidence: the table.
        groups: features that are selected together.
        significance: level of the tests.
        eliminate: also start from the sets of `FeatureSetSearch.eliminated`.
        progress: called with (starts done, starts in all), an elimination counted as so many as there are groups.
    """
    pooled = evidence.solve(np.arange(evidence.dimension))
    exact = FeatureSetSearch(evidence, groups, significance)
    points: list[tuple[LinearModel, np.ndarray | None]] = [(pooled, None), (exact.start, None)]
    if evidence.information(pooled) < LEAST_INFORMATION:
        del points[0]
    reports = iter(stages(progress, [4, 1, *[1] * ROUNDS]))
    while points and len(exact.seen) < ROUNDS:
        point, members = points.pop(0)
        nearby = evidence.near(point)
        found = _best_near(nearby, groups, significance, members, eliminate and members is None, next(reports))
        if found.tobytes() not in exact.seen:
            exact.examine(found, point)
            fitted = evidence.solve(np.flatnonzero(groups.features(found)))
            if evidence.information(fitted) >= LEAST_INFORMATION:
                points.append((fitted, found))
            else:  # so certain of all rows that nothing is known nearby
                exact.settle(found)
        if nearby is evidence:
            break
    if not exact.stable:
        exact.settle(np.zeros(groups.count, bool))
    best = min(exact.stable, key=lambda entry: entry.criterion)
    selected = groups.features(best.members)
    search = FeatureSetSearch(evidence.near(best.fitted), groups, significance)
    varies = search.varying(best.fitted, np.ones(groups.count, bool), best.members)
    varies |= search.unsettling(best.members, best.fitted)
    return Selection(
        selected,
        best.fitted,
        groups.features(varies),
        float(varies.mean()),
        equality(evidence, best.fitted, np.flatnonzero(selected)),
        pooled,
        equality(evidence, pooled, np.arange(evidence.dimension)),
        best.criterion,
    )


def _best_near(
    evidence: Evidence,
    groups: Groups,
    significance: float,
    members: np.ndarray | None,
    eliminate: bool,
    progress: Progress,
) -> np.ndarray:
    """(groups,): the best set that stays as it is, from all starts, or from some members."""
    search = FeatureSetSearch(evidence, groups, significance)
    starts = [np.zeros(groups.count, bool), np.ones(groups.count, bool), *ranked_sets(evidence, groups)]
    starts = starts if members is None else [members]
    settling, eliminating = stages(progress, [len(starts), groups.count * eliminate])
    for number, start in enumerate(starts, 1):
        search.settle(start)
        settling(number, len(starts))
    for left in search.eliminated() if eliminate else ():
        search.settle(left)
        # a step takes a look at each member, so that the first steps are the longest
        eliminating(groups.count**2 - int(left.sum()) ** 2, groups.count**2)
    return min(search.stable, key=lambda entry: entry.criterion).members


def ranked_sets(evidence: Evidence, groups: Groups) -> Iterator[np.ndarray]:
    """(groups,), masks of the groups with the largest washing strengths, from few to all.

    Args:
        evidence: the table.
        groups: features that are selected together; a group is as strong as the strongest of its features.
    """
    sizes = np.unique(np.geomspace(1, groups.count, SIZES).round().astype(int))
    if groups.count <= SIZES:
        sizes = np.arange(1, groups.count + 1)
    for columns in (np.arange(0), np.arange(evidence.dimension)):
        fitted = evidence.solve(columns)
        slopes = evidence.slopes(fitted)
        for scaling in (0.0, 1.0):
            strength = _strength(slopes, fitted, evidence.weights, scaling)
            ranking = np.argsort([-strength[own].max() for own in groups.columns], kind="stable")
            for size in sizes:
                members = np.zeros(groups.count, bool)
                members[ranking[:size]] = True
                yield members


def _strength(slopes: Slopes, fitted: LinearModel, weights: np.ndarray, scaling: float) -> np.ndarray:
    """(features,): the strength that washes each feature out, with the gradient that it would have without it."""
    pooled = weights @ slopes.curvature
    mean = weights @ slopes.gradient - pooled * fitted.coefficients
    expected = expected_ratio(slopes, weights, scaling) * (weights @ slopes.gradient)
    return washing_strength(mean, weights @ (slopes.gradient - expected) ** 2)


def sandwich(slopes: JointSlopes, weights: np.ndarray) -> np.ndarray:
    """(columns, columns): A^+ B A^+ of `pooled_covariance`, from slopes at the fit and the shares of environments.

    Example, the variance of a mean of 100 rows:
        >>> one = np.ones((1, 1, 1))
        >>> sandwich(JointSlopes(np.zeros((1, 1)), one, 0.01 * one), np.ones(1)).tolist()
        [[0.01]]
    """
    inverse = np.linalg.pinv(np.tensordot(weights, slopes.curvature, 1), hermitian=True)
    return inverse @ np.tensordot(weights**2, slopes.covariance, 1) @ inverse
