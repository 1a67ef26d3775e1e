"""Coloured digits: nothing is chosen by test rows, and the reproduction goes on where torch is missing."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from holdfast.comparison.images.coloured_mnist import make_problem
from holdfast.datasets import bundled_digits
from holdfast.experiments import digit_training
from holdfast.torch.batches import Visits


def test_one_environment_in_turn_follows_the_reshuffled_order_of_its_seed():
    """The losses that are minimised are those of the environments that the sampler would visit."""
    seeds, steps = [3, 8], 40
    objective = digit_training.in_turn(seeds, steps)
    losses = torch.tensor([[[0.0, 1.0]] * 3] * 2)  # the loss is the number of the environment
    chosen = torch.stack([objective(losses, losses, {}, step, {}) for step in range(steps)], -1)
    for row, seed in zip(chosen, seeds, strict=True):
        expected = Visits("reshuffled", np.array([1, 1]), seed).window(0, steps)
        assert (row.numpy() == expected).all()
    assert (chosen[:, 0].unflatten(-1, (-1, 2)).sum(-1) == 1).all()  # both in every cycle


def test_rows_put_together_and_taken_apart_are_the_rows():
    problem = make_problem(bundled_digits(), (0.8, 0.9), [0], "cpu")
    together = digit_training._together(problem.train, problem.held_out)
    first = together.labels[:, : together.labels.shape[1] // 2]
    own = [part.labels[:, : part.labels.shape[1] // 2] for part in (problem.train, problem.held_out)]
    assert torch.equal(first, torch.cat(own, 1))
    parts = digit_training._apart(together.labels, problem)
    assert torch.equal(parts[0], problem.train.labels)
    assert torch.equal(parts[1], problem.held_out.labels)


@pytest.mark.slow
def test_nothing_is_chosen_by_test_rows(monkeypatch):
    """With the labels of all test rows flipped, scores stay and accuracies become 1 - accuracy."""
    ways = []
    for flipped in (False, True):

        def changed(*arguments, flipped=flipped):
            problem = make_problem(*arguments)
            labels = 1 - problem.test.labels if flipped else problem.test.labels
            return problem._replace(test=problem.test._replace(labels=labels))

        monkeypatch.setattr(digit_training, "make_problem", changed)
        with digit_training.one_thread():
            ways.append(digit_training.run_methods((0.9, 0.3), [0], 20, 200, lambda: None))
    plain, reverse = ways
    for method in digit_training.METHODS:
        assert plain.score[method] == reverse.score[method]
        assert plain.accuracy[method] == pytest.approx(1 - reverse.accuracy[method], abs=1e-6)


@pytest.mark.slow
def test_without_torch_the_message_names_the_extra_and_the_others_go_on(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\nfrom pathlib import Path\nfrom holdfast.experiments import load\n"
        "from holdfast.reproduction import reproduce\n"
        "experiments = {name: load(name) for name in ('coloured_digits', 'figure_2')}\n"
        f"sys.exit(reproduce(experiments, Path({str(tmp_path)!r}), quick=True))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    written = json.loads((tmp_path / "claims.json").read_text())
    assert done.returncode == 1
    assert "pip install 'holdfast[torch]'" in written["failed"]["coloured_digits"]
    assert (tmp_path / "figure_2.png").exists()
