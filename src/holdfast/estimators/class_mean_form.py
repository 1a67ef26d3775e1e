"""Invariance of features given the class: the linear discriminant of what is equal, its tables and its advice."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from holdfast.core.class_moments import ClassMoments, ClassStatistics, class_statistics
from holdfast.estimators.advice import (
    NOT_COMPARABLE,
    listed,
    most_varying,
    not_needed,
    pooling_sentences,
    selected_sentence,
    washed_out,
)
from holdfast.estimators.class_inference import contrasts, discriminant_errors
from holdfast.estimators.effects import EffectTables, OwnEffects, describe_effects
from holdfast.estimators.pooling import Pooling, blend, choose_pooling
from holdfast.estimators.search.class_means import (
    class_differences,
    difference_tests,
    equal_shares,
    varying_directions,
    widest_share,
)
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.discriminant import (
    ClassScores,
    expected_log_loss,
    held_out_discriminant_losses,
    linear_discriminant,
    needed_features,
)

# Shares of classes that differ by less, or at a larger probability, are not worth a sentence.
SMALL_SHIFT, SIGNIFICANT = 0.05, 0.001


class ClassMeanForm(NamedTuple):
    """The discriminant of the features, or directions, in which the classes differ equally in all environments.

    Attributes:
        statistics: counts, means and covariances.
        scores: of the classes, for features in standard units: (1 - a) strict_scores + a pooled_scores.
        strict_scores: those of the selected coordinates alone.
        pooled_scores: those of all features, whether their differences vary or not.
        pooling: a and where it comes from.
        selected: (coordinates,), which of them are used.
        coordinates: features, or the directions that were found.
        tables: effects, the log-odds of a coordinate alone, with their errors and stability.
        of_class: of more than two classes, the class that the tables are about, for each coordinate.
        advice: sentences.
    """

    statistics: ClassStatistics
    scores: ClassScores
    strict_scores: ClassScores
    pooled_scores: ClassScores
    pooling: Pooling
    selected: np.ndarray
    coordinates: Coordinates
    tables: EffectTables
    of_class: tuple
    advice: list[str]

    @property
    def varies(self) -> np.ndarray:
        """(coordinates,), in which of them the classes differ differently."""
        return self.tables.stability["varies"].to_numpy()

    @property
    def explained_by_all(self) -> float:
        """The share of the likelihood that linear scores of all features explain, of the discriminants at hand.

        That of the differences within environments is misled where the levels of features differ between them; that of
        all rows, whatever their environment, is not.
        """
        whole = linear_discriminant(_without_environments(self.statistics))
        return max(explained_by(self.statistics, one) for one in (whole, self.pooled_scores, self.strict_scores))


def fit_class_means(
    moments: ClassMoments,
    names: Sequence[str],
    *,
    significance: float = 0.001,
    tolerance: float = 0.0,
    rotation: bool = False,
    pooling: float | Literal["auto"] = "auto",
) -> ClassMeanForm:
    """Test which differences between classes are equal in all environments, and use those.

    Args:
        moments: of each class in each environment.
        names: of the features.
        significance: level of all tests of the features together, by Bonferroni's bound.
        tolerance: standard deviation of a difference over environments, as a share of it, that is too small to matter.
        rotation: the features may be an unknown rotation of what is invariant and what is not: find directions.
        pooling: "auto", or the weight of the discriminant of all features.

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
    features = len(statistics.scale)
    if rotation:
        found = varying_directions(statistics, significance, tolerance)
        system, names = Coordinates("class means", found.directions), [f"direction {i + 1}" for i in range(features)]
        varies = np.arange(features) < found.varying
        selected, unseen = ~varies, 0 < found.varying == found.most < features
        own = _rotated(statistics, found.directions)
    else:
        system, own, unseen = Coordinates("features", np.eye(features)), statistics, False
        varies = difference_tests(statistics, tolerance).p_values < significance / max(1, features)
        selected = needed_features(statistics, ~varies)
    strict = linear_discriminant(statistics, system.directions[:, selected])
    everything = linear_discriminant(statistics)
    weights = statistics.counts.sum(1) / statistics.counts.sum()

    def held_out(columns: np.ndarray) -> np.ndarray:
        return held_out_discriminant_losses(statistics, system.directions[:, columns])

    chosen = choose_pooling(pooling, held_out, weights, selected, float(varies.mean()))
    scores = blend(strict, everything, chosen.weight)
    widest, classes = _widest(own), len(moments.classes)
    coefficients, errors = np.full((2, classes, features), np.nan)
    if not rotation:
        coefficients = contrasts(classes) @ scores.coefficients
        if statistics.counts.sum() > (classes - 1) * (1 + (features if chosen.weight else int(selected.sum()))):
            errors = discriminant_errors(statistics, system.directions[:, selected], chosen.weight)
    tables = describe_effects(
        _alone(own, widest),
        _of_widest(coefficients, widest),
        _of_widest(errors, widest),
        selected=selected,
        varies=varies,
        names=names,
        labels=moments.labels,
        units=1.0 if rotation else 1 / statistics.scale,
    )
    of_class = tuple(moments.classes[number] for number in widest) if classes > 2 else ()
    form = ClassMeanForm(statistics, scores, strict, everything, chosen, selected, system, tables, of_class, [])
    return form._replace(advice=list(_sentences(form, moments, names, unseen, pooling == "auto")))


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
    """The statistics of all rows as those of one environment: levels of environments are variation within classes."""
    counts = statistics.counts.sum(0)
    shares = statistics.counts / np.maximum(counts, 1e-300)
    centres = np.einsum("ec,ecf->cf", shares, statistics.means)
    apart = statistics.means - centres
    covariances = np.einsum("ec,ecfg->cfg", shares, statistics.covariances)
    covariances = covariances + np.einsum("ec,ecf,ecg->cfg", shares, apart, apart)
    within = np.tensordot(counts / counts.sum(), covariances, 1) + statistics.total / counts.sum()
    return statistics._replace(
        counts=counts[None],
        means=centres[None],
        covariances=covariances[None],
        within=within,
        freedom=float(np.maximum(counts - 1, 0).sum()),
    )


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


