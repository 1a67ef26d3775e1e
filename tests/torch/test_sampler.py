"""The sampler: epochs, resumption anywhere, processes that together give the one sequence, labels of any kind."""

import pickle
from itertools import islice

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from holdfast.torch import EnvironmentBatchSampler
from holdfast.torch.batches import ORDERS

LABELS = ["north"] * 23 + ["south"] * 11 + ["east"] * 6
FAST = settings(max_examples=25, deadline=None, derandomize=True)
WEIGHTS = st.sampled_from(["size", "uniform", {"north": 1, "south": 2, "east": 1}])


def _sampler(**given):
    return EnvironmentBatchSampler(LABELS, **{"batch_size": 4} | given)


def _epochs(sampler, count):
    return [list(sampler) for _ in range(count)]


@FAST
@given(st.sampled_from(ORDERS), WEIGHTS, st.booleans(), st.integers(0, 1000))
def test_epochs_follow_one_another_and_can_be_asked_for(order, weights, replacement, seed):
    made = {"order": order, "weights": weights, "replacement": replacement, "seed": seed}
    epochs = _epochs(_sampler(**made), 4)
    again = _sampler(**made)
    again.set_epoch(3)
    assert list(again) == epochs[3]
    again.set_epoch(1)
    assert [*again, *again] == epochs[1] + epochs[2]
    assert len(again) == len(epochs[0])


@FAST
@given(st.sampled_from(ORDERS), WEIGHTS, st.integers(0, 40), st.sampled_from([0.0, 0.5, 1.0]))
def test_resuming_anywhere_gives_exactly_the_rest(order, weights, taken, mixing):
    made = {"order": order, "weights": weights, "mixing": mixing, "replacement": mixing > 0, "batch_size": 4}
    sampler = _sampler(**made)
    rest = iter([batch for epoch in _epochs(_sampler(**made), 7) for batch in epoch][taken:])
    state = None
    for number, _ in enumerate(batch for _ in range(5) for batch in sampler):
        if number == taken:
            break
        state = pickle.loads(pickle.dumps(sampler.state_dict()))
    resumed = _sampler(**made)
    if state is not None:
        resumed.load_state_dict(state)
    for _ in range(2):
        for batch in resumed:
            assert batch == next(rest)


@FAST
@given(st.sampled_from(ORDERS), st.integers(1, 4), st.integers(0, 3))
def test_processes_that_take_turns_give_the_sequence_of_one(order, count, epoch):
    length = 4 * 3 * 2
    one = _sampler(order=order, batches_per_epoch=length)
    one.set_epoch(epoch)
    whole = list(one)
    for rank in range(count):
        made = {"order": order, "rank": rank, "num_replicas": count, "batches_per_epoch": length, "split": "batches"}
        part = _sampler(**made)
        part.set_epoch(epoch)
        assert list(part) == whole[rank::count]
        assert part.visited(epoch) == one.visited(epoch)[rank::count]


@FAST
@given(st.sampled_from(ORDERS), st.integers(1, 4), st.integers(0, 3))
def test_slices_of_every_batch_together_are_the_batch(order, count, epoch):
    made = {"order": order, "drop_last": True}
    one = _sampler(**made)
    one.set_epoch(epoch)
    parts = []
    for rank in range(count):
        part = _sampler(**made, rank=rank, num_replicas=count)
        part.set_epoch(epoch)
        parts.append(list(part))
    for whole, *slices in zip(one, *parts, strict=True):
        assert sorted(whole) == sorted(row for each in slices for row in each)
        assert max(map(len, slices)) - min(map(len, slices)) <= 1
        assert all(slices)


