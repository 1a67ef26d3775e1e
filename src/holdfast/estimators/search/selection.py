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

from holdfast.algorithms.losses.slopes import Slopes, expected_ratio
from holdfast.core.progress import Progress, stages
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.evidence import (
    Equality,
    SearchedEvidence,
    equality,
)
from holdfast.estimators.search.feature_sets import LEAST_INFORMATION, FeatureSetSearch, Groups
from holdfast.theory.lyapunov import washing_strength

# Sets whose fits to all rows are searched around, at most.
ROUNDS = 8
# Sizes of the first sets of a ranking: all up to this many groups, beyond it as many, spaced geometrically.
SIZES = 16


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
    evidence: SearchedEvidence,
    groups: Groups,
    significance: float,
    *,
    eliminate: bool = False,
    progress: Progress | None = None,
) -> Selection:
    """Find the best set of features among those whose effects are equal in all environments.

    The search itself stays near a fit (`SearchedEvidence.near`): first that of all features, then that of none. What it
    finds there is fitted and tested on all rows, and the search goes on near these fits until it finds nothing new. The
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
    *reports, ending = stages(progress, [4, 1, *[1] * ROUNDS])
    waiting = iter(reports)
    while points and len(exact.seen) < ROUNDS:
        point, members = points.pop(0)
        nearby = evidence.near(point)
        found = _best_near(nearby, groups, significance, members, eliminate and members is None, next(waiting))
        if found.tobytes() not in exact.seen:
            exact.examine(found, point)
            fitted = evidence.solve(np.flatnonzero(groups.features(found)))
            if evidence.information(fitted) >= LEAST_INFORMATION:
                points.append((fitted, found))
            else:  # so certain of all rows that nothing is known nearby
                exact.settle(found)
        if nearby is evidence:
            break
    ending(1, 1)
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
    evidence: SearchedEvidence,
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


def ranked_sets(evidence: SearchedEvidence, groups: Groups) -> Iterator[np.ndarray]:
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
