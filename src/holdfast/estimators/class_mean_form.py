"""Invariance of features given the class: the linear discriminant of what is equal, its tables and its advice."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from holdfast.core.class_moments import ClassMoments, ClassStatistics, class_statistics
from holdfast.core.moments import Scaling
from holdfast.estimators.advice import SIGNIFICANT
from holdfast.estimators.description import Coordinates, TableFindings, class_table
from holdfast.estimators.effects import OwnEffects, describe_effects
from holdfast.estimators.pooling import LinearModel, blend, choose_pooling
from holdfast.estimators.relations import relations_alone
from holdfast.estimators.search.class_fits import (
    expected_log_loss,
    held_out_discriminant_losses,
    linear_discriminant,
    needed_features,
)
from holdfast.estimators.search.class_means import (
    class_differences,
    difference_tests,
    equal_shares,
    varying_directions,
    widest_share,
)

# Shares of classes that differ by less are not worth a sentence.
SMALL_SHIFT = 0.05
_NEVER_TOGETHER = (
    "Some classes never occur together in an environment, so what differs between classes cannot be told from what "
    "differs between environments."
)
_UNSEEN = (
    "Not identified: {environments} environments can show at most {most} of {features} directions, and the differences "
    "vary in all of these. More directions may vary unseen; the environments must outnumber the directions that vary."
)


def fit_class_means(
    moments: ClassMoments,
    names: Sequence[str],
    *,
    significance: float = 0.001,
    tolerance: float = 0.0,
    rotation: bool = False,
    pooling: float | Literal["auto"] = "auto",
    response: str = "y",
) -> TableFindings:
    """The discriminant of the features, or directions, in which the classes differ equally in all environments.

    Tables have the log-odds of a feature alone, of more than two classes those of the class for which they have the
    widest range.

    Args:
        moments: of each class in each environment.
        names: of the features.
        significance: level of all tests of the features together, by Bonferroni's bound.
        tolerance: standard deviation of a difference over environments, as a share of it, that is too small to matter.
        rotation: the features may be an unknown rotation of what is invariant and what is not: find directions.
        pooling: "auto", or the weight of the discriminant of all features.
        response: the name of the labels.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 2)) + y[:, None] * np.array([[1.0, 1.0], [1.0, 2.0]])[environments.codes]
        >>> form = fit_class_means(collect_class_moments(x, y, environments), ["same", "other"])
        >>> form.selected.tolist()
        [True, False]
    """
    statistics = class_statistics(moments)
    environments, classes, features = statistics.means.shape
    counts, most = statistics.counts.sum(1), None
    if rotation:
        found = varying_directions(statistics, significance, tolerance)
        system, own = Coordinates("class means", found.directions), _rotated(statistics, found.directions)
        varies = np.arange(features) < found.varying
        selected, equality = ~varies, float(found.p_values[0]) if found.most else 1.0
        most = found.most if 0 < found.varying == found.most < features else None
    else:
        system, own = Coordinates("features", np.eye(features)), statistics
        p_values = difference_tests(statistics, tolerance).p_values * max(1, features)
        varies, equality = p_values < significance, float(min(p_values.min(initial=1.0), 1.0))
        selected = needed_features(statistics, ~varies)
    strict = linear_discriminant(statistics, system.directions[:, selected])
    everything = linear_discriminant(statistics)

    def held_out(columns: np.ndarray) -> np.ndarray:
        return held_out_discriminant_losses(statistics, system.directions[:, columns])

    chosen = choose_pooling(held_out, counts / counts.sum(), selected, float(varies.mean())).or_asked(pooling)
    scores = blend(strict, everything, chosen.weight)
    widest = _widest(own)
    coefficients = np.full((classes, features), np.nan)
    if not rotation:
        coefficients = _log_odds(scores).coefficients
        coefficients = coefficients if len(coefficients) == 1 else coefficients - coefficients.mean(0)
    scaling = Scaling(statistics.location, statistics.scale, statistics.constant)
    table = class_table(names, moments.labels, scaling, moments.classes, response)._replace(compared="class difference")
    alone, units = _alone(own, widest), np.ones(features) if rotation else 1 / statistics.scale
    tables = describe_effects(
        alone,
        _of_widest(coefficients, widest),
        selected=selected,
        names=[f"direction {number + 1}" for number in range(features)] if rotation else names,
        labels=moments.labels,
        units=units,
        more=relations_alone(alone, units),
    )
    # differences within environments are misled where the levels of features differ between them
    whole = linear_discriminant(_without_environments(statistics))
    explained, explained_by_all = (explained_by(statistics, each) for each in (strict, whole))
    by_all = max(explained_by_all, explained_by(statistics, everything), explained)
    first = []
    if most is not None:
        first.append(_UNSEEN.format(environments=environments, most=most, features=features))
    if environments > 1 and class_differences(statistics).rank < classes - 1:
        first.append(_NEVER_TOGETHER)
    return TableFindings(
        table,
        _log_odds(strict),
        _log_odds(everything),
        system,
        tables,
        chosen,
        pooling == "auto",
        counts,
        explained,
        by_all,
        explained_by(statistics, scores),
        varies=varies,
        declared=np.ones(features, bool),  # the class comes first
        dropped=np.zeros(features, bool),
        pooled_equality=equality,
        of_class=tuple(moments.classes[number] for number in widest) if classes > 2 else (),
        first=tuple(first),
        last=tuple(_about_shares(statistics.counts, moments.classes)),
    )


def _alone(statistics: ClassStatistics, widest: np.ndarray) -> OwnEffects:
    """The log-odds that each coordinate alone would have, (m_ec - a_e) / W_jj, with their errors.

    Of more than two classes, those of one class for each coordinate.
    """
    seen = statistics.counts[..., None] > 1
    variances = np.einsum("ecff->ecf", statistics.covariances) / np.where(seen, statistics.counts[..., None], np.nan)
    means, spread = _centred(statistics), np.diag(statistics.within)
    if means.shape[1] == 2:
        estimates, squares = means[:, 1] - means[:, 0], variances.sum(1)
    else:
        estimates, squares = (np.take_along_axis(part, widest[None, None], 1)[:, 0] for part in (means, variances))
    degrees = np.broadcast_to((statistics.counts.sum(1) - statistics.counts.shape[1])[:, None], estimates.shape)
    errors = np.where(np.isnan(estimates), np.nan, np.sqrt(squares) / spread)
    return OwnEffects(estimates / spread, errors, np.where(np.isnan(errors), np.nan, np.maximum(degrees, 1.0)))


def _rotated(statistics: ClassStatistics, directions: np.ndarray) -> ClassStatistics:
    """The statistics of the coordinates z^T directions."""
    return statistics._replace(
        means=statistics.means @ directions,
        covariances=directions.T @ statistics.covariances @ directions,
        total=directions.T @ statistics.total @ directions,
        within=directions.T @ statistics.within @ directions,
        constant=np.zeros(directions.shape[1], bool),
    )


def _without_environments(statistics: ClassStatistics) -> ClassStatistics:
    """The classes of all rows as those of one environment: levels of environments are variation within classes."""
    counts = statistics.counts.sum(0)
    centres = np.einsum("ec,ecf->cf", statistics.counts, statistics.means) / np.maximum(counts, 1e-300)[:, None]
    apart = statistics.means - centres
    spread = statistics.covariances + apart[..., :, None] * apart[..., None, :]
    within = (np.tensordot(statistics.counts, spread, 2) + statistics.total) / counts.sum()
    return statistics._replace(counts=counts[None], means=centres[None], within=within)


def _centred(statistics: ClassStatistics) -> np.ndarray:
    """(environments, classes, coordinates): means of the classes about their mean; NaN with fewer than two rows."""
    means = np.where(statistics.counts[..., None] > 1, statistics.means, np.nan)
    return means - means.mean(1, keepdims=True)


def _widest(statistics: ClassStatistics) -> np.ndarray:
    """(coordinates,): the class whose mean ranges widest over environments."""
    means = _centred(statistics)
    low, high = (np.where(np.isnan(means), edge, means) for edge in (np.inf, -np.inf))
    return np.argmax(high.max(0) - low.min(0), axis=0)


def _of_widest(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(features,): the log-odds of two classes as they are; of more, those of one class for each feature."""
    return values[0] if len(values) == 1 else np.take_along_axis(values, classes[None], 0)[0]


def _log_odds(scores: LinearModel) -> LinearModel:
    """Of two classes, the score of the second less that of the first."""
    two = len(scores.intercept) == 2
    return LinearModel(*(np.diff(part, axis=0) for part in scores)) if two else scores


def _about_shares(counts: np.ndarray, classes: Sequence[Any]) -> Iterator[str]:
    widest, low, high = widest_share(counts)
    if equal_shares(counts) < SIGNIFICANT and high - low > SMALL_SHIFT:
        yield (
            f"The shares of the classes differ between environments: that of {classes[widest]} ranges from {low:.0%} "
            f"to {high:.0%}. Probabilities assume the shares in this table; a new environment has its own."
        )


def explained_by(statistics: ClassStatistics, scores: LinearModel) -> float:
    """The share of the likelihood per row that the scores explain."""
    shares = statistics.counts.sum(1) / statistics.counts.sum()
    log_shares = np.log(np.maximum(statistics.counts.sum(0) / statistics.counts.sum(), 1e-300))
    constant = LinearModel(np.zeros_like(scores.coefficients), log_shares)
    gained = shares @ (expected_log_loss(statistics, scores) - expected_log_loss(statistics, constant))
    return max(0.0, float(-np.expm1(2 * gained)))
