"""Further ideas on coloured MNIST: schedules, amplified differences of gradients, directions of variances, gains."""

import json

import numpy as np
import pytest
import torch
import trials
from pages import COMPARISONS, CONFIRMED, LOOKED_AT, clear_gains, gain_rows
from scipy.stats import binom

from holdfast.datasets import DigitImages, bundled_digits
from holdfast_studies.images import image_methods
from holdfast_studies.images.batched_networks import batched_network, logits
from holdfast_studies.images.coloured_problem import make_problem
from holdfast_studies.images.frozen_networks import fit_heads
from holdfast_studies.images.image_methods import (
    ImageMethod,
    mean_accuracy,
    mean_risk,
    one_in_turn,
    train_method,
    worst_environment,
)
from holdfast_studies.images.recorded import recorded


def _problem():
    return make_problem(DigitImages(*(each[:240] for each in bundled_digits())), (0.9, 0.3), [0, 1], "cpu")


def _trained(method, rule=mean_accuracy, **settings):
    found = train_method(method, _problem(), rule, steps=20, snapshots=(20,), hidden=(4, 4), **settings)
    return found.snapshots[20].parameters


def _half(step):
    return 0.5


def test_half_of_a_step_of_adam_is_a_step_of_half_the_size():
    method = ImageMethod(mean_risk, {"weight_decay": (0.0, 1e-2)})
    scheduled = _trained(method, schedule=_half)
    smaller = _trained(method, learning_rate=image_methods.LEARNING_RATE / 2)
    for one, other in zip(scheduled, smaller, strict=True):
        assert torch.equal(one, other)


def test_a_schedule_of_sgd_multiplies_its_step_sizes(monkeypatch):
    monkeypatch.setattr(image_methods, "AVERAGED", 10)
    sizes = {"step_size": (1.0,), "weight_decay": (0.0,)}
    scheduled = _trained(ImageMethod(one_in_turn, sizes, sgd=True), worst_environment, schedule=_half)
    smaller = _trained(ImageMethod(one_in_turn, sizes | {"step_size": (0.5,)}, sgd=True), worst_environment)
    for one, other in zip(scheduled, smaller, strict=True):
        assert torch.equal(one, other)


