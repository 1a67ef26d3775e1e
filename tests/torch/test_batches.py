"""The sequence of batches: purity, each row as promised, proportions in every cycle, and the laws of the draws."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.grouping import group_rows
from holdfast.torch.batches import ORDERS, BatchSequence, Visits

FAST = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def sequences(draw, **fixed):
    """(labels, sequence) for random labels and settings; those of `fixed` are given."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    labels = np.repeat([f"e{number}" for number in range(len(sizes))], sizes)
    labels = labels[np.random.default_rng(draw(st.integers(0, 99))).permutation(len(labels))]
    batch_size = draw(st.integers(1, 6))
    weights = draw(
        st.one_of(
            st.sampled_from(["size", "uniform"]),
            st.fixed_dictionaries({label: st.integers(1, 4) for label in sorted(set(labels))}),
        )
    )
    chosen = {
        "order": draw(st.sampled_from(ORDERS)),
        "weights": weights,
        "replacement": draw(st.booleans()),
        "drop_last": draw(st.booleans()) and min(sizes) >= batch_size,
        "seed": draw(st.integers(0, 2**32 - 1)),
    } | fixed
    return labels, BatchSequence(group_rows(labels, len(labels)), batch_size, **chosen)


def _first(sequence, count):
    return list(islice(sequence.iterate(0), count))


def test_orders_have_the_names_of_the_library():
    from holdfast.core import order

    assert sorted(ORDERS) == sorted(order.ORDERS)


@FAST
@given(sequences())
def test_every_batch_is_of_the_environment_of_its_visit(made):
    labels, sequence = made
    environments = sequence.visits.window(0, 40)
    for environment, batch in zip(environments, _first(sequence, 40), strict=True):
        assert set(labels[batch]) == {sequence.labels[environment]}


@FAST
@given(sequences(), st.integers(0, 5000), st.integers(1, 4))
def test_the_sequence_can_be_entered_anywhere_and_in_strides(made, start, stride):
    _, sequence = made
    every = list(islice(sequence.iterate(start), 3 * stride + 1))
    strided = list(islice(sequence.iterate(start, stride), 4))
    assert [batch.tolist() for batch in strided] == [batch.tolist() for batch in every[::stride]]
    assert sequence.batch(start + 2).tolist() == list(islice(sequence.iterate(start), 3))[-1].tolist()


@FAST
@given(sequences(replacement=False), st.integers(1, 80))
def test_without_replacement_no_row_is_ahead_of_the_others_of_its_environment(made, count):
    """Counts of the rows of an environment differ by at most one (drop_last aside), and no batch has a row twice."""
    labels, sequence = made
    batches = _first(sequence, count)
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)
    seen = Counter(np.concatenate(batches).tolist())
    if not sequence.drop_last:
        for label in set(labels):
            counts = [seen[row] for row in np.flatnonzero(labels == label).tolist()]
            assert max(counts) - min(counts) <= 1


@FAST
@given(st.integers(1, 20), st.integers(1, 6), st.integers(0, 99))
def test_drop_last_leaves_out_less_than_a_batch_of_each_pass(rows, batch_size, seed):
    if rows < batch_size:
        return
    sequence = BatchSequence(group_rows([0] * rows, rows), batch_size, drop_last=True, seed=seed)
    full = rows // batch_size
    for number in range(3):
        batches = list(islice(sequence.iterate(number * full), full))
        assert {len(batch) for batch in batches} == {batch_size}
        assert len(set(np.concatenate(batches).tolist())) == full * batch_size


@FAST
@given(sequences(replacement=False, drop_last=False, weights="size"), st.integers(0, 3))
def test_in_proportion_to_size_every_epoch_has_every_row_once(made, epoch):
    labels, sequence = made
    if sequence.visits.order == "independent":
        return
    length = sequence.batches_per_pass
    rows = np.concatenate(list(islice(sequence.iterate(epoch * length), length)))
    assert sorted(rows.tolist()) == list(range(len(labels)))


@FAST
@given(sequences(), st.integers(0, 6000))
def test_every_cycle_has_each_environment_in_its_proportion(made, number):
    _, sequence = made
    visits = sequence.visits
    if visits.order != "independent":
        found = visits.window(number * visits.length, (number + 1) * visits.length)
        assert np.bincount(found, minlength=len(visits.cycle)).tolist() == visits.cycle.tolist()


@FAST
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_also_within_a_long_cycle_no_environment_runs_ahead(cycle, seed):
    """At moment x of a cycle N_e is within 1 of v_e x and all visits within E of L x, so N_e is within 1 + E p_e."""
    visits = Visits("reshuffled", np.array(cycle), seed)
    found = visits.window(0, visits.length)
    shares = np.array(cycle) / visits.length
    counts = np.cumsum(found[:, None] == np.arange(len(cycle)), 0)
    ahead = np.abs(counts - np.arange(1, visits.length + 1)[:, None] * shares)
    assert (ahead <= 1 + len(cycle) * shares + 1e-9).all()


def test_a_reshuffled_cycle_of_single_visits_is_a_uniform_permutation():
    """All 6 orders of 3 environments in 12,000 cycles: chi-square of 5 degrees below its 99.9 % quantile, 20.5."""
    found = Visits("reshuffled", np.ones(3, int), seed=1).window(0, 36_000).reshape(-1, 3)
    counts = np.array(list(Counter(map(tuple, found.tolist())).values()))
    assert len(counts) == 6
    assert np.square(counts - 2000).sum() / 2000 < 20.5


