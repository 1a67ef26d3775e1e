"""Networks without a discovered attribute: rows put together, steps that are given, dropout, and the rule's score."""

import attribute_removal
import numpy as np
import torch
from attribute_removal import refit, remove_attribute
from recording import together

from holdfast.datasets import DigitImages, bundled_digits
from holdfast.embeddings import balance_rows
from holdfast_studies.images import image_methods
from holdfast_studies.images.batched_networks import batched_network, drop, logits
from holdfast_studies.images.coloured_problem import joined, make_problem
from holdfast_studies.images.frozen_networks import DiscoveredAttribute
from holdfast_studies.images.image_methods import ImageMethod, log_likelihood, mean_accuracy, mean_risk, train_method


def _problem():
    return make_problem(DigitImages(*(each[:240] for each in bundled_digits())), (0.9, 0.3), [0, 1], "cpu")


def test_rows_put_together_are_in_the_order_of_environments():
    problem = _problem()
    both = joined(problem.train, problem.held_out)
    halves = both.inputs.unflatten(1, (2, -1))
    for number in (0, 1):
        parts = [rows.inputs.unflatten(1, (2, -1))[:, number] for rows in (problem.train, problem.held_out)]
        assert torch.equal(halves[:, number], torch.cat(parts, 1))


def test_a_step_that_is_given_is_the_one_chosen(monkeypatch):
    """The networks at these steps, seed by seed, against snapshots of the same training, with dropout."""
    monkeypatch.setattr(image_methods, "HIDDEN", 4)
    problem, stops = _problem(), np.array([[10], [20]])
    method = ImageMethod(mean_risk, {"weight_decay": (0.0,)}, dropout=(0.2, 0.5))
    found = train_method(method, problem, mean_accuracy, steps=20, stops=stops, snapshots=(10, 20))
    assert found.tried.step.tolist() == stops.tolist()
    for seed, step in enumerate((10, 20)):
        for chosen, snapshot in zip(found.best.parameters, found.snapshots[step].parameters, strict=True):
            assert torch.equal(chosen[seed], snapshot[seed])


def test_dropout_keeps_the_mean_and_is_off_where_networks_are_judged():
    """The mean of 20,000 draws within four standard errors; without a generator logits are those without dropout."""
    random = torch.Generator().manual_seed(0)
    found = drop(torch.full((20_000,), 2.0), 0.4, random)
    assert abs(found.mean() - 2) < 4 * found.std() / np.sqrt(20_000)
    network, inputs = batched_network([6, 4, 1], seeds=[0], settings=2), torch.randn(1, 5, 6)
    assert torch.equal(logits(network, inputs, 0.5), logits(network, inputs))
    noisy = logits(network, inputs, 0.5, random)
    assert not torch.allclose(noisy, logits(network, inputs))
    assert torch.equal(noisy[:, 0], noisy[:, 1])  # equal networks, and the same units dropped


def test_the_likelihood_is_minus_the_cross_entropy():
    scores, labels = torch.tensor([[-3.0, 0.5, 40.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    expected = -torch.nn.functional.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    assert torch.allclose(log_likelihood(scores, labels), expected)


def test_the_last_training_repeats_the_chosen_settings(monkeypatch):
    """With held-out rows that are the training rows and no dropout, a repeat is the same training."""
    monkeypatch.setattr(image_methods, "HIDDEN", 4)
    monkeypatch.setattr(attribute_removal, "DROPOUT_RATES", (0.0,))
    monkeypatch.setattr(attribute_removal, "HIDDEN_DROPOUT", 0.0)
    problem = _problem()
    problem = problem._replace(held_out=problem.train)  # doubled rows have the same mean loss
    labels, colours = problem.train.labels, problem.train.attribute
    weights = torch.stack(
        [torch.from_numpy(balance_rows(*pair).weights).float() for pair in zip(labels, colours, strict=True)]
    )
    found = DiscoveredAttribute(colours, colours, weights, weights, {})
    tried = together([remove_attribute(problem, found, remedy, 20) for remedy in ("weights", "offsets")])
    again = refit(problem, found, tried)
    assert again["settings"] == [tried.settings[number] for number in tried.best]
    assert np.allclose(again["test"], tried.at(tried.best, tried.test), atol=0.03)  # one test row of 40 by rounding
