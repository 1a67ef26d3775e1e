import itertools
from itertools import pairwise

import numpy as np
import pytest

from holdfast.theory.absorbing import (
    Constants,
    closedness,
    contains,
    holding_size,
    imbalance,
    layer_ranks,
    product_rank,
)
from holdfast_studies.papers.absorbing_search import COUNTS, most_interior, search_constants


@pytest.mark.parametrize("count", COUNTS)
def test_counts_are_what_the_slides_ask_of_them(count):
    """0 at 0, 1 from alpha on, increasing and concave."""
    x = np.linspace(0, 1.5, 301)
    values = count(x)
    assert values[0] == 0
    np.testing.assert_allclose(values[x >= 1], 1)
    slopes = np.diff(values)
    assert (slopes >= -1e-12).all()
    assert (np.diff(slopes) <= 1e-12).all()


def balanced(values, depth=3, seed=0):
    """Layers with given singular values that meet each other in the same directions."""
    random = np.random.default_rng(seed)
    frames = [np.linalg.qr(random.standard_normal((4, 4)))[0] for _ in range(depth + 1)]
    return tuple(after @ np.diag(values) @ before.T for before, after in pairwise(frames))


def test_balanced_layers_have_no_imbalance_and_the_rank_of_their_product():
    values = np.array([1.5, 0.8, 0.2, 0.0])
    layers = balanced(values)
    assert imbalance(layers) == pytest.approx(0, abs=1e-20)
    product = layers[2] @ layers[1] @ layers[0]
    for count in COUNTS:
        ranks = layer_ranks(layers, 0.5, count)
        np.testing.assert_allclose(ranks, count(values**2 / 0.5).sum(), atol=1e-6)
        # The lemma: for balanced layers s_i(A)^(2/L) = s_i(W)^2, so both approximate ranks are one number.
        assert product_rank(product, 3, 0.5, count) == pytest.approx(ranks[0], abs=1e-4)


def test_membership_ends_at_the_constants():
    layers = balanced(np.array([1.0, 0.1, 0.0, 0.0]))
    # f(0.01 / 0.04) = 1 - (3/4)^2
    assert layer_ranks(layers, 0.04) == pytest.approx(1 + 7 / 16)
    for slack, bound, inside in ((0.5, 1.02, True), (0.4, 1.02, False), (0.5, 1.0, False), (0.44, 1.0101, True)):
        assert contains(layers, 1, Constants(1e-6, slack, 0.04, bound)) == inside
    tilted = (1.01 * layers[0], *layers[1:])
    assert not contains(tilted, 1, Constants(1e-6, 0.5, 0.04, 1.1))
    assert contains(tilted, 1, Constants(1.0, 0.5, 0.04, 1.1))


def test_membership_has_the_leading_axes_of_the_layers():
    layers = tuple(np.stack([[layer] * 5] * 2) for layer in balanced(np.ones(4)))
    assert contains(layers, 2, Constants(1, 1, 1, 1)).shape == (2, 5)


def test_a_single_layer_is_always_balanced():
    assert contains((np.eye(2),), 2, Constants(0.0, 0.0, 0.5, 2.0))


def test_exits_are_counted():
    inside = np.array([[0, 1, 0, 1, 0], [0, 0, 1, 1, 1]], bool)
    found = closedness(inside)
    assert found.entered.tolist() == [1, 2]
    assert found.exits.tolist() == [2, 0]


def test_search_agrees_with_membership():
    random = np.random.default_rng(4)
    layers = tuple(random.standard_normal((6, 20, 3, 3)) * 0.5 for _ in range(2))
    tried = {"balance": (1.0, 5.0), "slack": (0.5,), "level": (0.1, 1.0), "bound": (2.0, 4.0), "count": COUNTS}
    searched = search_constants(layers, 2, tried)
    choices = list(itertools.product(*tried.values()))
    assert searched["exits"].size == len(choices) == 2 * 2 * 2 * len(COUNTS)
    for choice, entered, exits in zip(
        choices, searched["entered"].values.flat, searched["exits"].values.flat, strict=True
    ):
        found = closedness(contains(layers, 2, Constants(*choice)))
        assert entered == pytest.approx((found.entered >= 0).mean())
        assert exits == found.exits.sum()


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_below_the_holding_size_a_chain_of_numbers_shrinks(depth):
    """Layers of size one: the bound is the step itself."""
    step_size, ridge, residual = 0.1, 0.02, -0.7
    limit = holding_size(ridge, residual, depth)
    for share in (0.5, 0.99, 1.01, 2.0):
        size = share * limit
        after = (1 - 2 * step_size * ridge) * size - step_size * residual * size ** (depth - 1)
        assert (after < size) == (share < 1)


def test_two_layers_hold_all_sizes_or_none():
    assert holding_size(0.3, 0.5, 2) == np.inf
    assert holding_size(0.2, 0.5, 2) == 0
    assert holding_size(0.2, 0.0, 3) == np.inf
    assert holding_size(0.2, 0.5, 1) == 0


@pytest.mark.parametrize("rank", [1, 2])
def test_membership_by_traces_is_that_of_the_three_conditions(rank):
    """Layers around the boundary of all three conditions, so that every branch of the bounds decides some of them."""
    random = np.random.default_rng(7)
    sizes = np.exp(random.uniform(-3, 0.7, (400, 1, 4))) * np.array([1.0, 0.7, 0.5, 0.3])
    frames = np.linalg.qr(random.standard_normal((4, 400, 4, 4)))[0]
    layers = tuple((after * sizes) @ before.swapaxes(-1, -2) for before, after in pairwise(frames))
    layers = tuple(layer + 0.02 * random.standard_normal(layer.shape) for layer in layers)
    shares = []
    tried = itertools.product((0.05, 0.3), (0.2, 0.8), (0.05, 0.3), (1.0, 3.0), COUNTS)
    for constants in itertools.starmap(Constants, tried):
        bounded = np.max([np.square(layer).sum((-2, -1)) for layer in layers], axis=0) <= constants.bound
        of_rank = layer_ranks(layers, constants.level, constants.count).max(-1) <= rank + constants.slack
        expected = (imbalance(layers) <= constants.balance) & of_rank & bounded
        np.testing.assert_array_equal(contains(layers, rank, constants), expected)
        shares.append(expected.mean())
    assert min(shares) < 0.2
    assert max(shares) > 0.4


def test_the_most_interior_constants_have_the_most_closed_neighbours():
    closed = np.zeros((5, 5), bool)
    closed[1:5, 2:5] = True  # the interior is (2, 3) and (3, 3)
    entered = np.ones((5, 5))
    entered[2, 3] = 0.6
    assert most_interior(closed, entered) == (3, 3)
    with pytest.raises(ValueError, match="closed must be true for some constants"):
        most_interior(np.zeros(3, bool), np.ones(3))