def _sentences(
    form: ClassMeanForm, moments: ClassMoments, names: Sequence[str], unseen: bool, chosen: bool
) -> Iterator[str]:
    environments, features = len(moments.labels), len(form.selected)
    stability, varies = form.tables.stability, form.varies
    rotated = form.coordinates.name != "features"
    fit = class_differences(form.statistics)
    if environments == 1:
        yield (
            "There is only one environment, so no difference can be compared: this is a linear discriminant, and "
            "nothing is known about how it holds elsewhere."
        )
    elif fit.rank < len(moments.classes) - 1:
        yield (
            "Some classes never occur together in an environment, so what differs between classes cannot be told "
            "from what differs between environments."
        )
    elif ((form.statistics.counts > 0).sum(1) > 1).sum() < 2:
        yield (
            "Only one environment holds more than one class, so no difference between classes can be compared, and "
            "nothing is known about how it holds elsewhere."
        )
    elif not varies.any() and stability["significance"].isna().all():
        yield NOT_COMPARABLE
    elif not varies.any():
        yield (
            f"The differences between the classes do not vary between the {environments} environments beyond sampling "
            "error and the tolerance: nothing was washed out, and these environments cannot tell what is invariant "
            "from what is not."
        )
    if unseen:
        most = int(varies.sum())
        yield (
            f"Not identified: {environments} environments can show at most {most} of {features} directions, and the "
            "differences vary in all of these. More directions may vary unseen; the environments must outnumber the "
            "directions that vary."
        )
    share, everything = explained_by(form.statistics, form.strict_scores), form.explained_by_all
    if not form.selected.any() and (varies.any() or stability["significance"].notna().any()):
        left = ": the prediction is the share of each class, whatever the features are"
        yield (
            f"No feature separates the classes equally in all environments{left if form.pooling.weight == 0 else ''}. "
            f"All features together explain {everything:.0%} of the response in this table."
        )
    elif form.selected.any() and rotated:
        yield (
            f"Selected: {int(form.selected.sum())} of {features} directions, in which the classes differ equally in "
            f"all environments. They explain {share:.0%} of the response, all directions {everything:.0%}."
        )
    elif form.selected.any():
        yield selected_sentence(names, form.selected, share, everything)
    if varies.any() and not rotated:
        row = stability.iloc[most_varying(stability, varies)]
        yield (
            f"{washed_out('difference between the classes', form.pooling)} varies: {listed(names, varies)}. By itself, "
            f"{row.name} has log-odds from {row['lowest_effect']:.3g} to {row['highest_effect']:.3g}."
        )
    left = ~form.selected & ~varies
    if left.any() and not left.all():
        yield not_needed(listed(names, left), form.pooling)
    if environments > 1 and not form.selected.all():
        yield from pooling_sentences(form.pooling, chosen)
    widest, low, high = widest_share(form.statistics.counts)
    if equal_shares(form.statistics.counts) < SIGNIFICANT and high - low > SMALL_SHIFT:
        yield (
            f"The shares of the classes differ between environments: that of {moments.classes[widest]} ranges from "
            f"{low:.0%} to {high:.0%}. Probabilities assume the shares in this table; a new environment has its own."
        )
    if environments == 2:
        yield "With two environments a difference has only one chance to vary; a third would make the choice safer."


def explained_by(statistics: ClassStatistics, scores: ClassScores) -> float:
    """The share of the likelihood per row that the scores explain."""
    shares = statistics.counts.sum(1) / statistics.counts.sum()
    log_shares = np.log(np.maximum(statistics.counts.sum(0) / statistics.counts.sum(), 1e-300))
    constant = ClassScores(np.zeros_like(scores.coefficients), log_shares)
    gained = shares @ (expected_log_loss(statistics, scores) - expected_log_loss(statistics, constant))
    return max(0.0, float(-np.expm1(2 * gained)))
