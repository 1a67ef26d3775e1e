"""What a comparison of environments means, in words, each with the test that shows it."""

from collections.abc import Iterator

import numpy as np

from holdfast.core.grouping import Grouping
from holdfast.core.progress import counted
from holdfast.embeddings.components import target_units
from holdfast.embeddings.invariance import InvarianceTests
from holdfast.embeddings.variation import Variation
from holdfast.estimators.search.class_means import widest_share

# Shares of classes that differ by less are not worth a sentence, however surely they differ.
SMALL_SHIFT = 0.05
_WORDS_OF_CLASSES = ("the classes differ", "separates the classes", "the variance within classes")
_WORDS_OF_NUMBERS = ("features follow the target", "follows the target", "the variance that the target leaves")


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
