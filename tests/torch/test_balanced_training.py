"""A second training without what varies: by weights or offsets, on all rows, in rounds, with averaged weights."""

import numpy as np
import pytest
import torch

from holdfast.embeddings import attribute_offsets
from holdfast.torch import TrainingOptions, train_balanced
from holdfast.torch.training import TrainingRows, train_epochs, train_weighted, weighted_score


def _shortcut(labels, agreements, seed, *, other=0.0):
    """Two inputs: an attribute that agrees with the label in a share of each environment, and the label with noise."""
    random = np.random.default_rng(seed)
    environments = np.arange(len(labels)) % len(agreements)
    attribute = np.where(random.random(len(labels)) < np.asarray(agreements)[environments], labels, 1 - labels)
    signal = labels + random.standard_normal(len(labels)) if other else np.zeros(len(labels))
    inputs = np.column_stack([attribute, signal]) + 0.1 * random.standard_normal((len(labels), 2))
    return inputs, attribute, environments


def _small_network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def test_a_group_without_rows_loses_nothing_that_was_trained():
    """Class 1 always has the attribute 1: no weights make them independent, and the first network is returned."""
    labels = np.arange(2000) % 4 // 2
    inputs, attribute, environments = _shortcut(labels, [0.6, 0.95], seed=0)
    chosen = (labels == 0) | (attribute == 1)
    data, options = (inputs[chosen], labels[chosen]), TrainingOptions(epochs=3, learning_rate=0.01)
    found = train_balanced(_small_network(), data, environments=environments[chosen], layer="1", options=options)
    assert found.discovery.count == 1
    assert found.balance is None
    assert found.module is found.pooled
    assert "What varies cannot be removed: attributes and targets must occur in all combinations" in found.sentences[-2]
    assert found.sentences[-1] == "The network trained on all rows is returned."


@pytest.mark.parametrize("outputs", [1, 2])
def test_offsets_learn_what_the_attribute_does_not_say(outputs):
    """A logistic regression of label on two independent causes: offsets leave the coefficient of the second one only.

    With x = label + noise of variance 1.01, the log-odds rise by 1 / 1.01 for each unit of x; within four standard
    errors.
    """
    labels = np.arange(8000) % 4 // 2
    inputs, attribute, _ = _shortcut(labels, [0.9, 0.9], seed=1, other=1.0)
    offsets = torch.tensor(attribute_offsets(labels, attribute)).float()
    inputs, none = torch.tensor(inputs[:, 1:]).float(), torch.zeros(8000, dtype=torch.bool)
    rows = TrainingRows(inputs, torch.tensor(labels), torch.ones(8000), held_out=none, offsets=offsets)
    options = TrainingOptions(epochs=60, batch_size=8000, learning_rate=0.1)
    torch.manual_seed(0)
    *_, module = train_epochs(torch.nn.Linear(1, outputs), rows, options)
    weight = module.weight.detach().ravel()
    slope = float(weight[-1] - weight[0]) if outputs == 2 else float(weight[0])
    expected = 1 / (1 + 0.1**2)
    error = 1 / np.sqrt(8000 * 0.05)  # the information of a row is p (1 - p) times the variance of x: 0.05 at least
    assert abs(slope - expected) < 4 * error


def test_balanced_training_by_offsets_and_on_all_rows():
    """Offsets and a last training on all rows: the network follows the second input, by the likelihood."""
    labels = np.arange(4000) % 4 // 2
    inputs, _, environments = _shortcut(labels, [0.7, 0.95], seed=2, other=1.0)
    options = TrainingOptions(epochs=8, learning_rate=0.01, score="likelihood")
    settings = {"environments": environments, "layer": "1", "options": options, "weight_decays": (0.0,)}
    found = train_balanced(_small_network(), (inputs, labels), remedy="offsets", refit=True, **settings)
    assert found.history.best == max(found.history.scores) < 0  # a likelihood
    assert found.sentences[-1].startswith("Trained once more on all 4000 rows, for ")
    new, _, _ = _shortcut(labels, [0.05, 0.05], seed=3, other=1.0)
    inputs, targets = torch.tensor(new).float(), torch.tensor(labels)
    balanced, pooled = (weighted_score(each, inputs, targets) for each in (found.module, found.pooled))
    # the best possible without the attribute is Phi(1 / 2) = 0.69, and with it the wrong way round below 0.2
    assert pooled < 0.4
    assert balanced > 0.6


def test_the_last_training_stops_at_the_best_score_also_after_one_that_is_no_number(monkeypatch):
    """An epoch whose held-out rows have no finite score is not the best one."""

    def train_with_a_bad_epoch(*given, **settings):
        module, history = train_weighted(*given, **settings)
        return module, history._replace(scores=[np.nan, *history.scores])

    monkeypatch.setattr("holdfast.torch.balancing.train_weighted", train_with_a_bad_epoch)
    labels = np.arange(2000) % 4 // 2
    inputs, _, environments = _shortcut(labels, [0.7, 0.95], seed=2, other=1.0)
    settings = {"environments": environments, "layer": "1", "weight_decays": (0.0,), "refit": True}
    options = TrainingOptions(epochs=2, learning_rate=0.01)
    found = train_balanced(_small_network(), (inputs, labels), options=options, **settings)
    epochs = int(np.nanargmax(found.history.scores)) + 1
    assert epochs > 1
    assert found.sentences[-1] == f"Trained once more on all 2000 rows, for {epochs} epochs."


