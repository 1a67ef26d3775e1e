"""Which directions vary: level, power, number, and what else it may be."""

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import f as f_distribution

from holdfast.core.class_moments import add_class_moments, class_statistics, collect_class_moments
from holdfast.core.grouping import Grouping
from holdfast.embeddings import compare_invariance, discover, find_variation, group_scores
from holdfast.embeddings.invariance import equal_environment_effects
from holdfast.embeddings.variation import component_statistics, principal_components

DRAWS, LEVEL = 400, 0.05
# With 400 draws at level 0.05, more false alarms than this happen with probability 0.005.
MOST_ALARMS = int(binom.ppf(0.995, DRAWS, LEVEL))


def _shortcut(random, rows, agreements, noise=0.25):
    """A latent signal, flipped in a share of the labels, and a colour that agrees with the label more or less."""
    environment = np.arange(rows) % len(agreements)
    signal = random.integers(2, size=rows)
    label = signal ^ (random.random(rows) < noise)
    colour = np.where(random.random(rows) < np.asarray(agreements)[environment], label, 1 - label)
    return signal, label, colour, environment


def _embedded(random, *columns, size=10):
    """Columns seen through a fixed rotation, with noise in every direction."""
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((size, size)))[0]
    hidden = 0.2 * random.standard_normal((len(columns[0]), size))
    for number, column in enumerate(columns):
        hidden[:, number] += column
    return hidden @ turn


@pytest.mark.parametrize(
    ("rows", "environments", "classes"), [(500, 2, 2), pytest.param(600, 3, 3, marks=pytest.mark.slow)]
)
def test_false_alarms_are_as_rare_as_the_level(rows, environments, classes):
    """Features of a ReLU layer, so far from normal, in environments that differ in nothing, or in their level only."""
    alarms = 0
    mixing = np.random.default_rng(1).standard_normal((8 + classes, 12)) / 3
    for number in range(DRAWS):
        random = np.random.default_rng(20_000 + number)
        y, e = random.integers(classes, size=rows), random.integers(environments, size=rows)
        x = np.maximum(np.column_stack([random.standard_normal((rows, 8)), 1.5 * np.eye(classes)[y]]) @ mixing, 0)
        x = x + (number % 2) * e[:, None]  # environments at different levels are no finding
        grouping = Grouping(e, list(range(environments)))
        alarms += find_variation(collect_class_moments(x, y, grouping), components=8, level=LEVEL).count > 0
    assert alarms <= MOST_ALARMS
    assert alarms > 0  # a test that never rejects would pass as well