@FAST
@given(st.sampled_from(["within", "batches"]), st.integers(0, 5), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2]))
def test_a_run_can_be_resumed_with_another_number_of_processes(split, taken, before, after):
    made = {"batches_per_epoch": 36, "split": split, "drop_last": True}
    first = _sampler(**made, rank=before - 1, num_replicas=before)
    found = islice(first, taken)
    assert len(list(found)) == taken
    seen = taken * (before if split == "batches" else 1)
    assert first.state_dict()["batches"] == seen
    if split == "batches" and seen % after:
        return
    whole = list(_sampler(batches_per_epoch=36, drop_last=True))[seen:]
    parts = []
    for rank in range(after):
        resumed = _sampler(**made, rank=rank, num_replicas=after)
        resumed.load_state_dict(first.state_dict())
        parts.append(list(resumed))
    if split == "batches":
        assert [parts[number % after][number // after] for number in range(len(whole))] == whole
    else:
        joined = [sorted(row for part in slices for row in part) for slices in zip(*parts, strict=True)]
        assert joined == [sorted(batch) for batch in whole]


def test_a_default_epoch_is_as_long_for_every_process():
    single = _sampler()
    parts = [_sampler(rank=rank, num_replicas=4, split="batches") for rank in range(4)]
    assert len(single) == 6 + 3 + 2
    assert [len(part) for part in parts] == [3, 3, 3, 3]
    both = [batch for group in zip(*parts, strict=True) for batch in group]
    assert both == (list(single) + list(single))[:12]


def test_setting_the_epoch_of_a_resumed_run_does_not_lose_its_place():
    """Trainers restore the sampler and then set the number of the epoch."""
    sampler = _sampler()
    whole = list(_sampler())
    list(islice(sampler, 5))
    resumed = _sampler()
    resumed.load_state_dict(sampler.state_dict())
    resumed.set_epoch(0)
    assert list(resumed) == whole[5:]
    resumed.set_epoch(0)
    assert list(resumed) == whole


def test_fetching_ahead_is_not_counted_as_consumed():
    sampler = _sampler()
    list(islice(sampler, 7))
    resumed = _sampler()
    resumed.load_state_dict(sampler.state_dict(batches=3))
    assert list(resumed) == list(_sampler())[3:]
    with pytest.raises(ValueError, match="batches must be at most the 7 that were handed out, got 8"):
        sampler.state_dict(batches=8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": 1}, "state must come from the same labels, settings and seed"),
        ({"batch_size": 5}, "state must come from the same labels"),
        ({"weights": "uniform"}, "state must come from the same labels"),
        ({"split": "batches", "rank": 0, "num_replicas": 2}, "state must be taken after a multiple of 2 batches"),
    ],
)
def test_a_state_of_another_sequence_is_refused(given, message):
    sampler = _sampler()
    list(islice(sampler, 3))
    with pytest.raises(ValueError, match=message):
        _sampler(**given).load_state_dict(sampler.state_dict())


@pytest.mark.parametrize(
    "labels",
    [
        np.array(LABELS),
        tuple(LABELS),
        pd.Series(LABELS, index=range(100, 140)),
        pd.Categorical(LABELS),
    ],
    ids=["array", "tuple", "series", "categories"],
)
def test_labels_of_any_kind_give_the_same_batches(labels):
    assert list(EnvironmentBatchSampler(labels, 4)) == list(_sampler())


@pytest.mark.parametrize(
    "labels",
    [
        [2] * 5 + [7] * 3,
        np.array([2] * 5 + [7] * 3, np.uint8),
        torch.tensor([2] * 5 + [7] * 3),
        [torch.tensor(label) for label in [2] * 5 + [7] * 3],
    ],
    ids=["list", "array", "tensor", "list of tensors"],
)
def test_labels_that_are_numbers(labels):
    sampler = EnvironmentBatchSampler(labels, 2)
    assert sampler.environments == [2, 7]
    assert {sampler.environment_of(batch) for batch in sampler} == {2, 7}


def test_labels_that_are_pairs():
    sampler = EnvironmentBatchSampler([("Basel", 2020)] * 5 + [("Kyoto", 2021)] * 3, 2)
    assert sampler.environments == [("Basel", 2020), ("Kyoto", 2021)]
    assert sampler.visits == {("Basel", 2020): 3, ("Kyoto", 2021): 2}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("north", "labels must have one label for each row, got one string"),
        (iter([1, 2]), "labels must have one label for each row, got list_iterator"),
        ([], "labels must have at least one row, got 0"),
        ([[1, 2], [3, 4]], "environments must be one label for each row, got an array of shape"),
        ([1.0, float("nan")], "missing labels"),
        (ConcatDataset([TensorDataset(torch.zeros(3))]), "got the data themselves, a ConcatDataset; for_concatenated"),
        (DataLoader(TensorDataset(torch.zeros(3))), "got the data themselves, a DataLoader"),
    ],
)
def test_labels_that_cannot_be_meant(labels, message):
    with pytest.raises(ValueError, match=message):
        EnvironmentBatchSampler(labels)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"split": "rows"}, "split must be 'within' or 'batches', got 'rows'"),
        ({"rank": 1}, r"rank and num_replicas must be given together, got \(1, None\)"),
        ({"rank": 2, "num_replicas": 2}, "rank must be below num_replicas, which is 2, got 2"),
        ({"rank": 0, "num_replicas": 3}, "every batch must have a row for each of the 3 processes.*batches of 2 rows"),
        (
            {"rank": 0, "num_replicas": 2, "split": "batches", "batches_per_epoch": 5},
            "batches_per_epoch must be a mult",
        ),
        ({"batches_per_epoch": 0}, "batches_per_epoch must be a whole number of at least 1, got 0"),
    ],
)
def test_settings_that_cannot_be_meant(given, message):
    with pytest.raises(ValueError, match=message):
        _sampler(**given)


