"""Coloured digits: nothing is chosen by test rows, and the reproduction goes on where torch is missing."""

import json
import subprocess
import sys

import pytest

from holdfast_studies.images import digit_training
from holdfast_studies.images.coloured_problem import make_problem


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
        ways.append(digit_training.run_methods((0.9, 0.3), [0], 20, 200, lambda: None))
    plain, reverse = ways
    assert plain["score"].equals(reverse["score"])
    assert plain["accuracy"].values == pytest.approx(1 - reverse["accuracy"].values, abs=1e-6)


@pytest.mark.slow
def test_without_torch_the_message_names_the_extra_and_the_others_go_on(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\nfrom pathlib import Path\nfrom holdfast_studies import load\n"
        "from holdfast_studies import reproduce\n"
        "experiments = {name: load(name) for name in ('coloured_digits', 'figure_2')}\n"
        f"sys.exit(reproduce(experiments, Path({str(tmp_path)!r}), quick=True))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    written = json.loads((tmp_path / "claims.json").read_text())
    assert done.returncode == 0
    assert "pip install 'holdfast[torch]'" in done.stderr
    assert list(written["left_out"]) == ["coloured_digits"]
    assert (tmp_path / "figure_2.png").exists()