@pytest.mark.parametrize(("rows", "size"), [(100, 20), (60, 12)])
def test_slopes_are_compared_at_the_level_of_the_test(rows, size):
    """A continuous target that all features follow, equally in two environments of a few rows for each component."""
    alarms = 0
    for number in range(DRAWS):
        random = np.random.default_rng(50_000 + number)
        y, grouping = random.standard_normal(2 * rows), Grouping(np.arange(2 * rows) // rows, ["a", "b"])
        x = random.standard_normal((2 * rows, size)) + 0.3 * y[:, None]
        moments = collect_class_moments(np.column_stack([y, x]), np.zeros(2 * rows, int), grouping)
        found = find_variation(moments, level=LEVEL, continuous=True)
        assert len(found.directions) == size
        alarms += found.count > 0
    assert 0 < alarms <= MOST_ALARMS


@pytest.mark.parametrize("continuous", [False, True])
def test_shifted_targets_are_no_effect_of_the_environment(continuous):
    """Class 1 is rare in one environment and frequent in the other, or the mean of the target shifts by 2; given the
    target, features are the same in both. One environment has twice the variance."""
    alarms = 0
    for number in range(DRAWS):
        random = np.random.default_rng(60_000 + number)
        e = np.arange(400) // 200
        y = random.standard_normal(400) + 2 * e if continuous else (random.random(400) < np.array([0.1, 0.9])[e]) * 1.0
        x = random.standard_normal((400, 4)) * (1 + 0.4 * e[:, None]) + 0.5 * y[:, None]
        columns, labels = (np.column_stack([y, x]), np.zeros(400, int)) if continuous else (x, y.astype(int))
        found = find_variation(collect_class_moments(columns, labels, Grouping(e, [0, 1])), continuous=continuous)
        alarms += equal_environment_effects(found) < LEVEL
    assert 0 < alarms <= MOST_ALARMS


def test_environment_effects_are_those_of_least_squares():
    """Against the F test of nested regressions on the rows themselves, for one feature of equal variance."""
    random = np.random.default_rng(0)
    e, y = np.arange(600) % 3, random.standard_normal(600) + np.arange(600) % 3
    x = 0.5 * y + random.standard_normal(600) + 0.15 * (e == 2)
    moments = collect_class_moments(np.column_stack([y, x]), np.zeros(600, int), Grouping(e, [0, 1, 2]))
    small, large, own = (
        np.sum((x - columns @ np.linalg.lstsq(columns, x, rcond=None)[0]) ** 2)
        for columns in (
            np.column_stack([y, np.ones(600)]),
            np.column_stack([y, np.eye(3)[e]]),
            np.column_stack([y[:, None] * np.eye(3)[e], np.eye(3)[e]]),  # the noise: with slopes of their own
        )
    )
    expected = f_distribution.sf((small - large) / 2 / (own / 594), 2, 594)
    found = equal_environment_effects(find_variation(moments, continuous=True))
    # covariances of the environments are their own, with an error of sqrt(2 / 198) = 0.1 each
    assert np.log(found) == pytest.approx(np.log(expected), rel=0.1)
    assert expected < LEVEL


def test_the_shortcut_is_found_without_having_been_seen():
    random = np.random.default_rng(0)
    signal, label, colour, environment = _shortcut(random, 20_000, (0.8, 0.9))
    found = discover(_embedded(random, colour, signal), label, environment)
    agreement = np.mean(found.attributes[:, 0] == colour)
    assert found.count == 1
    # noise of 0.2 and a gap of 1 put a share of Phi(-1 / 0.4) = 0.006 on the wrong side of the cut, at best
    assert max(agreement, 1 - agreement) > 0.98
    assert found.variation.rest_p_value < 0.01
    assert found.tests.classes < 0.01
    assert found.tests.classes_of_rest > 0.01
    shares = found.shares()
    assert abs(abs(shares[1, 1] - shares[1, 0]) - abs(shares[0, 1] - shares[0, 0])) > 0.1
    assert found.sentences[0].startswith("One direction varies between the 2 environments")
    assert any(sentence.startswith("Probably a shortcut") for sentence in found.sentences)


def test_two_shortcuts_in_three_environments():
    random = np.random.default_rng(0)
    signal, label, colour, environment = _shortcut(random, 30_000, (0.9, 0.6, 0.6))
    texture = np.where(random.random(30_000) < np.array([0.6, 0.6, 0.9])[environment], label, 1 - label)
    found = discover(_embedded(random, 2 * colour, 2 * texture, signal), label, environment)
    assert found.count == 2
    for truth in (colour, texture):
        agreement = (found.attributes == truth[:, None]).mean(0)
        assert np.maximum(agreement, 1 - agreement).max() > 0.99


def test_groups_are_those_of_the_score_and_one_where_nothing_varies():
    random = np.random.default_rng(4)
    _, label, colour, environment = _shortcut(random, 3000, (0.6, 0.95))
    found = discover(_embedded(random, label, colour), label, environment)
    assert found.count == 1
    assert np.array_equal(found.groups()[:, None], found.attributes)
    assert np.bincount(group_scores(found.scores[:, 0], 3)).tolist() == [1000, 1000, 1000]
    none = discover(random.standard_normal((200, 3)), np.arange(200) % 2, np.arange(200) // 100)
    assert none.attributes.shape == (200, 0)
    assert none.groups().tolist() == none.groups(np.ones((200, 3))).tolist() == [0] * 200


def test_what_is_not_a_shortcut_is_said():
    """Equal everywhere; only the label shifts; one signal with more or less noise; features that move."""
    random = np.random.default_rng(3)
    signal, label, _, environment = _shortcut(random, 8000, (0.5, 0.5))
    nothing = discover(_embedded(random, signal), label, environment)
    assert nothing.count == 0
    assert nothing.sentences[0].startswith("Nothing varies")

    share = random.random(8000) < np.array([0.3, 0.7])[environment]
    shifted = discover(_embedded(random, share), share.astype(int), environment)
    assert shifted.count == 0
    assert any("The label itself shifts" in sentence for sentence in shifted.sentences)

    noisy = signal ^ (random.random(8000) < np.array([0.1, 0.3])[environment])
    strength = discover(_embedded(random, signal), noisy, environment)
    assert strength.count == 1
    assert strength.variation.is_signal
    assert any("The direction is the signal" in sentence for sentence in strength.sentences)

    moved = random.standard_normal(8000) + 1.5 * environment
    caused = (random.random(8000) < 1 / (1 + np.exp(-2 * moved))).astype(int)
    covariate = discover(np.column_stack([moved, random.standard_normal(8000)]), caused, environment)
    assert covariate.count == 1
    assert covariate.tests.classes > 0.01
    assert any("It may be no shortcut" in sentence for sentence in covariate.sentences)


def test_a_curved_relation_is_not_called_a_shortcut_for_certain():
    """The target is sin(x) everywhere, and the environments show different parts of the curve: slopes differ."""
    random = np.random.default_rng(0)
    environment = np.arange(4000) % 2
    x = random.standard_normal((4000, 2)) * 0.7 + 1.5 * environment[:, None]
    number = np.sin(x[:, 0]) + 0.3 * random.standard_normal(4000)
    label = (random.random(4000) < 1 / (1 + np.exp(-3 * np.sin(x[:, 0])))).astype(int)
    for target, continuous, model in ((label, False, "class boundary"), (number, True, "relation")):
        found = discover(x, target, environment, continuous=continuous)
        assert found.count == 1
        assert any(f"Probably a shortcut; a nonlinear {model} could look the same" in each for each in found.sentences)


@pytest.mark.slow
def test_forms_keep_their_level():
    """The class given the features is logistic, in environments whose features differ: 400 draws."""
    alarms = 0
    for number in range(DRAWS):
        random = np.random.default_rng(40_000 + number)
        e = random.integers(2, size=600)
        x = random.standard_normal((600, 3)) * (1 + e[:, None])
        y = (random.random(600) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
        found = find_variation(collect_class_moments(x, y, Grouping(e, [0, 1])), level=LEVEL)
        alarms += compare_invariance(found, found.components.coordinates(x), y, e).classes < LEVEL
    assert 0 < alarms <= MOST_ALARMS


def test_components_are_a_change_of_coordinates():
    """Moments of the components from the moments of the features are those of the rows themselves; chunks add up."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((300, 6)) @ random.standard_normal((6, 6)) + 7, np.arange(300) % 3
    grouping = Grouping(np.arange(300) % 2, ["a", "b"])
    parts = [
        collect_class_moments(x[rows], y[rows], Grouping(grouping.codes[rows], grouping.labels))
        for rows in (slice(0, 101), slice(101, 300))
    ]
    found = principal_components(add_class_moments(*parts)).leading(4)
    direct = class_statistics(collect_class_moments(found.coordinates(x), y, grouping))
    assert np.allclose(component_statistics(found).covariances, direct.covariances)
    assert np.allclose(component_statistics(found).means, direct.means, atol=1e-10)
    assert np.allclose(component_statistics(found.leading(2)).means, direct.means[..., :2], atol=1e-10)


def test_slopes_are_compared_like_differences_between_classes():
    """A target of two values is a class: both ways to compare find the same direction and almost the same test."""
    random = np.random.default_rng(0)
    _, label, colour, environment = _shortcut(random, 6000, (0.7, 0.75))
    x, grouping = _embedded(random, colour), Grouping(environment, [0, 1])
    classes = find_variation(collect_class_moments(x, label, grouping))
    columns = np.column_stack([label, x])
    numbers = find_variation(collect_class_moments(columns, np.zeros(6000, int), grouping), continuous=True)
    overlap = abs(np.corrcoef(x @ classes.found.directions[:, 0], x @ numbers.found.directions[:, 0])[0, 1])
    assert overlap > 0.999
    ratio = np.log(classes.p_values[0]) / np.log(numbers.p_values[0])
    assert ratio == pytest.approx(1, abs=0.05)


def test_the_number_of_components_does_not_depend_on_what_varies():
    random = np.random.default_rng(0)
    x, y, e = random.standard_normal((120, 50)), np.arange(120) % 2, np.arange(120) // 60
    assert find_variation(collect_class_moments(x, y, Grouping(e, [0, 1]))).components.directions.shape[1] == 6


def test_errors_name_the_argument():
    x, y, e = np.zeros((4, 2)), [0, 1, 0, 1], [0, 0, 1, 1]
    for arguments, words in (
        ((x[0], y, e), "features must have two dimensions"),
        ((x, [0, 0, 0, 0], e), "targets must be labels of 2 to 1000 classes, got 1 different values"),
        ((x, y[:2], e), "targets must be one label for each of the 4 rows"),
        ((x, [0.1, 2.0, 0.7, 1.0], e), "got numbers such as 0.1; pass continuous=True for numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            discover(*arguments)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 2"):
        discover(np.random.default_rng(0).standard_normal((4, 2)), y, e, level=2)


def test_features_that_do_not_vary_are_refused():
    with pytest.raises(ValueError, match="features must vary between the rows, got 3 columns that are constant"):
        discover(np.full((100, 3), 0.3), np.arange(100) % 2, np.arange(100) // 50)