def test_differences_amplified_by_one_are_the_method_in_turn(monkeypatch):
    monkeypatch.setattr(image_methods, "AVERAGED", 10)
    sizes = {"step_size": (0.5, 1.0), "weight_decay": (0.0, 0.0)}
    plain = _trained(ImageMethod(one_in_turn, sizes, sgd=True), worst_environment)
    grid = sizes | {"amplification": (1.0, 1.0)}
    same = _trained(ImageMethod(trials.amplified, grid, sgd=True), worst_environment)
    for one, other in zip(plain, same, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_amplified_differences_keep_the_length_of_the_gradient():
    """One network after the other, from its own two gradients."""
    problem = _problem()
    network = batched_network((problem.train.inputs.shape[-1], 4, 4, 1), seeds=problem.seeds, settings=2)
    scores = logits(network, problem.train.inputs)
    entries = torch.nn.functional.softplus(scores) - problem.train.labels[:, None] * scores
    losses = entries.unflatten(-1, (2, -1)).mean(-1)
    grid, state = {"amplification": torch.tensor([3.0, 30.0])}, {"parameters": network.parameters}
    trials.amplified(losses, losses, grid, 1, state).sum().backward()
    for seed in (0, 1):
        for setting, factor in enumerate((3.0, 30.0)):
            first, second = (
                torch.cat(
                    [
                        part[seed, setting].ravel()
                        for part in torch.autograd.grad(
                            losses[seed, setting, environment], network.parameters, retain_graph=True
                        )
                    ]
                )
                for environment in (0, 1)
            )
            mean = (first + second) / 2
            wanted = mean + factor * (second - mean)
            wanted = wanted * second.norm() / wanted.norm()
            found = torch.cat([each.grad[seed, setting].ravel() for each in network.parameters])
            assert torch.allclose(found, wanted, atol=1e-6)


def test_variances_of_a_coin_show_the_coin():
    """An attribute with shares of 0.9 and 0.3 among many coordinates; its variance is 0.09 and 0.21 of its square."""
    random = np.random.default_rng(0)
    cells = np.arange(4000) % 4
    coin = random.random(4000) < np.where(cells >= 2, 0.9, 0.3)
    rows = random.standard_normal((4000, 6))
    rows[:, 2] = 10 * coin + rows[:, 2]
    rows[:, 2] /= np.sqrt(100 * 0.15 + 1)  # of variance 1 in the mean of the environments
    directions, _, count = trials.varying_variances(torch.from_numpy(rows), torch.from_numpy(cells))
    assert count == 1
    assert abs(directions[2, 0]) > 0.99


def test_equal_variances_are_no_finding_more_often_than_the_level(monkeypatch):
    """With means that differ and heavy tails; at most so many of 60 as the binomial law allows in 99 of 100 tests."""
    monkeypatch.setattr(trials, "PERMUTATIONS", 99)
    random = np.random.default_rng(1)
    cells = np.arange(200) % 4
    alarms = 0
    for _ in range(60):
        rows = random.standard_t(6, (200, 3)) + random.standard_normal((4, 3))[cells]
        alarms += trials.varying_variances(torch.from_numpy(rows), torch.from_numpy(cells), level=0.05)[2] > 0
    assert alarms <= binom.ppf(0.99, 60, 0.05)


def _recorded(before, after):
    results = {name: {"test": before} for pair in COMPARISONS.items() for name in pair}
    results["head after in turn"] = {"test": after}
    return {"settings": {"seeds": [*LOOKED_AT, *CONFIRMED]}, "problems": {"0.9 and 0.3": results}}


def test_a_gain_is_clear_on_both_sets_of_seeds():
    random = np.random.default_rng(0)
    before = 0.7 + 0.01 * random.standard_normal(13)
    after = before + 0.005 + 0.001 * random.standard_normal(13)
    found = _recorded(before, after)
    assert clear_gains(found) == [("head after in turn", "0.9 and 0.3")]
    assert gain_rows(found)[-1][4].startswith(f"{np.mean((after - before)[:3]):.3f} (")
    assert gain_rows(found)[-1][5].startswith(f"{np.mean((after - before)[3:]):.3f} (")
    assert clear_gains(_recorded(before, np.concatenate([before[:3] - 0.001, after[3:]]))) == []
    assert clear_gains(_recorded(before, before + 0.01 * random.standard_normal(13))) == []


def test_the_file_is_that_of_the_protocol():
    found = recorded("further_trials")
    assert tuple(found["protocol"]) == trials.PROTOCOL
    assert found["settings"] == {"seeds": [*LOOKED_AT, *CONFIRMED], "images": 60_000, "steps": 600}
    assert {*COMPARISONS, *COMPARISONS.values()} <= set(trials.PROTOCOL)
    for results in found["problems"].values():
        assert all(len(result["test"]) == len(found["settings"]["seeds"]) for result in results.values())


def test_a_network_without_features_has_no_head():
    """All hidden units are zero: the head guesses one class, and any other network is preferred."""
    problem = _problem()
    network = batched_network((problem.train.inputs.shape[-1], 4, 4, 1), seeds=problem.seeds, settings=2)
    with torch.no_grad():
        for weight in network.weights[:-1]:
            weight[:, 0] = 0.0
    settings = [{"weight_decay": 0.0}, {"weight_decay": 1.0}]
    assert fit_heads(problem.held_out, problem.test, {1: network}, settings)["weight_decay"] == [1.0, 1.0]
    alone = fit_heads(problem.held_out, problem.test, {1: network}, settings[:1])
    assert alone["test"] == pytest.approx((problem.test.labels == 0).float().mean(-1).tolist())


@pytest.mark.slow
def test_the_trials_are_written_as_they_come(tmp_path, monkeypatch, small_mnist):
    """On the bundled digits, with a small network; what is finished is not run again."""
    monkeypatch.setattr(image_methods, "HIDDEN", 8)
    monkeypatch.setattr(image_methods, "AVERAGED", 20)
    monkeypatch.setattr(trials, "AVERAGED", 20)
    monkeypatch.setattr(trials, "PERMUTATIONS", 19)
    out = tmp_path / "out.json"
    arguments = ["--data", str(small_mnist), "--out", str(out), "--seeds", "2", "--steps", "20"]
    trials.main([*arguments, "--limit", "0"])
    assert list(json.loads(out.read_text())["problems"]["0.8 and 0.9"]) == ["discover and offset, constant"]
    trials.main(arguments)
    found = json.loads(out.read_text())
    for results in found["problems"].values():
        assert tuple(results) == trials.PROTOCOL
        assert set(results["pooled"]["discovery"]) == {"means", "variances"}
        assert all(len(result["test"]) == 2 for result in results.values())
        decaying = {each["schedule"] for each in results["discover and offset, decaying"]["settings"]}
        assert decaying <= {"linear", "cosine", "short cosine"}
