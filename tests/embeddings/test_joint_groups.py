"""Groups by all scores together: as many as there are, on simulated features whose attributes are known."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from holdfast.embeddings import bimodal_rotation, discover, group_scores, joint_groups, two_means


def _agreement(found, truth):
    """The share of rows in the right group, under the best matching of names."""
    truth = np.unique(truth, axis=0, return_inverse=True)[1].ravel()
    counts = np.zeros((max(found.max(), truth.max()) + 1,) * 2)
    np.add.at(counts, (found, truth), 1)
    return counts[linear_sum_assignment(-counts)].sum() / len(truth)


def _attribute(random, label, environment, agreement, values):
    """Equal to the label with the probability of the environment, otherwise one of the other values."""
    agrees = random.random(len(label)) < np.array(agreement)[environment]
    return (label + np.where(agrees, 0, random.integers(1, values, len(label)))) % values


def _simulated(kind, seed, rows=10_000):
    """Features, labels, environments, and the true attributes, a column each.

    Attributes are corners at a distance of 1, with noise of 0.15; beside them are a signal that is wrong in a part of
    the rows and 12 columns of noise, and all are rotated at random.
    """
    random = np.random.default_rng(seed)
    classes, environments = (2, 2) if kind == "colours" else (2 if kind == "two of two" else 3, 3)
    label, environment = random.integers(classes, size=rows), random.integers(environments, size=rows)
    first, second = {
        "colours": ((0.8, 0.9), None),
        "three colours": ((0.7, 0.8, 0.9), None),
        "two of two": ((0.9, 0.7, 0.7), (0.7, 0.7, 0.9)),
        "three and two": ((0.9, 0.6, 0.6), (0.6, 0.9, 0.6)),
    }[kind]
    attributes = [_attribute(random, label, environment, first, classes)]
    if second:
        attributes.append(_attribute(random, (label == classes - 1).astype(int), environment, second, 2))
    signal = np.where(random.random(rows) < 0.25, random.integers(classes, size=rows), label)
    corners = [np.eye(own.max() + 1)[own] / np.sqrt(2) for own in attributes]
    columns = np.column_stack([*corners, np.eye(classes)[signal]])
    noise = 0.5 * random.standard_normal((rows, 12))
    features = np.column_stack([columns + 0.15 * random.standard_normal(columns.shape), noise])
    rotation = np.linalg.qr(random.standard_normal((features.shape[1],) * 2))[0]
    return features @ rotation, label, environment, np.column_stack(attributes)


@pytest.mark.parametrize("seed", [100, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(101, 110))])
@pytest.mark.parametrize(
    ("kind", "groups", "attributes", "directions"),
    [("colours", 2, 1, 1), ("three colours", 3, 1, 2), ("two of two", 4, 2, 2), ("three and two", 6, 1, 3)],
)
def test_groups_are_the_true_ones(kind, groups, attributes, directions, seed):
    """Corners at 6.7 deviations: at best 2 Phi(-3.3) = 0.1 % of the rows are in the wrong group; directions have errors
    of their own. A direction too many, which the level allows in 1 % of the draws, cuts each group into four."""
    features, label, environment, truth = _simulated(kind, seed)
    found = discover(features, label, environment)
    labels = found.groups()
    if found.count > directions:
        assert found.variation.p_values[directions] > 1e-4
        labels = labels // 4
    assert labels.max() + 1 == groups
    assert _agreement(labels, truth) > 0.98
    if found.count == directions:
        assert found.attributes.shape == (len(label), attributes)
        assert len(np.unique(np.column_stack([labels, found.attributes]), axis=0)) == groups
    if kind == "colours" and found.count == 1:  # those of the best cut
        assert np.array_equal(labels, group_scores(found.scores[:, 0]))


def test_other_rows_are_in_the_groups_of_rows_like_them():
    features, label, environment, truth = _simulated("three colours", 0, rows=6000)
    found = discover(features[:4000], label[:4000], environment[:4000])
    assert _agreement(found.groups(features[4000:]), truth[4000:]) > 0.98
    parts = [found.groups(rows) for rows in np.array_split(features[:4000], 7)]
    assert np.array_equal(np.concatenate(parts), found.groups())
    assert np.array_equal(joint_groups(found.scores).of(found.scores), found.groups())
    with pytest.raises(ValueError, match=r"features must be finite numbers of the shape \(rows, 18\), got the shape"):
        found.groups(features[:, :2])
    with pytest.raises(ValueError, match="features must be finite numbers"):
        found.score(np.full((1, 18), np.nan))


LAWS = {
    "normal": lambda random, rows: random.standard_normal(rows),
    "uniform": lambda random, rows: random.random(rows),
    "exponential": lambda random, rows: random.exponential(size=rows),
    "heavy tails": lambda random, rows: random.standard_t(3, rows),
}


@pytest.mark.parametrize("rows", [400, 4000])
@pytest.mark.parametrize("law", LAWS)
def test_a_score_with_one_mode_is_cut_into_four(law, rows):
    scores = LAWS[law](np.random.default_rng(0), rows)
    assert np.array_equal(joint_groups(scores[:, None]).of(scores[:, None]), group_scores(scores, 4))


@pytest.mark.parametrize(("share", "distance"), [(0.5, 5), (0.2, 6), (0.05, 7)])
def test_two_modes_are_the_two_groups_of_the_best_cut(share, distance):
    """Of 4,000 rows; the rare ones as well, of which the cut explains less than of a uniform law."""
    random = np.random.default_rng(0)
    truth = random.random(4000) < share
    scores = distance * truth + random.standard_normal(4000)
    found = joint_groups(scores[:, None]).of(scores[:, None])
    cut = two_means(scores)
    assert np.array_equal(found, (scores > cut.threshold).astype(int))
    assert cut.is_binary == (share > 0.1)
    assert np.mean(found == truth) > 0.99


def test_a_continuous_score_is_cut_within_the_groups_of_the_others():
    random = np.random.default_rng(0)
    colour = random.integers(2, size=4000)
    scores = np.column_stack([colour + 0.1 * random.standard_normal(4000), random.standard_normal(4000) + colour])
    groups = joint_groups(scores)
    labels = groups.of(scores)
    assert np.array_equal(groups.values[labels, 0], scores[:, 0] > 0.5)
    assert groups.values.shape == (8, 2)
    for value in (0, 1):
        rows = colour == value
        assert np.ptp(np.bincount(groups.values[labels[rows], 1])) <= 1


@pytest.mark.parametrize("rows", [100, 2000])
def test_no_group_is_smaller_than_the_stated_minimum(rows):
    """Rare values, ties and two continuous scores: every group has 30 rows and 1 % of them."""
    random = np.random.default_rng(1)
    rare = random.random(rows) < 0.004
    tied = np.maximum(random.standard_normal(rows), 0)
    for scores in (
        np.column_stack([8 * rare + random.standard_normal(rows)]),
        np.column_stack([tied]),
        random.standard_normal((rows, 2)),
        np.column_stack([random.integers(3, size=rows), tied]).astype(float),
    ):
        counts = np.bincount(joint_groups(scores).of(scores))
        assert counts.min() >= max(30, rows / 100)


def test_values_without_any_spread_and_more_rows_than_decide():
    """Exact values in 30,000 rows, six combinations, which are two attributes."""
    random = np.random.default_rng(2)
    truth = np.column_stack([random.integers(2, size=30_000), random.integers(3, size=30_000)])
    scores = truth.astype(float)
    groups = joint_groups(scores @ bimodal_rotation(scores))
    found = groups.of(scores @ bimodal_rotation(scores))
    assert _agreement(found, truth) == 1
    assert groups.values.shape == (6, 2)