def _two_attributes(rows, seed):
    """Two attributes and a signal; of the second, the agreement with the label varies given the first only.

    In both environments it is 0.75 on average: 0.7 * 0.9 + 0.3 * 0.4 where the first agrees in 0.7, and 0.75 in all
    rows where the first agrees in 0.9.
    """
    random = np.random.default_rng(seed)
    labels, environments = np.arange(rows) % 4 // 2, np.arange(rows) % 2
    first_agrees = random.random(rows) < np.where(environments == 0, 0.7, 0.9)
    share = np.where(environments == 1, 0.75, np.where(first_agrees, 0.9, 0.4))
    second_agrees = random.random(rows) < share
    attributes = np.column_stack([np.where(each, labels, 1 - labels) for each in (first_agrees, second_agrees)])
    inputs = np.column_stack([attributes, labels + random.standard_normal(rows)])
    return inputs + 0.1 * random.standard_normal(inputs.shape), labels, environments, attributes


def _agreement(found, attribute):
    share = np.mean(found == attribute)
    return max(share, 1 - share)


def test_a_second_round_finds_what_shows_only_given_the_first_attribute():
    inputs, labels, environments, attributes = _two_attributes(8000, seed=0)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 12), torch.nn.ReLU(), torch.nn.Linear(12, 2))
    options = TrainingOptions(epochs=6, learning_rate=0.01)
    settings = {"environments": environments, "layer": "1", "options": options, "weight_decays": (0.0,)}
    once = train_balanced(network, (inputs, labels), **settings)
    found = train_balanced(network, (inputs, labels), rounds=3, **settings)
    assert [each.count > 0 for each in found.rounds] == [True, True, False]
    assert found.rounds[0] is found.discovery
    assert _agreement(found.discovery.attributes[:, 0], attributes[:, 0]) > 0.99
    assert max(_agreement(column, attributes[:, 1]) for column in found.rounds[1].attributes.T) > 0.99
    assert found.rounds[1].classes == ("0 with 0", "0 with 1", "1 with 0", "1 with 1")
    assert found.sentences[-1].startswith("Round 3, among rows with the same attributes: Nothing varies")
    for attribute in attributes.T:  # the colours are those that were found, but for a few rows
        covariances = [np.cov(attribute, labels, aweights=each.balance.weights)[0, 1] for each in (found, once)]
        assert abs(covariances[0]) < 0.01
    assert covariances[1] > 0.02  # of the second attribute, which one round does not see
    new = inputs.copy()
    new[:, :2] = 1 - labels[:, None]  # both attributes are wrong
    rows = torch.tensor(new).float(), torch.tensor(labels)
    after_one, after_three = (weighted_score(each.module, *rows) for each in (once, found))
    # without the attributes Phi(1 / 2) = 0.69 is possible
    assert after_one < 0.5
    assert after_three > 0.6


def test_rounds_stop_when_nothing_else_varies():
    """One attribute: the second look finds nothing, and the network is that of one round, bit for bit."""
    labels = np.arange(4000) % 4 // 2
    inputs, _, environments = _shortcut(labels, [0.7, 0.95], seed=2, other=1.0)
    options = TrainingOptions(epochs=3, learning_rate=0.01)
    settings = {"environments": environments, "layer": "1", "options": options, "weight_decays": (0.0,)}
    once, often = (train_balanced(_small_network(), (inputs, labels), rounds=each, **settings) for each in (1, 3))
    assert [each.count for each in often.rounds] == [1, 0]
    assert len(once.rounds) == 1
    assert often.sentences[:-1] == once.sentences
    for one, other in zip(once.module.parameters(), often.module.parameters(), strict=True):
        assert torch.equal(one, other)


def test_rounds_of_numbers_are_refused():
    data, environments = (np.zeros((4, 2)), np.zeros(4)), [0, 0, 1, 1]
    with pytest.raises(ValueError, match="rounds must be 1 for a continuous target, got 2"):
        train_balanced(_small_network(), data, environments=environments, layer="1", continuous=True, rounds=2)


def _separated_rows():
    x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    return TrainingRows(x, (x[:, 0] > 0).long(), torch.ones(100), torch.arange(100) < 20)


def test_averaged_weights_are_the_running_mean_of_the_steps():
    """Full batches, so that the weights after each step are those of a training with as many epochs."""
    rows, share = _separated_rows(), 0.7
    everything = rows._replace(held_out=torch.zeros_like(rows.held_out))

    def trained(epochs, averaging=0.0):
        torch.manual_seed(0)
        options = TrainingOptions(epochs=epochs, batch_size=100, learning_rate=0.1, averaging=averaging)
        *_, module = train_epochs(torch.nn.Linear(2, 2), everything, options)
        return module.weight.detach()

    mean = trained(1)
    for step in range(2, 6):
        mean = share * mean + (1 - share) * trained(step)
    assert torch.allclose(trained(5, share), mean, atol=1e-6)
    assert not torch.allclose(trained(5), mean, atol=1e-2)


def test_the_averaged_network_is_scored_and_returned():
    rows = _separated_rows()
    options = TrainingOptions(epochs=5, batch_size=10, learning_rate=0.1, score="likelihood", averaging=0.95)
    torch.manual_seed(0)
    module, history = train_weighted(torch.nn.Linear(2, 2), rows, options)
    chosen = rows.held_out
    losses = torch.nn.functional.cross_entropy(module(rows.inputs[chosen]), rows.targets[chosen])
    assert history.best == pytest.approx(-losses.item(), rel=1e-6)
    with pytest.raises(ValueError, match="averaging must be a number from 0 to below 1, got 1"):
        TrainingOptions(averaging=1.0)
