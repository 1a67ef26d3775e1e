import json

import jax
import numpy as np
import pytest

from holdfast_studies.benchmarks import suite, sweeps
from holdfast_studies.benchmarks.timing import best, product_rate, read_rate


def test_limits_are_rates(monkeypatch):
    """Not how fast, only that work is counted: twice the work at the same time would be twice the rate."""
    monkeypatch.setattr("holdfast_studies.benchmarks.timing.best", lambda work, repeats=5, clock=None: work() or 1.0)
    monkeypatch.setattr("holdfast_studies.benchmarks.timing.available_workers", lambda: 2)
    assert product_rate(10, 3, products=4) == 2 * 4 * 3 * 2 * 10**3
    assert read_rate(1) == 2 * 2**20


def test_best_is_the_fastest_call():
    calls = []
    assert best(lambda: calls.append(1), repeats=3) >= 0
    assert len(calls) == 4


def test_report_writes_every_number(tmp_path, monkeypatch, capsys):
    fake = {"one": ("First", lambda quick: {"a": 1.5}), "two": ("Second", lambda quick: {"x": {"b": 2.0}})}
    monkeypatch.setattr(suite, "BENCHMARKS", fake)
    assert suite.report(out=tmp_path / "bench.json") == 0
    assert '"a": 1.5' in (tmp_path / "bench.json").read_text()
    assert "Second" in capsys.readouterr().out
    assert suite.report(["two"]) == 0
    assert "First" not in capsys.readouterr().out
    with pytest.raises(ValueError, match="names must be among one, two, got 'three'"):
        suite.report(["three"])


@pytest.mark.slow
@pytest.mark.parametrize("name", suite.BENCHMARKS)
def test_a_quick_look_measures_numbers(name, tmp_path):
    assert suite.report([name], out=tmp_path / "bench.json", quick=True) == 0
    numbers = jax.tree.leaves(json.loads((tmp_path / "bench.json").read_text())[name])
    assert numbers
    assert np.isfinite(numbers).all()


def test_a_long_cell_says_how_much_of_its_processor_it_used(monkeypatch):
    monkeypatch.setattr(sweeps, "LONG", 0.01)
    used = sweeps.long({"x": 1}, np.arange(8)).values["processor_seconds"]
    assert used.sum() >= 0.01
