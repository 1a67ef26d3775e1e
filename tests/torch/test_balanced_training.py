"""A second training without what varies: by weights or offsets, on all rows, and where groups have no rows."""

import numpy as np
import pytest
import torch

from holdfast.embeddings import attribute_offsets
from holdfast.torch import TrainingOptions, train_balanced
from holdfast.torch.training import TrainingRows, train_on_all, weighted_score


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
    rows = TrainingRows(
        torch.tensor(inputs[:, 1:]).float(), torch.tensor(labels), torch.ones(8000), torch.arange(8000) < 100, offsets
    )
    options = TrainingOptions(epochs=60, batch_size=8000, learning_rate=0.1)
    torch.manual_seed(0)
    module = train_on_all(torch.nn.Linear(1, outputs), rows, options)
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
