"""The tables of docs/torch.md are those that the experiments and the example compute."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from holdfast.core.statistics import mean_interval
from holdfast_studies.experiment import Effort
from holdfast_studies.findings import natural_environments
from holdfast_studies.images import coloured_digits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8").replace("\N{MINUS SIGN}", "-")
# Names in the page -> names in the experiment.
REPAIRS = {
    "head": "head",
    "head, where `discover` says that it may be a shortcut": "head, if advised",
    "balance": "balance",
    "discriminant of the same layer, nothing removed": "discriminant",
    "HeteroClassifier, against logistic regression on the columns": "HeteroClassifier",
}


def _rows(first_words):
    """First cell -> numbers of the other cells, of the table whose head begins with these words."""
    table = PAGE.partition(f"| {first_words} |")[2].partition("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {
        name: [[float(number) for number in re.findall(r"-?\d+\.\d+", cell)] for cell in cells]
        for name, *cells in lines
    }


@pytest.mark.slow
def test_accuracies_on_coloured_digits():
    """To one unit of the last digit, by which other processors may round."""
    data = coloured_digits.simulate(Effort(coloured_digits.EXPERIMENT.seeds))
    written = _rows("accuracy where colours are reversed")
    assert set(written) == set(data["algorithm"].values)
    for method, cells in written.items():
        for problem, cell in zip(coloured_digits.PROBLEMS, cells, strict=True):
            computed = mean_interval(data["accuracy"].sel(problem=problem, algorithm=method).values)
            assert np.allclose(cell, computed, atol=0.015)
    found = int(data["found"].sel(problem=coloured_digits.SMALL).sum())
    assert f"in {found} of {coloured_digits.EXPERIMENT.seeds} seeds" in " ".join(PAGE.split())


@pytest.mark.slow
def test_gains_on_natural_environments():
    data = natural_environments.simulate(Effort(natural_environments.EXPERIMENT.seeds))
    gained = natural_environments.gains(data)
    written = _rows("gain against the pooled network")
    assert set(written) == set(REPAIRS)
    for name, (cell,) in written.items():
        assert np.allclose(cell, mean_interval(gained.sel(repair=REPAIRS[name]).values), atol=0.0015)
    varies = int(((data["directions"] > 0).mean("seed") > 0.5).sum())
    assert f"In {varies} of {data.sizes['fold']} folds the classes differ" in PAGE


@pytest.mark.slow
def test_shares_of_the_neurons_in_the_example():
    """Seeds 0 to 3, which the example prints."""
    example = ROOT / "examples" / "more" / "torch_quadratic_network.py"
    printed = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True, timeout=600).stdout
    for name, (invariant, spurious, *_) in _rows("order").items():
        (line,) = (line for line in printed.splitlines() if line.startswith(f"{name} "))
        assert [float(number) for number in re.findall(r"-?\d\.\d\d", line)] == pytest.approx(
            invariant + spurious, abs=0.015
        )
