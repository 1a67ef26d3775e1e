"""Streams: the order of `EnvironmentBatchSampler`, samples in their order, resumption, workers."""

from itertools import count, islice

import pytest
import torch
from torch.utils.data import DataLoader

from holdfast.torch import EnvironmentStreams
from holdfast.torch.batches import ORDERS


class Counting:
    """An endless stream: 0, 1, 2, ... times a sign."""

    def __init__(self, sign):
        self.sign = sign

    def __iter__(self):
        return (self.sign * number for number in count(1))


def _streams(order="reshuffled", **given):
    made = {"batches_per_epoch": 7, "order": order} | given
    return EnvironmentStreams({"up": Counting(1), "down": Counting(-1), "loop": [100, 200, 300]}, 2, **made)


@pytest.mark.parametrize("order", ORDERS)
def test_batches_are_pure_and_samples_come_in_the_order_of_their_stream(order):
    streams = _streams(order)
    for _ in range(3):
        visited, position = streams.visited(), dict.fromkeys(("up", "down", "loop"), 0)
        for label, batch in zip(visited, streams, strict=True):
            expected = islice(streams._samples(label, 0), position[label], position[label] + 2)
            assert batch.tolist() == list(expected)
            position[label] += 2


def test_visits_are_in_proportion_to_weights_over_epochs():
    streams = _streams(weights={"up": 2, "down": 1, "loop": 1})
    visited = []
    for _ in range(4):
        visited += streams.visited()
        list(streams)
    for cycle in range(7):
        assert sorted(visited[4 * cycle : 4 * cycle + 4]) == ["down", "loop", "up", "up"]


@pytest.mark.parametrize("taken", [0, 3, 7])
def test_resuming_gives_exactly_the_rest(taken):
    whole = [batch.tolist() for batch in _streams()]
    first = _streams()
    list(islice(iter(first), taken))
    state = _streams().state_dict(batches=taken)
    resumed = _streams()
    resumed.load_state_dict(state)
    resumed.set_epoch(taken // 7)
    found = [batch.tolist() for batch in resumed]
    following = _streams()
    following.set_epoch(1)
    assert found == (whole[taken:] if taken < 7 else [batch.tolist() for batch in following])


def test_batches_are_counted_from_where_the_iteration_began():
    """Resumed after 2 of 7 batches and stopped after 3 more: 2 are left."""
    whole = [batch.tolist() for batch in _streams()]
    resumed, again = _streams(), _streams()
    resumed.load_state_dict(_streams().state_dict(batches=2))
    list(islice(iter(resumed), 3))
    again.load_state_dict(resumed.state_dict(batches=3))
    assert [batch.tolist() for batch in again] == whole[5:]


@pytest.mark.parametrize("other", [{"order": "cyclic"}, {"seed": 5}, {"weights": {"up": 2, "down": 1, "loop": 1}}])
def test_a_state_of_another_sequence_is_refused(other):
    with pytest.raises(ValueError, match="state must come from the same labels, settings and seed"):
        _streams(**other).load_state_dict(_streams().state_dict())


def test_a_function_of_the_epoch_is_a_stream():
    streams = EnvironmentStreams({"a": lambda epoch: [epoch], "b": [-1]}, 1, batches_per_epoch=2, order="cyclic")
    assert [[batch.item() for batch in streams] for _ in range(3)] == [[0, -1], [1, -1], [2, -1]]


@pytest.mark.slow
def test_the_sequence_does_not_depend_on_the_number_of_workers():
    def made():
        plain = {"up": range(1, 100), "down": range(-1, -100, -1), "loop": [100, 200, 300]}
        return EnvironmentStreams(plain, 2, batches_per_epoch=7)

    single, streams = made(), made()
    # Fork after jax has started threads may hang.
    loader = DataLoader(
        streams, batch_size=None, num_workers=2, multiprocessing_context="spawn", persistent_workers=True
    )
    for epoch in range(2):
        streams.set_epoch(epoch)
        assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in single]


@pytest.mark.parametrize(
    ("streams", "given", "message"),
    [
        ({}, {}, "streams must have at least one environment, got 0"),
        ({"a": iter([1])}, {}, r"streams must start from their beginning at every iter\(\).*got \['a'\]"),
        ({"a": [1]}, {"order": "random"}, "order must be one of reshuffled, cyclic, independent, got 'random'"),
        ({"a": [1]}, {"weights": {"b": 1}}, "weights must have one number for each of the environments 'a', got 'b'"),
        ({"a": [1]}, {"batches_per_epoch": 0}, "batches_per_epoch must be a whole number of at least 1, got 0"),
    ],
)
def test_streams_that_cannot_be_meant(streams, given, message):
    with pytest.raises(ValueError, match=message):
        EnvironmentStreams(streams, **{"batches_per_epoch": 2} | given)


def test_an_empty_stream_is_an_error_and_not_an_endless_loop():
    with pytest.raises(ValueError, match="every stream must have at least one sample, got none from 'a'"):
        list(EnvironmentStreams({"a": []}, batches_per_epoch=1))


def test_samples_are_collated_by_the_function_that_is_given():
    streams = EnvironmentStreams(
        {"a": ["x", "yy"]}, 2, batches_per_epoch=1, collate=lambda batch: list(map(len, batch))
    )
    assert list(streams) == [[1, 2]]
    assert torch.equal(next(iter(EnvironmentStreams({"a": [1.0]}, 2, batches_per_epoch=1))), torch.ones(2).double())