def test_what_a_batch_holds_can_be_asked():
    sampler = _sampler()
    visited = sampler.visited()
    assert [sampler.environment_of(torch.tensor(batch)) for batch in sampler] == visited
    with pytest.raises(ValueError, match=r"batch must hold rows of one environment, got \{'east': 1, 'north': 1\}"):
        sampler.environment_of([0, 39])
    pooled = _sampler(mixing=1.0)
    assert sum(pooled.composition(range(40)).values()) == 40
    with pytest.raises(ValueError, match="visited needs batches that belong to an environment, got mixing=1"):
        pooled.visited()


def test_the_description_counts_rows_visits_and_passes():
    text = _sampler(weights="uniform", batches_per_epoch=12, rank=0, num_replicas=2).describe()
    assert "40 rows of 3 environments; batches of 4 rows, each of one environment, in reshuffled order." in text
    assert "Process 0 of 2 gets a slice of every batch." in text
    assert text.splitlines()[-1].split() == ["south", "11", "1", "1.33"]  # 4 visits of the 3 that a pass takes
    assert "in reshuffled order, with 1 rows from all of them" in _sampler(mixing=0.25).describe()
    assert "from all environments together" in _sampler(mixing=1.0).describe()


def test_concatenated_data_sets_are_environments():
    parts = [TensorDataset(torch.full((size,), float(size))) for size in (6, 0, 4)]
    dataset = ConcatDataset(parts)
    sampler = EnvironmentBatchSampler.for_concatenated(dataset, 2, names=["z", "empty", "a"])
    assert sampler.environments == ["z", "a"]
    for name, (values,) in zip(sampler.visited(), DataLoader(dataset, batch_sampler=sampler), strict=True):
        assert set(values.tolist()) == ({6.0} if name == "z" else {4.0})
    assert EnvironmentBatchSampler.for_concatenated(dataset, 2).environments == [0, 2]
    with pytest.raises(ValueError, match="names must have one name for each of 3 data sets, got 1"):
        EnvironmentBatchSampler.for_concatenated(dataset, names=["z"])
    with pytest.raises(ValueError, match="names must be different"):
        EnvironmentBatchSampler.for_concatenated(dataset, names=["z", "z", "a"])
    with pytest.raises(ValueError, match="dataset must be a ConcatDataset, got TensorDataset"):
        EnvironmentBatchSampler.for_concatenated(parts[0])


def test_labels_that_are_not_as_many_as_the_rows_are_refused():
    """Too many would end in an error of the data set, too few would leave rows out in silence."""
    dataset = ConcatDataset([TensorDataset(torch.zeros(3)), TensorDataset(torch.ones(5))])
    assert len(EnvironmentBatchSampler([0, 1] * 4, 2, dataset=dataset)) == 4
    for labels in ([0, 1] * 3, [0, 1] * 5):
        with pytest.raises(ValueError, match=rf"each of the 8 rows of the data set, got {len(labels)} labels"):
            EnvironmentBatchSampler(labels, 2, dataset=dataset)


def test_an_environment_of_weight_zero_is_not_visited():
    sampler = _sampler(weights={"north": 2, "south": 0, "east": 1})
    assert sampler.visits == {"east": 1, "north": 2, "south": 0}
    assert set(sampler.visited()) == {"north", "east"} == {sampler.environment_of(batch) for batch in sampler}


def test_the_global_random_state_is_neither_used_nor_changed():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = list(_sampler())
    torch.manual_seed(1)
    assert list(_sampler()) == first
    torch.manual_seed(0)
    list(_sampler())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_sampler_can_be_sent_to_another_process():
    sampler = _sampler()
    list(islice(sampler, 3))
    assert list(pickle.loads(pickle.dumps(sampler))) == list(sampler)
