"""Weights under which attributes say nothing about the target."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.embeddings import attribute_offsets, balance_rows, balanced_weights


def _weighted(weights, codes, shape):
    return np.bincount(np.ravel_multi_index(codes, shape), weights=weights, minlength=np.prod(shape)).reshape(shape)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**31), st.sampled_from(["equal", "product"]))
def test_target_and_attribute_are_independent(classes, values, seed, distribution):
    random = np.random.default_rng(seed)
    y, a = random.integers(classes, size=400), random.integers(values, size=400)
    y, a = (
        np.concatenate([each, cells.ravel()]) for each, cells in zip((y, a), np.indices((classes, values)), strict=True)
    )
    weights = balanced_weights(y, a, distribution=distribution)
    joint = _weighted(weights, (y, a), (classes, values)) / weights.sum()
    assert np.allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)
    assert weights.mean() == pytest.approx(1)
    if distribution == "product":
        assert np.allclose(joint.sum(1), np.bincount(y) / len(y))
        assert np.allclose(joint.sum(0), np.bincount(a) / len(a))
    else:
        assert np.allclose(joint, 1 / joint.size)


def test_several_attributes_together_and_each():
    """Joint balancing needs rows of every combination; each attribute alone needs less, and makes less independent."""
    random = np.random.default_rng(0)
    y = random.integers(2, size=3000)
    a = np.where(random.random(3000) < 0.8, y, 1 - y)
    b = np.where(random.random(3000) < 0.7, y, 1 - y)
    joint = balance_rows(y, np.column_stack([a, b]))
    counts = _weighted(joint.weights, (y, a, b), (2, 2, 2))
    assert np.allclose(counts, 3000 / 8)
    assert len(joint.names) == 8
    assert joint.effective_rows < 3000
    three = np.where(random.random(3000) < 0.3, 2, b)
    seen = ~((y == 1) & (a == 0) & (three == 0))  # one combination never occurs
    with pytest.raises(ValueError, match="no row with the target 1 and attribute 0 and attribute 0"):
        balance_rows(y[seen], np.column_stack([a, three])[seen])
    each = balance_rows(y[seen], np.column_stack([a, three])[seen], independence="each")
    for attribute, size in ((a, 2), (three, 3)):
        counts = _weighted(each.weights, (y[seen], attribute[seen]), (2, size))
        assert np.allclose(counts, seen.sum() / (2 * size), rtol=1e-6)


@pytest.mark.parametrize("distribution", ["equal", "product"])
def test_margins_that_contradict_each_other_are_refused(distribution):
    """Where the target is 0, a is 0 exactly if b is, so both have that value equally often under any weights. Over all
    rows they do not: the shares of b are others (product), or it has three values (equal)."""
    random = np.random.default_rng(0)
    y = random.integers(2, size=3000)
    b = random.integers(3, size=3000)
    a = np.where(y == 0, b > 0, random.random(3000) < 0.1)
    with pytest.raises(ValueError, match=r"there are no weights of these rows .* attribute number [01]"):
        balance_rows(y, np.column_stack([a, b]), distribution=distribution, independence="each")


def test_a_continuous_target_is_cut_into_bins():
    random = np.random.default_rng(0)
    y = random.standard_normal(4000)
    a = (y + random.standard_normal(4000) > 0).astype(int)
    found = balance_rows(y, a, bins=4)
    bins = np.array([name[0] for name in found.names])[found.groups]
    assert np.allclose(_weighted(found.weights, (bins, a), (4, 2)), 500)


def test_errors_name_the_argument():
    for arguments, words in (
        ({"distribution": "fair"}, "distribution must be equal or product, got 'fair'"),
        ({"independence": "some"}, "independence must be joint or each, got 'some'"),
        ({"bins": 1}, "bins must be a whole number of at least 2, got 1"),
    ):
        with pytest.raises(ValueError, match=words):
            balance_rows([0, 0, 1, 1], [0, 1, 0, 1], **arguments)
    with pytest.raises(ValueError, match="one row for each of the 2 targets, got 3"):
        balance_rows([0, 1], [0, 1, 1])


def test_offsets_leave_to_the_network_what_the_rest_says():
    """x | y ~ N(+-m, 1), independent of an attribute that agrees with y in 85 %: log-odds of x alone are 2 m x.

    The logistic regression on x with offsets finds them within four standard errors, from the inverse information.
    """
    random, rows, m = np.random.default_rng(0), 20_000, 0.5
    y = random.integers(2, size=rows)
    attribute = np.where(random.random(rows) < 0.85, y, 1 - y)
    x = np.column_stack([np.ones(rows), (2 * y - 1) * m + random.standard_normal(rows)])
    offsets = np.diff(attribute_offsets(y, attribute), axis=1)[:, 0]
    beta = np.zeros(2)
    for _ in range(10):  # Newton's method
        p = 1 / (1 + np.exp(-(x @ beta + offsets)))
        information = (x * (p * (1 - p))[:, None]).T @ x
        beta = beta + np.linalg.solve(information, x.T @ (y - p))
    assert (np.abs(beta - [0, 2 * m]) < 4 * np.sqrt(np.diag(np.linalg.inv(information)))).all()


def test_offsets_of_several_attributes_are_conditional_log_shares():
    targets, attributes = np.array([0, 1, 1, 0, 1, 0]), np.array([[0, 0], [0, 0], [0, 0], [0, 1], [0, 1], [0, 1]])
    expected = np.log([[1 / 3, 2 / 3]] * 3 + [[2 / 3, 1 / 3]] * 3)
    assert np.allclose(attribute_offsets(targets, attributes), expected)
    with pytest.raises(ValueError, match="no row with the target 1 and attribute 1"):
        attribute_offsets([0, 0, 1], [0, 1, 0])
