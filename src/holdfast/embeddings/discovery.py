"""What varies between environments in an embedding: directions, scores of the rows, attributes, and what it means."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.progress import counted
from holdfast.core.validation import require
from holdfast.embeddings.attributes import Cut, ScoreGroups, bimodal_rotation, joint_groups, two_means
from holdfast.embeddings.invariance import InvarianceTests, compare_invariance
from holdfast.embeddings.variation import LEVEL, Variation, embedding_moments, find_variation, target_units
from holdfast.estimators.search.class_means import widest_share

# Shares of classes that differ by less are not worth a sentence, however surely they differ.
SMALL_SHIFT = 0.05
_WORDS_OF_CLASSES = ("the classes differ", "separates the classes", "the variance within classes")
_WORDS_OF_NUMBERS = ("features follow the target", "follows the target", "the variance that the target leaves")
# Labels with more different values than this are numbers, or identifiers.
MOST_LABELS = 1000


def explain(variation: Variation, tests: InvarianceTests, grouping: Grouping, classes: tuple) -> Iterator[str]:
    """Sentences: what was found, what it may be instead, and what follows.

    Args:
        variation: the directions that vary, with their tests.
        tests: of what stays the same in all environments.
        grouping: environments of the rows.
        classes: labels; () for a continuous target.

    Example:
        >>> from holdfast.embeddings.invariance import compare_invariance
        >>> from holdfast.embeddings.variation import find_variation
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> y, grouping = np.arange(400) % 2, Grouping(np.zeros(400, int), ["all"])
        >>> x = np.random.default_rng(0).standard_normal((400, 3))
        >>> found = find_variation(collect_class_moments(x, y, grouping))
        >>> tests = compare_invariance(found, found.components.coordinates(x), y, grouping.codes)
        >>> list(explain(found, tests, grouping, (0, 1)))
        ['There is only one environment, so nothing can be compared.']
    """
    count, number = variation.count, grouping.count
    differ, signal, unit = _WORDS_OF_CLASSES if classes else _WORDS_OF_NUMBERS
    if number == 1:
        yield "There is only one environment, so nothing can be compared."
        return
    if variation.found.most == 0:
        yield (
            f"Nothing can be compared: the {number} environments have no two classes in common, so differences between "
            "classes cannot be told from differences between environments."
        )
        return
    if count == 0:
        yield (
            f"Nothing varies: {differ} equally in the {number} environments ({_p_value(variation.p_values[0])}, level "
            f"{variation.level:g}, {counted(len(variation.directions), 'component')})."
        )
    else:
        yield (
            f"{'One direction varies' if count == 1 else f'{count} directions vary'} between the {number} environments "
            f"({_p_value(variation.p_values[count - 1])}, level {variation.level:g}): {variation.share:.0%} of what "
            f"{signal} lies along {'it' if count == 1 else 'them'}, in units of {unit}."
        )
    yield from _label_sentences(variation, classes)
    if variation.is_signal:
        yield (
            f"The direction is the signal: nothing else {signal} ({_p_value(variation.rest_p_value)}). Either one "
            "signal differs in strength between environments, as with noisier labels, or the network has learnt "
            "nothing else yet. Removing or balancing it would leave nothing to predict with."
        )
    if count and not np.isnan(tests.classes):
        yield from _invariance_sentences(variation, tests, bool(classes))
    if variation.unseen:
        yield (
            f"So few environments cannot show more than {counted(count, 'direction')}; more environments may reveal "
            "others that vary."
        )


def _invariance_sentences(variation: Variation, tests: InvarianceTests, classes: bool) -> Iterator[str]:
    target, model = ("class", "logistic") if classes else ("target", "linear")
    given_all, given_rest = _p_value(tests.classes), _p_value(tests.classes_of_rest)
    if tests.classes >= variation.level:
        yield (
            f"It may be no shortcut: the {target} given all features is the same in all environments ({given_all}), "
            "and only the features are distributed differently. A network trained on all rows is then right as it is."
        )
        return
    stays = tests.classes_of_rest >= variation.level
    other = f"a nonlinear {'class boundary' if classes else 'relation'} could look the same"
    yield (
        f"Probably a shortcut; {other}. The {model} regression on all features differs between environments "
        f"({given_all}); on the rest of the features it {'does not' if stays else 'differs too'} ({given_rest})."
    )
    if tests.environment_effects < variation.level:
        yield (
            f"The rest of the features shifts between environments, equally for every {target} "
            f"({_p_value(tests.environment_effects)}): differences between classes stay, but a threshold may have to "
            "move."
        )


def _label_sentences(variation: Variation, classes: tuple) -> Iterator[str]:
    if variation.label_shift_p_value >= variation.level:
        return
    if not classes:
        sums = variation.components.moments.sums[:, 0]
        means = variation.components.moments.shift[0] + sums[:, 0, 1] / sums[:, 0, 0]
        _, deviation = target_units(variation.components)
        if np.ptp(means) > SMALL_SHIFT * deviation:
            yield (
                f"The target itself shifts: its mean ranges from {means.min():.3g} to {means.max():.3g} "
                f"({_p_value(variation.label_shift_p_value)})."
            )
        return
    widest, low, high = widest_share(variation.components.moments.counts)
    if high - low > SMALL_SHIFT:
        yield (
            f"The label itself shifts: the share of class {classes[widest]} ranges from {low:.0%} to {high:.0%} "
            f"({_p_value(variation.label_shift_p_value)}). This is no shortcut, since directions are compared within "
            "environments, but the probabilities of a network trained on all rows are those of the mixture."
        )


def _p_value(value: float) -> str:
    return "p < 1e-99" if value < 1e-99 else f"p = {value:.2g}"


@dataclass(frozen=True, repr=False)
class Discovery:
    """What varies between environments, as scores and attributes of the rows.

    Attributes:
        variation: the directions, with their tests.
        tests: of what stays the same in all environments.
        loadings: (features, attributes): a score is (row - centre) @ loadings, rotated so that each shows an attribute.
        scores: (rows, attributes).
        targets: (rows,), codes of the classes, or the continuous target.
        classes: labels of the classes; () for a continuous target.
        grouping: environments of the rows.

    Example:
        >>> random = np.random.default_rng(0)
        >>> label, environment = np.arange(4000) % 2, np.arange(4000) // 2000
        >>> agrees = random.random(4000) < np.where(environment == 0, 0.7, 0.9)
        >>> colour = np.where(agrees, label, 1 - label)
        >>> shape = label + random.standard_normal(4000)
        >>> embedding = np.column_stack([colour + 0.1 * random.standard_normal(4000), shape])
        >>> found = discover(embedding, label, environment)
        >>> agreement = float(np.mean(found.attributes[:, 0] == colour))
        >>> found.count, max(agreement, 1 - agreement) > 0.99
        (1, True)
    """

    variation: Variation
    tests: InvarianceTests
    loadings: np.ndarray
    scores: np.ndarray
    targets: np.ndarray
    classes: tuple
    grouping: Grouping

    @property
    def count(self) -> int:
        """The number of directions that vary."""
        return self.variation.count

    @property
    def centre(self) -> np.ndarray:
        """(features,), subtracted before a row is scored."""
        return self.variation.components.centre

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """The best cut of each score in two."""
        return tuple(two_means(column) for column in self.scores.T)

    @cached_property
    def joint(self) -> ScoreGroups:
        """The groups of all scores together."""
        return joint_groups(self.scores)

    @cached_property
    def attributes(self) -> np.ndarray:
        """(rows, attributes): the groups, as a column for each attribute if they are all combinations of several."""
        return self.joint.values[self.groups()]

    def groups(self, features: ArrayLike | None = None) -> np.ndarray:
        """(rows,): the group of each row, by all scores together (`joint_groups`); other rows by their features."""
        return self.joint.of(self.scores if features is None else self.score(features))

    @property
    def is_binary(self) -> tuple[bool, ...]:
        """Whether each score falls into two groups, more clearly than a uniform law."""
        return tuple(cut.is_binary for cut in self.cuts)

    @property
    def codes(self) -> np.ndarray:
        """(rows,): the number of the class; of a continuous target, 0 in its lower half and 1 in its upper half."""
        return self.targets if self.classes else (self.targets > np.median(self.targets)).astype(int)

    def score(self, features: ArrayLike) -> np.ndarray:
        """(rows, attributes): the scores of other rows of the same embedding."""
        rows = np.asarray(features, float)
        contract = f"features must be finite numbers of the shape (rows, {len(self.centre)})"
        require(rows.ndim == 2 and rows.shape[1] == len(self.centre), contract, f"the shape {rows.shape}")
        require(bool(np.isfinite(rows).all()), contract, "others")
        return (rows - self.centre) @ self.loadings

    def shares(self, attribute: int = 0) -> np.ndarray:
        """(environments, classes): the share of rows above the best cut; of a continuous target, by halves of it."""
        above = self.scores[:, attribute] > self.cuts[attribute].threshold
        shape = (self.grouping.count, len(self.classes) or 2)
        cells = np.ravel_multi_index((self.grouping.codes, self.codes), shape)
        upper, counts = (np.bincount(cells, each, np.prod(shape)).reshape(shape) for each in (above, None))
        return np.where(counts > 0, upper / np.maximum(counts, 1), np.nan)

    @cached_property
    def sentences(self) -> list[str]:
        """What was found, in words, each with the test that shows it."""
        return list(explain(self.variation, self.tests, self.grouping, self.classes))

    def __repr__(self) -> str:
        return f"Discovery(count={self.count}, rows={len(self.targets)}, environments={self.grouping.count})"

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def discover(
    features: ArrayLike,
    targets: ArrayLike,
    environments: Any,
    *,
    continuous: bool = False,
    components: int | None = None,
    level: float = LEVEL,
) -> Discovery:
    """Find the directions of an embedding in which the differences between the classes vary between environments.

    Args:
        features: (rows, features), an embedding of each row.
        targets: (rows,), labels of the classes, or numbers.
        environments: one label for each row.
        continuous: whether the target is a number instead of a class.
        components: how many principal components are compared; None: 20, fewer if an environment has few rows.
        level: probability of finding a direction where none varies.

    Example, nothing varies:
        >>> random = np.random.default_rng(0)
        >>> label, environment = np.arange(1000) % 2, np.arange(1000) // 500
        >>> found = discover(random.standard_normal((1000, 3)) + label[:, None], label, environment)
        >>> found.sentences[0]
        'Nothing varies: the classes differ equally in the 2 environments (p = 0.25, level 0.01, 3 components).'
    """
    rows = np.asarray(features, float)
    require(rows.ndim == 2, "features must have two dimensions, rows and features", f"the shape {rows.shape}")
    grouping = group_rows(environments, len(rows))
    codes, classes = encode_targets(targets, len(rows), continuous)
    moments = embedding_moments(rows, np.asarray(targets), grouping, continuous=continuous)
    variation = find_variation(moments, components=components, level=level, continuous=continuous)
    return describe_variation(variation, variation.components.coordinates(rows), codes, classes, grouping)


def encode_targets(targets: ArrayLike, rows: int, continuous: bool) -> tuple[np.ndarray, tuple]:
    """Numbers of the classes with their labels, or the continuous target as it is with no labels.

    Example:
        >>> encode_targets(["dog", "cat", "dog"], 3, False)
        (array([1, 0, 1]), ('cat', 'dog'))
    """
    labels = np.asarray(targets)
    contract = f"targets must be one label for each of the {rows} rows"
    require(labels.shape == (rows,), contract, f"the shape {labels.shape}")
    if continuous:
        return labels.astype(float), ()
    check_labels(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    hint = "; pass continuous=True if they are numbers" if len(classes) > MOST_LABELS else ""
    few = 1 < len(classes) <= MOST_LABELS
    require(few, f"targets must be labels of 2 to {MOST_LABELS} classes", f"{len(classes)} different values{hint}")
    return codes, tuple(classes.tolist())


def check_labels(targets: np.ndarray) -> None:
    """Raise an error if targets are numbers with decimals, which are no labels of classes.

    Example:
        >>> check_labels(np.array([0.0, 1.0]))
        >>> check_labels(np.array([0.0, 0.37]))
        Traceback (most recent call last):
        ValueError: targets must be labels of classes, got numbers such as 0.37; pass continuous=True for numbers
    """
    if not np.issubdtype(targets.dtype, np.floating):
        return
    odd = targets[targets != np.floor(targets)]
    if len(odd):
        raise ValueError(
            f"targets must be labels of classes, got numbers such as {odd[0]:.3g}; pass continuous=True for numbers"
        )


def describe_variation(
    variation: Variation, coordinates: np.ndarray, targets: np.ndarray, classes: tuple, grouping: Grouping
) -> Discovery:
    """The scores of the rows along what varies, turned so that each shows an attribute, and the tests of what stays.

    Args:
        variation: the directions.
        coordinates: (rows, components), of its components.
        targets: (rows,), codes of the classes, or a continuous target.
        classes: labels; () for a continuous target.
        grouping: environments of the rows.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> y, grouping = np.arange(400) % 2, Grouping(np.arange(400) // 200, ["a", "b"])
        >>> x = np.random.default_rng(0).standard_normal((400, 3))
        >>> found = find_variation(collect_class_moments(x, y, grouping))
        >>> describe_variation(found, found.components.coordinates(x), y, (0, 1), grouping).scores.shape
        (400, 0)
    """
    scores = coordinates @ variation.directions[:, : variation.count]
    rotation = bimodal_rotation(scores) if variation.count > 1 else np.eye(variation.count)
    tests = compare_invariance(variation, coordinates, targets, grouping.codes)
    return Discovery(variation, tests, variation.loadings @ rotation, scores @ rotation, targets, classes, grouping)
