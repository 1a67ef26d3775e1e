"""Networks trained many at once are the networks trained one by one, and the protocol chooses without the test rows."""

import json

import numpy as np
import pytest
import table
import torch

from holdfast.core.class_moments import class_statistics, collect_class_moments
from holdfast.core.grouping import Grouping
from holdfast.datasets import bundled_digits
from holdfast.datasets.coloured_digits import read_idx
from holdfast.torch import irm_loss
from holdfast_studies.images import image_methods
from holdfast_studies.images.batched_networks import batched_network, logits
from holdfast_studies.images.coloured_problem import make_problem
from holdfast_studies.images.frozen_networks import device_moments
from holdfast_studies.images.image_methods import (
    ImageMethod,
    ImageProblem,
    ImageRows,
    mean_accuracy,
    mean_risk,
    train_method,
)


def _problem(rows=40, pixels=6, seeds=(3, 5)):
    random = torch.Generator().manual_seed(0)

    def part():
        labels = torch.randint(2, (len(seeds), rows), generator=random).float()
        inputs = torch.randn(len(seeds), rows, pixels, generator=random) + labels[..., None]
        return ImageRows(inputs, labels, labels)

    return ImageProblem(part(), part(), part(), seeds)


def test_networks_trained_at_once_are_those_trained_alone(monkeypatch):
    """Against a torch module with the same start, Adam and an L2 penalty, seed by seed and setting by setting."""
    monkeypatch.setattr(image_methods, "HIDDEN", 8)
    problem, decays, steps = _problem(), (0.0, 0.1), 20
    method = ImageMethod(mean_risk, {"weight_decay": decays})
    found = train_method(method, problem, mean_accuracy, steps=steps, snapshots=(steps,))
    start = batched_network((6, 8, 8, 1), seeds=problem.seeds, settings=2)
    for seed in range(2):
        for setting, decay in enumerate(decays):
            layers = [torch.nn.Linear(6, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)]
            module = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
            with torch.no_grad():
                for layer, weight in zip(layers, start.weights, strict=True):
                    layer.weight.copy_(weight[seed, setting].T)
                    layer.bias.zero_()
            optimizer = torch.optim.Adam(module.parameters(), lr=image_methods.LEARNING_RATE)
            rows = problem.train
            for _ in range(steps):
                optimizer.zero_grad()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    module(rows.inputs[seed])[:, 0], rows.labels[seed]
                )
                (loss + decay * sum((each**2).sum() for each in module.parameters())).backward()
                optimizer.step()
            with torch.no_grad():
                expected = module(problem.test.inputs[seed])[:, 0]
                batched = logits(found.snapshots[steps], problem.test.inputs)[seed, setting]
            assert torch.allclose(batched, expected, atol=1e-4)


def test_too_few_steps_for_a_score_are_refused():
    method = ImageMethod(mean_risk, {"weight_decay": (0.0,)})
    with pytest.raises(ValueError, match="steps must be at least 10, after which held-out rows are scored, got 9"):
        train_method(method, _problem(), mean_accuracy, steps=9)


def test_the_penalty_of_irm_is_that_of_the_library():
    """The closed form, per network, against the derivative by a factor of the logits."""
    problem = _problem()
    network = batched_network((6, 4, 1), seeds=problem.seeds, settings=1)
    scores = logits(network, problem.train.inputs)
    signs = problem.train.labels[:, None]
    entries = torch.nn.functional.softplus(scores) - signs * scores
    losses = entries.unflatten(-1, (2, -1)).mean(-1)
    penalties = ((torch.sigmoid(scores) - signs) * scores).unflatten(-1, (2, -1)).mean(-1) ** 2
    grid = {"penalty": torch.tensor([7.0]), "anneal": torch.tensor([0.0])}
    found = image_methods.irm(losses, penalties, grid, 0, {})
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits
    for seed in range(2):
        halves = zip(scores[seed, 0].chunk(2), problem.train.labels[seed].chunk(2), strict=True)
        expected = irm_loss(list(halves), cross_entropy, penalty=7.0) / 7
        assert found[seed, 0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_moments_on_a_device_are_those_of_the_tables():
    """Two ways to sum them, with another shift."""
    random = np.random.default_rng(0)
    features, labels, environments = random.standard_normal((60, 3)), random.integers(2, size=60), np.arange(60) // 30
    one = class_statistics(collect_class_moments(features, labels, Grouping(environments, ["first", "second"])))
    tensors = (torch.from_numpy(each) for each in (features, labels, environments))
    other = class_statistics(device_moments(*tensors))
    for name in ("counts", "means", "covariances"):
        assert np.allclose(getattr(one, name), getattr(other, name))


def test_rows_have_the_agreements_of_the_protocol():
    """Within four standard errors; held-out rows are other images than training rows."""
    source = bundled_digits()
    problem = make_problem(source, (0.8, 0.9), [0, 1], "cpu")
    for rows, agreements in ((problem.train, (0.8, 0.9)), (problem.held_out, (0.8, 0.9)), (problem.test, (0.1, 0.1))):
        halves = (rows.labels == rows.attribute).float().unflatten(-1, (2, -1)).mean(-1)
        error = 4 * np.sqrt(0.25 / (rows.labels.shape[1] / 2))
        assert torch.allclose(halves, torch.tensor(agreements), atol=error)
    assert problem.train.inputs.shape[1] + problem.held_out.inputs.shape[1] == 1496


@pytest.mark.slow
def test_the_command_writes_one_file(tmp_path, monkeypatch, small_mnist):
    """On the bundled digits, enlarged and written as IDX files, with a small network."""
    monkeypatch.setattr(image_methods, "HIDDEN", 8)
    monkeypatch.setattr(image_methods, "AVERAGED", 20)
    monkeypatch.setattr(table, "SNAPSHOT_EVERY", 20)
    out = tmp_path / "out.json"
    arguments = ["--data", str(small_mnist), "--out", str(out), "--seeds", "2", "--steps", "20"]
    table.main([*arguments, "--limit", "0"])
    stopped = json.loads(out.read_text())
    assert stopped["problems"].keys() == {"0.8 and 0.9"}
    assert list(stopped["problems"]["0.8 and 0.9"]) == ["pooled"]
    stopped["problems"]["0.8 and 0.9"]["pooled"]["test"] = [0.123, 0.456]  # a mark that no run would give
    out.write_text(json.dumps(stopped))
    with pytest.raises(SystemExit):
        table.main([*arguments, "--first-seed", "5"])
    table.main(arguments)
    found = json.loads(out.read_text())
    assert found["problems"]["0.8 and 0.9"]["pooled"]["test"] == [0.123, 0.456]  # not computed again
    assert len(found["sessions"]) == 2
    assert set(found["problems"]) == {"0.8 and 0.9", "0.9 and 0.3"}
    for results in found["problems"].values():
        assert tuple(results) == table.PROTOCOL
        assert all(len(method["test"]) == 2 for method in results.values())
        assert len(results["discover and balance"]["discovery"]["agreement"]) == 2


def test_images_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "labels").write_bytes(b"text")
    with pytest.raises(ValueError, match="path must be an IDX file of unsigned bytes, got labels"):
        read_idx(tmp_path / "labels")
