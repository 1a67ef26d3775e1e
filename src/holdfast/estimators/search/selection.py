"""Which features have effects that hold in all environments.

Every set of features is followed to where the exponents of `holdfast.theory.effects` take it
(`holdfast.estimators.search.feature_sets`), and among the sets that stay as they are the one that predicts best, by the
Bayesian information criterion, is selected. What is left to decide is where to start. The sets that SGD could leave
alive are those of features with the largest washing strengths 2 |g| / Var g, the last to be washed out as the
amplification grows, so the search starts from nothing, from everything, and from the first features of that ranking:
at the start and at the pooled fit, for gradients and for effects.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from holdfast.algorithms.amplification import expected_ratio
from holdfast.algorithms.losses.slopes import Slopes
from holdfast.core.progress import Progress, stages
from holdfast.estimators.search.evidence import Equality, Evidence, LinearModel, equality
from holdfast.estimators.search.feature_sets import FeatureSetSearch, Groups
from holdfast.theory.effects import washing_strength

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
    evidence: Evidence,
    groups: Groups,
    significance: float,
    *,
    eliminate: bool = False,
    progress: Progress | None = None,
) -> Selection:
    """Find the best set of features among those whose effects are equal in all environments.

    Args:
        evidence: the table.
        groups: features that are selected together.
        significance: level of the tests.
        eliminate: also start from the sets of `FeatureSetSearch.eliminated`.
        progress: called with (starts done, starts in all), an elimination counted as so many as there are groups.
    """
    search = FeatureSetSearch(evidence, groups, significance)
    starts = [np.zeros(groups.count, bool), np.ones(groups.count, bool), *ranked_sets(evidence, groups)]
    settling, eliminating = stages(progress, [len(starts), groups.count * eliminate])
    for number, members in enumerate(starts, 1):
        search.settle(members)
        settling(number, len(starts))
    for members in search.eliminated() if eliminate else ():
        search.settle(members)
        # a step takes a look at each member, so that the first steps are the longest
        eliminating(groups.count**2 - int(members.sum()) ** 2, groups.count**2)
    best = search.best()
    selected = groups.features(best.members)
    everything = np.ones(groups.count, bool)
    varies = search.varying(best.fitted, everything, best.members) | search.unsettling(best.members, best.fitted)
    pooled = evidence.solve(np.arange(evidence.dimension))
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
