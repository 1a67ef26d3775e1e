"""Cuts, groups and rotations of scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.embeddings import bimodal_rotation, group_scores, two_means


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12))
def test_the_cut_is_the_best_of_all_cuts(numbers):
    """Against every threshold between two different numbers, by the definition of the variance within groups."""
    values = np.array(numbers, float)
    different = np.unique(values)
    if len(different) == 1:
        assert two_means(values).explained == 0
        return
    within = []
    for threshold in (different[1:] + different[:-1]) / 2:
        parts = values[values < threshold], values[values > threshold]
        within.append(sum(len(part) * part.var() for part in parts))
    found = two_means(values)
    explained = 1 - min(within) / (len(values) * values.var())
    assert found.explained == pytest.approx(explained, abs=1e-9)
    parts = values[values < found.threshold], values[values > found.threshold]
    assert sum(len(part) * part.var() for part in parts) == pytest.approx(min(within), abs=1e-9)


def test_known_laws():
    """The best cut explains 2/pi of a normal law, 3/4 of a uniform one and all of two values."""
    random = np.random.default_rng(0)
    assert two_means(random.standard_normal(200_000)).explained == pytest.approx(2 / np.pi, abs=0.005)
    assert two_means(random.random(200_000)).explained == pytest.approx(0.75, abs=0.005)
    assert two_means(np.repeat([3.0, 7.0], [10, 90])) == (5.0, pytest.approx(1.0))


def test_two_groups_or_four():
    random = np.random.default_rng(0)
    coins = random.choice([-1.0, 1.0], 1000)
    assert (group_scores(coins + 0.1 * random.standard_normal(1000)) == (coins > 0)).all()
    assert np.bincount(group_scores(random.standard_normal(1000))).tolist() == [250] * 4


@pytest.mark.parametrize("angle", [10, 45, 80])
def test_two_attributes_seen_at_an_angle_are_told_apart(angle):
    """Of 2,000 rows with noise of 0.2, each score then shows one attribute in at least 99 % of the rows."""
    random = np.random.default_rng(1)
    coins = random.choice([0, 1], (2000, 2))
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    scores = (2 * coins - 1 + 0.2 * random.standard_normal((2000, 2))) @ np.array([[cosine, -sine], [sine, cosine]])
    rotation = bimodal_rotation(scores)
    assert np.allclose(rotation.T @ rotation, np.eye(2), atol=1e-12)
    found = np.column_stack([group_scores(column) for column in (scores @ rotation).T])
    agreement = np.array([[np.mean(found[:, i] == coins[:, j]) for j in range(2)] for i in range(2)])
    clear = np.maximum(agreement, 1 - agreement)
    assert np.sort(clear.max(1))[0] > 0.99
    assert clear.argmax(1).tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize("noise", [0.1, 0.3])
@pytest.mark.parametrize(
    "shares", [(0.5, 0.5), (0.3, 0.3), (0.2, 0.2), (0.1, 0.1), (0.05, 0.05), (0.2, 0.5), (0.05, 0.3)]
)
def test_rare_values_are_told_apart_as_well(shares, noise):
    """Scores that are the attributes stay as they are, and turned by 30 degrees they are turned back. The sampling
    error of an angle is about sqrt(1 / 4000) = 0.9 degrees, more if values are rare and noisy: 4 are allowed."""
    random = np.random.default_rng(2)
    scores = (random.random((4000, 2)) < shares) + noise * random.standard_normal((4000, 2))
    scores = np.linalg.solve(np.linalg.cholesky(np.cov(scores.T)), scores.T).T
    cosine, sine = np.cos(np.pi / 6), np.sin(np.pi / 6)
    for turn in (np.eye(2), np.array([[cosine, -sine], [sine, cosine]])):
        found = np.abs(turn @ bimodal_rotation(scores @ turn))
        angle = np.rad2deg(np.arctan2(found.min(), found.max()))
        assert angle < 4


def test_rows_in_a_periodic_order_are_no_matter():
    """Of 60,000 rows every third shows the attributes at an angle of 45 degrees: these alone would be turned."""
    random = np.random.default_rng(3)
    coins = random.choice([-1.0, 1.0], (60_000, 2))
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    coins[::3] = coins[::3] @ turn
    assert np.allclose(np.abs(bimodal_rotation(coins)), np.eye(2), atol=0.05)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="groups must be a whole number of at least 2, got 1"):
        group_scores(np.arange(5.0), 1)