def test_independent_visits_have_their_probabilities_and_no_memory():
    """Shares within 4 standard errors, and so is the number of repetitions, sum p^2 for independent draws."""
    found = Visits("independent", np.array([1, 3]), seed=2).window(0, 40_000)
    assert abs(found.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 40_000)
    repeated = (found[1:] == found[:-1]).mean()
    # Repetitions of neighbours are correlated; the variance of the mean is at most 3 p (1 - p) / n.
    assert abs(repeated - (0.75**2 + 0.25**2)) < 4 * np.sqrt(3 * 0.625 * 0.375 / 40_000)


def test_with_replacement_rows_are_drawn_uniformly_within_their_environment():
    """40,000 draws over 8 rows: chi-square of 7 degrees below its 99.9 % quantile, 24.3."""
    sequence = BatchSequence(group_rows([0] * 8 + [1] * 3, 11), 10, order="cyclic", weights="uniform", replacement=True)
    rows = np.concatenate(list(islice(sequence.iterate(0, 2), 4000)))
    counts = np.bincount(rows, minlength=11)
    assert counts[8:].sum() == 0
    assert np.square(counts[:8] - 5000).sum() / 5000 < 24.3


def test_passes_are_uniform_permutations_and_differ():
    """First row of 6,000 passes over 4 rows: chi-square of 3 degrees below its 99.9 % quantile, 16.3."""
    sequence = BatchSequence(group_rows(["only"] * 4, 4), 2)
    first = [batch[0] for batch in islice(sequence.iterate(0, 2), 6000)]
    assert np.square(np.bincount(first, minlength=4) - 1500).sum() / 1500 < 16.3


def test_pooled_batches_are_passes_through_all_rows():
    labels = ["a"] * 9 + ["b"] * 6
    sequence = BatchSequence(group_rows(labels, 15), 4, mixing=1.0)
    assert sequence.batches_per_pass == 4
    for epoch in range(3):
        batches = list(islice(sequence.iterate(4 * epoch), 4))
        assert sorted(np.concatenate(batches).tolist()) == list(range(15))


def test_pooled_rows_with_weights_have_the_shares_of_the_environments():
    """Uniform over environments of 90 and 10 rows: 0.5 of 40,000 draws within 4 standard errors."""
    labels = np.repeat([0, 1], [90, 10])
    sequence = BatchSequence(group_rows(labels, 100), 10, mixing=1.0, weights="uniform", replacement=True)
    rows = np.concatenate(_first(sequence, 4000))
    assert abs(labels[rows].mean() - 0.5) < 4 * np.sqrt(0.25 / 40_000)


@FAST
@given(st.integers(2, 12), st.floats(0.1, 0.9), st.integers(0, 100))
def test_a_mixture_has_its_share_of_pooled_rows(batch_size, mixing, seed):
    pooled = round(mixing * batch_size)
    if not 0 < pooled < batch_size:
        return
    labels = np.repeat([0, 1, 2], 60)
    sequence = BatchSequence(group_rows(labels, 180), batch_size, mixing=mixing, seed=seed, drop_last=True)
    for environment, batch in zip(sequence.visits.window(0, 10), _first(sequence, 10), strict=True):
        assert len(batch) == batch_size
        assert (labels[batch[: batch_size - pooled]] == environment).all()
    pool = np.concatenate([batch[batch_size - pooled :] for batch in _first(sequence, 180 // pooled)])
    assert len(set(pool.tolist())) == len(pool)  # the first pass through all rows


def test_seeds_differ_and_the_sequence_is_pinned():
    """A change of these numbers changes what every resumed run goes on with."""
    grouping = group_rows(["a", "b"] * 6, 12)
    first = [batch.tolist() for batch in _first(BatchSequence(grouping, 3), 4)]
    other = [batch.tolist() for batch in _first(BatchSequence(grouping, 3, seed=1), 4)]
    assert first != other
    assert first == [[9, 5, 1], [8, 10, 0], [3, 7, 11], [6, 4, 2]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"order": "random"}, "order must be one of reshuffled, cyclic, independent, or mixing 1 .*, got 'random'"),
        ({"weights": "sizes"}, "weights must be 'size', 'uniform' or a mapping, got 'sizes'"),
        ({"weights": {"a": 1.0}}, "weights must have one number for each of the environments 'a', 'b', got 'a'"),
        ({"weights": {"a": 1.0, "b": -1.0}}, r"weights must be finite, not negative and not all zero, got \[1.0, -1.0"),
        ({"mixing": 1.5}, "mixing must be a number from 0 to 1, got 1.5"),
        ({"mixing": 0.01}, "mixing must give at least one row of a batch of 4 to each part, got 0.01"),
        ({"mixing": 1.0, "weights": "uniform"}, "replacement must be True for pooled rows whose weights are not"),
        ({"batch_size": 9, "drop_last": True}, "drop_last must be False for environments with fewer than the 9 rows"),
        ({"seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_errors_name_the_argument_and_what_is_allowed(settings, message):
    with pytest.raises(ValueError, match=message):
        BatchSequence(group_rows(["a", "b"] * 8, 16), **{"batch_size": 4} | settings)
