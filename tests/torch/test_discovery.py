"""Discover on digits with a shortcut: colour, rotation or blur, in a small network trained on all rows."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, rankdata

from holdfast.datasets import DigitImages, bundled_digits, coloured_digits
from holdfast.embeddings import balance_rows
from holdfast.torch import LayerReader, TrainingOptions, balance, discover, draw_sheet, train_balanced, write_sheet
from holdfast.torch.training import TrainingRows, train_weighted, weighted_score

LAYER = "2"


def _network(channels, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64 * channels, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)
    )


def _trained(rows, epochs=8, seed=0):
    inputs, labels = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
    options = TrainingOptions(epochs=epochs, batch_size=128, learning_rate=3e-3)
    weighted = TrainingRows(inputs, labels, torch.ones(len(labels)), torch.arange(len(labels)) % 5 == 0)
    network, _ = train_weighted(_network(inputs.shape[1], seed), weighted, options)
    return network, (inputs, labels)


def _area(scores, attribute):
    """Of the curve of hits against false alarms; 0.5 for a score that says nothing."""
    ranks, positive = rankdata(scores), attribute == 1
    area = (ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2) / (positive.sum() * (~positive).sum())
    return max(area, 1 - area)


@pytest.fixture(scope="module")
def coloured():
    rows = coloured_digits([0.7, 0.95], seed=0)
    network, data = _trained(rows)
    return rows, network, data, discover(network, data, layer=LAYER, environments=rows.environments)


def test_the_colour_is_found(coloured):
    rows, _, _, found = coloured
    agreement = np.mean(found.attributes[:, 0] == rows.attribute)
    assert found.count == 1
    assert max(agreement, 1 - agreement) >= 0.99


def test_groups_of_features_are_those_of_their_rows_whatever_the_batches(coloured):
    rows, network, data, found = coloured
    features = np.concatenate([batch.features for batch in LayerReader(network, LAYER, batch_size=100).read(data)])
    assert np.array_equal(found.groups(features), found.groups())
    assert np.allclose(found.score(features), found.scores, atol=1e-6)
    again = discover(network, data, layer=LAYER, environments=rows.environments, batch_size=100)
    assert np.array_equal(again.groups(), found.groups())
    assert np.array_equal(balance(found, groups=2).groups, balance(found).groups)


def test_weights_make_the_colour_independent_of_the_label(coloured):
    """Up to the rows whose colour is not recognised: 1 % of them."""
    rows, _, _, found = coloured
    weights = balance(found)
    table = np.zeros((2, 2))
    np.add.at(table, (rows.labels, rows.attribute), weights.weights.numpy())
    table /= table.sum()
    assert abs(table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]) < 0.01
    drawn = np.array(list(weights.sampler(seed=1, rows=4000)))
    counts = np.bincount(weights.groups.numpy()[drawn], minlength=4)
    low, high = binom.ppf([0.0005, 0.9995], 4000, 0.25)
    assert (counts >= low).all()
    assert (counts <= high).all()


def test_the_sheet_shows_the_colours(coloured, tmp_path):
    """The rows at the ends of the score, in each class, have one colour each."""
    rows, _, _, found = coloured
    figure = draw_sheet(found, rows.images)
    pictures = [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]
    inside = [picture[picture.min(-1) < 1] for picture in pictures]  # without the white frames
    warm = [bool(pixels[:, 0].sum() > pixels[:, 2].sum()) for pixels in inside]
    assert warm in ([True, False, True, False], [False, True, False, True])
    path = tmp_path / "sheet.html"
    write_sheet(found, rows.images, path, title="Digits < colours")
    page = path.read_text()
    assert page.count("data:image/png") == 40
    assert "Digits &lt; colours" in page
    texts = [f"digit {digit}" for digit in rows.digits]
    pages = []
    for same in (texts, np.array(texts), pd.Series(texts), pd.DataFrame({"digit": rows.digits})):
        write_sheet(found, same, path)
        pages.append(path.read_text())
    assert "digit 7" in pages[0]
    assert len(set(pages)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["rotation", "blur"])
def test_a_rotation_or_blur_is_found_where_it_says_something_about_the_label(attribute):
    rows = coloured_digits([0.65, 0.95], seed=1, attribute=attribute, label_noise=0.1)
    network, data = _trained(rows, epochs=15)
    found = discover(network, data, layer=LAYER, environments=rows.environments)
    assert found.count == 1
    assert _area(found.scores[:, 0], rows.attribute) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["colour", "rotation", "blur"])
def test_nothing_is_found_where_it_says_nothing(attribute):
    """Half of the rows of each class have it, in both environments: alarms at level 0.05 in 20 trained networks."""
    alarms = 0
    for seed in range(20):
        rows = coloured_digits([0.5, 0.5], seed=seed, attribute=attribute)
        network, data = _trained(rows, epochs=4, seed=seed)
        alarms += discover(network, data, layer=LAYER, environments=rows.environments, level=0.05).count
    assert alarms <= binom.ppf(0.995, 20, 0.05)


@pytest.mark.slow
def test_balanced_training_does_not_follow_the_colour():
    """On digits whose colours are reversed: above chance, where the network of all rows is far below."""
    images, digits = bundled_digits()
    rows = coloured_digits([0.7, 0.95], seed=0, label_noise=0.1, source=DigitImages(images[:1400], digits[:1400]))
    new = coloured_digits([0.1], seed=1, label_noise=0.1, source=DigitImages(images[1400:], digits[1400:]))
    data = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
    options = TrainingOptions(epochs=30, batch_size=128)
    found = train_balanced(_network(2), data, environments=rows.environments, layer=LAYER, options=options)
    inputs, labels = torch.tensor(new.images).float(), torch.tensor(new.labels)
    balanced, pooled = (weighted_score(each, inputs, labels) for each in (found.module, found.pooled))
    assert balanced > pooled + 0.1
    assert balanced > 0.6
    assert any(sentence.startswith("Balanced: 4 groups") for sentence in found.sentences)


@pytest.mark.parametrize("continuous", [False, True])
def test_training_that_never_has_a_finite_score_is_an_error(continuous):
    """Instead of the parameters from before the training."""
    targets = torch.zeros(20) if continuous else torch.zeros(20).long()
    rows = TrainingRows(torch.full((20, 2), torch.nan), targets, torch.ones(20), torch.arange(20) < 5)
    options = TrainingOptions(epochs=3)
    module = torch.nn.Linear(2, 1 if continuous else 2)
    with pytest.raises(ValueError, match="finite score on held-out rows after some epoch, got none in 3"):
        train_weighted(module, rows, options)


def test_the_seed_decides_on_dropout_and_the_random_state_stays():
    """Two trainings of one seed are equal, of two seeds not, and torch draws on as if there had been none."""
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(40, 4, generator=random)
    # full batches, so that dropout is all that is random
    rows = TrainingRows(inputs, (inputs[:, 0] > 0).long(), torch.ones(40), torch.arange(40) < 10)
    start = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    before = torch.random.get_rng_state()
    found = []
    for seed in (0, 0, 1):
        module, _ = train_weighted(deepcopy(start), rows, TrainingOptions(epochs=3, learning_rate=0.1, seed=seed))
        found.append(module[0].weight)
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[0], found[2], atol=1e-3)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layer": "hidden"}, "layer must be one of the layers 0, 1, 2, 3, got 'hidden'"),
        ({"environments": [0, 1]}, "environments must hold one label for each of the 20 rows, got 2 labels"),
        ({"weight_decays": ()}, "weight_decays must hold at least one number"),
        ({"remedy": "both"}, "remedy must be weights or offsets, got 'both'"),
        ({"remedy": "offsets", "continuous": True}, "remedy must be weights, got 'offsets'"),
        ({"distribution": "even"}, "distribution must be equal or product, got 'even'"),
        ({"independence": "all"}, "independence must be joint or each, got 'all'"),
    ],
)
def test_arguments_are_checked_before_the_first_training(wrong, message):
    class NeverTrained(torch.nn.Sequential):
        def forward(self, inputs):
            raise AssertionError

    data = np.zeros((20, 1, 8, 8)), np.arange(20) % 2
    settings = {"layer": LAYER, "environments": np.arange(20) // 10} | wrong
    with pytest.raises(ValueError, match=message):
        train_balanced(NeverTrained(*_network(1)), data, **settings)


def test_the_most_frequent_class_alone_is_chance():
    """Nothing but the attribute says something about the label, of which four in five are 0: weights leave chance."""
    random = np.random.default_rng(0)
    environments, labels = np.arange(2000) % 2, (random.random(2000) < 0.2).astype(int)
    attribute = np.where(random.random(2000) < np.array([0.6, 0.95])[environments], labels, 1 - labels)
    inputs = np.column_stack([attribute, np.zeros(2000)]) + 0.1 * random.standard_normal((2000, 2))
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    options = TrainingOptions(epochs=3, learning_rate=0.01)
    settings = {"environments": environments, "layer": "1", "options": options, "weight_decays": (0.0,)}
    found = train_balanced(network, (inputs, labels), distribution="product", **settings)
    assert found.history.best > 0.7
    assert "the network is not better than chance" in found.sentences[-1]


def test_independence_is_handed_to_the_balance(monkeypatch):
    """With several attributes some combination may have no rows, and only each of them can be balanced."""
    asked = []

    def record(targets, attributes, **settings):
        asked.append(settings["independence"])
        return balance_rows(targets, attributes, **settings)

    monkeypatch.setattr("holdfast.torch.balancing.balance_rows", record)
    rows = coloured_digits([0.7, 0.95], seed=0)
    data = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
    options = TrainingOptions(epochs=2)
    settings = {"environments": rows.environments, "layer": LAYER, "options": options, "weight_decays": (0.0,)}
    train_balanced(_network(2), data, independence="each", **settings)
    assert asked == ["each"]


def test_nothing_to_balance_is_said():
    rows = coloured_digits([0.5, 0.5], seed=3)
    data = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
    options = TrainingOptions(epochs=1)
    found = train_balanced(_network(2), data, environments=rows.environments, layer=LAYER, options=options, level=1e-6)
    assert found.balance is None
    assert found.sentences[-1] == "The network trained on all rows is returned."
    with pytest.raises(ValueError, match="discovery must hold a direction that varies, got none"):
        balance(found.discovery)
