"""The map of the gain: orders of environments, agreements of its cells, and the strength of a colour."""

import gain_map
import numpy as np
import pytest
import torch
from pages import colour_strength, draw_gain_map

from holdfast.datasets import DigitImages, bundled_digits, coloured_digits
from holdfast.torch import EnvironmentBatchSampler
from holdfast_studies.images import image_methods
from holdfast_studies.images.coloured_problem import make_problem
from holdfast_studies.images.image_methods import (
    ImageMethod,
    environment_visits,
    one_in_turn,
    train_method,
    visiting,
    worst_environment,
)


def test_visits_in_turn_are_the_method_in_turn(monkeypatch):
    """Two ways to say it, one training."""
    monkeypatch.setattr(image_methods, "HIDDEN", 4)
    monkeypatch.setattr(image_methods, "AVERAGED", 10)
    few = DigitImages(*(each[:120] for each in bundled_digits()))
    problem = make_problem(few, (0.9, 0.3), [0, 1], "cpu")
    grid = {"step_size": (0.5, 1.0), "weight_decay": (0.0, 0.0)}
    visits = torch.tensor([[0, 1] * 10, [0, 1] * 10])
    one, other = (
        train_method(ImageMethod(objective, grid, sgd=True), problem, worst_environment, steps=20, snapshots=(20,))
        for objective in (one_in_turn, visiting(visits))
    )
    for first, second in zip(one.snapshots[20].parameters, other.snapshots[20].parameters, strict=True):
        assert torch.equal(first, second)


def test_one_environment_in_turn_follows_the_order_of_its_seed():
    """The losses that are minimised are those of the environments that the sampler would visit."""
    seeds, steps = [3, 8], 40
    objective = visiting(environment_visits("reshuffled", seeds, steps))
    losses = torch.tensor([[[0.0, 1.0]] * 3] * 2)  # the loss is the number of the environment
    chosen = torch.stack([objective(losses, losses, {}, step, {}) for step in range(steps)], -1)
    for row, seed in zip(chosen, seeds, strict=True):
        sampler = EnvironmentBatchSampler(["a", "b"], 1, batches_per_epoch=steps, seed=seed)
        assert (row == torch.tensor([["a", "b"].index(name) for name in sampler.visited()])).all()
    assert (chosen[:, 0].unflatten(-1, (-1, 2)).sum(-1) == 1).all()  # both in every cycle


def test_each_seed_has_visits_of_its_own():
    losses = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])  # two seeds, one setting
    objective = visiting(torch.tensor([[0, 1], [1, 1]]))
    assert objective(losses, losses, {}, 0, {}).tolist() == [[1.0], [4.0]]
    assert objective(losses, losses, {}, 1, {}).tolist() == [[2.0], [4.0]]


def test_cells_have_their_agreements():
    """Within four standard errors, in the order of the cells."""
    problem = gain_map.map_problem(bundled_digits(), [0, 1], "cpu")
    rows = problem.train
    found = (rows.labels == rows.attribute).float().unflatten(-1, (2, -1)).mean(-1).numpy()
    expected = [(mean + part, mean - part) for mean, width in gain_map.map_cells() for part in [width / 2]]
    error = 4 * np.sqrt(0.25 / (rows.labels.shape[1] / 2))
    assert np.allclose(found, np.repeat(expected, 2, axis=0), atol=error)
    assert problem.seeds == (0, 1) * len(expected)


@pytest.mark.parametrize("agreement", [0.9, 0.3])
def test_strength_of_the_colour_is_the_gradient_of_the_data(agreement):
    """E[(y - 1/2) <v, x>] of drawn images, against its formula, within four standard errors."""
    source = bundled_digits()
    mean = source.images.mean(0).ravel()
    direction = np.concatenate([-mean, mean]) / np.linalg.norm(mean) / np.sqrt(2)
    rows = coloured_digits([agreement], seed=0, source=source)
    entries = (rows.labels - 0.5) * (rows.images.reshape(len(rows.labels), -1) @ direction)
    expected = (2 * agreement - 1) * colour_strength(np.linalg.norm(mean))
    assert abs(entries.mean() - expected) < 4 * entries.std() / np.sqrt(len(entries))


def test_the_map_has_a_panel_for_each_order_and_step_size():
    """Two cells, one seed, one step size and order; the bar of the colours has axes too."""
    accuracy = {"pooled": {"chosen": [[[0.5]], [[0.4]]]}, "cyclic": {"chosen": [[[0.7]], [[0.4]]]}}
    cells = [[0.5, 0.2], [0.6, 0.4]]
    measured = {"accuracy": accuracy, "cells": cells, "step_sizes": [1.0], "mean_image_norm": 3.0}
    assert len(draw_gain_map(measured, ("cyclic",)).axes) == 2
