"""Features of a layer: the same as computed by hand, however the data come."""

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

from holdfast.core.class_moments import class_statistics, collect_class_moments
from holdfast.core.grouping import group_rows
from holdfast.embeddings import invariant_head_of
from holdfast.torch import EnvironmentBatchSampler, LayerReader, invariant_head, with_layer
from holdfast.torch.features import layer_moments
from holdfast.torch.training import weighted_score


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.Dropout(), torch.nn.ReLU(), torch.nn.Linear(6, 2)
    ).train()


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    labels, environments = random.integers(2, size=300), random.choice(["dry", "wet"], 300)
    inputs = random.standard_normal((300, 4)) + labels[:, None] * (1 + (environments == "wet"))[:, None]
    return torch.tensor(inputs).float(), torch.tensor(labels), environments


def test_moments_in_chunks_are_those_of_all_rows(network, rows):
    """Against one array of all features, for tensors, a data set, a DataLoader and batches that bring environments."""
    inputs, labels, environments = rows
    network.eval()
    features = network[:3](inputs).detach().double().numpy()
    network.train()
    expected = class_statistics(collect_class_moments(features, labels.numpy(), group_rows(environments, 300)))
    data = TensorDataset(inputs, labels)
    batches = [(inputs[i : i + 7], labels[i : i + 7], environments[i : i + 7]) for i in range(0, 300, 7)]
    for source, given in (
        ((inputs, labels), environments),
        (data, environments),
        (DataLoader(data, batch_size=32), environments),
        (DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 32, drop_last=False)), environments),
        (batches, None),
    ):
        reader = LayerReader(network, "2", batch_size=64)
        moments, targets, grouping = layer_moments(reader, source, given)
        assert grouping.labels == list(moments.labels) == ["dry", "wet"]
        assert (targets == labels.numpy()).all()
        found = class_statistics(moments)
        assert np.allclose(found.means, expected.means, atol=1e-6)
        assert np.allclose(found.covariances, expected.covariances, atol=1e-6)
    assert network.training  # as before
    assert not network[2]._forward_hooks


def test_the_input_of_a_layer_is_the_output_of_the_one_before(network, rows):
    given = [batch.features for batch in LayerReader(network, "3", side="input").read(rows[:2])]
    returned = [batch.features for batch in LayerReader(network, "2").read(rows[:2])]
    assert np.array_equal(given[0], returned[0])


def test_images_are_averaged_over_positions_and_arguments_may_be_named():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(1, 3, 2)

        def forward(self, picture, scale):
            return self.layer(picture * scale).flatten(1)

    inputs = {"picture": torch.ones(5, 1, 4, 4), "scale": torch.ones(5, 1, 1, 1)}
    found = next(LayerReader(Named(), "layer").read([(inputs, torch.zeros(5))]))
    assert found.features.shape == (5, 3)


def test_the_head_takes_the_place_of_the_last_layer(network, rows):
    """The new network computes the discriminant of NumPy on the features of the old one."""
    inputs, labels, environments = rows
    head = invariant_head(network, (inputs, labels), replaces="3", environments=environments)
    network.eval()
    features = network[:3](inputs).detach().double().numpy()
    moments = collect_class_moments(features, labels.numpy(), group_rows(environments, 300))
    expected = invariant_head_of(moments)
    scores = with_layer(network, "3", head.linear)(inputs).detach().numpy()
    by_hand = features @ expected.coefficients.T + expected.intercepts
    assert np.allclose(scores, by_hand, rtol=1e-3, atol=1e-3 * abs(by_hand).max())
    odds = invariant_head(network, (inputs, labels), replaces="3", environments=environments, log_odds=True)
    difference = with_layer(network, "3", odds.linear)(inputs)[:, 0].detach().numpy()
    assert np.allclose(difference, scores[:, 1] - scores[:, 0], rtol=1e-3, atol=1e-3 * abs(scores).max())


@pytest.mark.parametrize("kind", ["shuffle", "batch sampler", "drop_last", "other batches"])
def test_a_loader_that_does_not_give_all_rows_in_order_is_refused(network, rows, kind):
    """Its rows would get the environments of other rows."""
    inputs, labels, environments = rows
    data = TensorDataset(inputs, labels)
    settings = {
        "shuffle": {"batch_size": 32, "shuffle": True},
        "batch sampler": {"batch_sampler": EnvironmentBatchSampler(environments, 32)},
        "drop_last": {"batch_size": 32, "drop_last": True},
        "other batches": {"batch_sampler": BatchSampler(range(299, -1, -1), 32, drop_last=False)},
    }
    with pytest.raises(ValueError, match="data must come in the order of its rows, all of them"):
        layer_moments(LayerReader(network, "2"), DataLoader(data, **settings[kind]), environments)


def test_reading_leaves_every_layer_in_its_mode():
    """A frozen batch normalisation in a network in training, also if the reading stops early."""
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3).eval(), torch.nn.Linear(3, 2))
    data = torch.ones(10, 4), torch.zeros(10, dtype=torch.int64)
    list(LayerReader(network, "1").read(data))
    weighted_score(network, *data)
    reading = LayerReader(network, "1", batch_size=5).read(data)
    next(reading)
    reading.close()
    assert [network.training, *(layer.training for layer in network)] == [True, True, False, True]


def test_errors_name_the_argument(network, rows):
    inputs, labels, environments = rows
    with pytest.raises(ValueError, match="layer must be one of the layers 0, 1, 2, 3, got 'fc'"):
        LayerReader(network, "fc")
    reader = LayerReader(network, "2")
    with pytest.raises(ValueError, match="environments must be given"):
        layer_moments(reader, (inputs, labels))
    with pytest.raises(ValueError, match="environments must hold one label for each"):
        layer_moments(reader, (inputs, labels), environments[:10])
    with pytest.raises(ValueError, match=r"got numbers such as .*; pass continuous=True for numbers"):
        invariant_head(network, (inputs, inputs[:, 0]), replaces="3", environments=environments)
    sequence = torch.nn.Sequential(torch.nn.Linear(4, 4))
    with pytest.raises(ValueError, match=r"features of the shape \(rows, features\), got \(2, 3, 4\) of '0'"):
        next(LayerReader(sequence, "0").read([(torch.zeros(2, 3, 4), torch.zeros(2))]))


def test_a_replaced_layer_is_a_copy_in_the_precision_of_the_network():
    network, layer = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)).double(), torch.nn.Linear(3, 1)
    new = with_layer(network, "1", layer)
    assert new[1].weight.dtype == torch.float64
    assert layer.weight.dtype == torch.float32
    with pytest.raises(ValueError, match="name must be one of the layers 0, 1, got 'head'"):
        with_layer(network, "head", layer)


def test_labels_may_be_texts_and_inputs_of_any_precision():
    """The moments are those of numbers as labels, and of inputs in the network's precision."""
    inputs, labels = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    environments = np.arange(60) // 30
    reader = LayerReader(torch.nn.Sequential(torch.nn.Linear(2, 3)), "0")
    texts, _, _ = layer_moments(reader, (inputs, np.array(["cat", "dog"])[labels]), environments)
    tensors = torch.from_numpy(inputs).float(), torch.from_numpy(labels)
    numbers, _, _ = layer_moments(reader, tensors, environments)
    assert texts.classes == ("cat", "dog")
    assert np.allclose(texts.sums, numbers.sums)
