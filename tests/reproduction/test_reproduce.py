import json
import shutil
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from holdfast.core.statistics import median
from holdfast.execution import store
from holdfast.experiments import figure_3
from holdfast.plots import new_figure
from holdfast.reproduction import runner as reproduce
from holdfast.reproduction.claims import Claim, Verdict
from holdfast.reproduction.runner import EXPERIMENTS, reproduce_all


class Toy(SimpleNamespace):
    """An experiment that takes no time and counts how often it is computed."""

    def __init__(self, name, value=1.0):
        self.__doc__ = f"About {name}.\n\nMore."
        super().__init__(TITLE=f"title of {name}", OPEN=("The number of seeds.",), SEEDS=20, QUICK_SEEDS=7)
        self.name, self.value, self.computed = name, value, 0

    def simulate(self, seeds, progress=None):
        self.computed += 1
        progress(1, 1)
        values = self.value + np.zeros((2, seeds), np.float32)
        coordinates = {"batching": ["hetero", "pooled"], "seed": np.arange(seeds)}
        attributes = {"threshold": np.float64(0.5), "levels": np.array([1, 2]), "odd": object()}
        return xr.Dataset({"share": (("batching", "seed"), values, {"odd": {1}})}, coordinates, attributes)

    def draw(self, data):
        figure, (axes,) = new_figure(1, "toy")
        axes.plot(data["seed"], data["share"].sel(batching="pooled"))
        return figure

    def numbers(self, data):
        return data["share"].to_dataframe().reset_index()

    def claims(self, data):
        allowed = (data.attrs["threshold"], np.inf)
        measured = median(data["share"].sel(batching="hetero"))
        return [Claim(f"{self.name}-holds", self.name, "It holds.", "d=1", measured, allowed, Verdict.HOLDS, "[why]")]


@pytest.fixture
def same_code(monkeypatch):
    """The source may be edited while the tests run."""
    monkeypatch.setattr(reproduce, "fingerprint", lambda: "the code")


@pytest.fixture
def toys(monkeypatch, same_code):
    toys = {name: Toy(name) for name in ("first", "second", "third")}
    monkeypatch.setattr(reproduce, "EXPERIMENTS", toys)
    return toys


def ledger(folder):
    return json.loads((folder / "claims.json").read_text())


def test_figures_numbers_claims_and_report_are_written(same_code, tmp_path, monkeypatch, capsys):
    small = type(figure_3.GIVEN)(**{**figure_3.GIVEN.asdict(), "dimension": 12, "every": 50})
    monkeypatch.setattr(figure_3, "GIVEN", small)
    assert reproduce_all(("figure_3",), tmp_path, seeds=48) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "figure_3.png", "figure_3.svg", "figure_3.csv", "claims.json", "report.html", ".computed",
    }  # fmt: skip
    assert (tmp_path / "figure_3.png").stat().st_size > 20_000
    numbers = pd.read_csv(tmp_path / "figure_3.csv")
    assert set(numbers["signal"]) == {"invariant", "spurious", "residual"}
    claims = ledger(tmp_path)["claims"]
    assert len({claim["id"] for claim in claims}) == len(claims) == 4
    report = (tmp_path / "report.html").read_text()
    for claim in claims:
        assert claim["verdict"] in list(Verdict)
        assert claim["measured"]["low"] <= claim["measured"]["value"] <= claim["measured"]["high"]
        assert report.count(f'id="claim-{claim["id"]}"') == 1
    shown = capsys.readouterr().out
    assert "wrote" in shown
    assert "verdict" in shown
    # The second time nothing is simulated, and all is as before.
    monkeypatch.setattr(figure_3, "simulate", None)
    (tmp_path / "figure_3.csv").unlink()
    assert reproduce_all(("figure_3",), tmp_path, seeds=48) == 0
    assert "reused" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text() == report
    assert ledger(tmp_path)["claims"] == claims
    assert pd.read_csv(tmp_path / "figure_3.csv").equals(numbers)


def test_every_experiment_says_what_the_paper_leaves_open():
    for experiment in EXPERIMENTS.values():
        assert isinstance(experiment.OPEN, tuple)
        assert all(isinstance(text, str) for text in experiment.OPEN)


def test_what_is_computed_is_reused_until_something_changes(toys, tmp_path, monkeypatch, capsys):
    counts = []
    for seeds in (None, None, 8, 8, None):
        assert reproduce_all(("first",), tmp_path, seeds=seeds) == 0
        counts.append(toys["first"].computed)
    assert counts == [1, 1, 2, 2, 2]
    shown = capsys.readouterr().out
    assert shown.count("computed in") == 2
    assert shown.count("  reused") == 3
    monkeypatch.setattr(reproduce, "fingerprint", lambda: "other code")
    assert reproduce_all(("first",), tmp_path) == 0
    assert toys["first"].computed == 3


@pytest.mark.parametrize("damage", ["missing", "shortened", "all gone"])
def test_a_damaged_result_is_computed_again(toys, tmp_path, capsys, damage):
    assert reproduce_all(("first",), tmp_path) == 0
    (entry,) = (tmp_path / ".computed").iterdir()
    chunk = next(path for path in entry.glob("data.zarr/share/*") if not path.name.startswith("."))
    if damage == "missing":
        chunk.unlink()
    elif damage == "shortened":
        chunk.write_bytes(chunk.read_bytes()[:-3])
    else:
        shutil.rmtree(entry / "data.zarr")
    capsys.readouterr()
    assert reproduce_all(("first",), tmp_path) == 0
    shown = capsys.readouterr().out
    assert shown.count("computed again:") == 1
    assert toys["first"].computed == 2
    assert reproduce_all(("first",), tmp_path) == 0
    assert toys["first"].computed == 2


def test_results_of_other_code_are_deleted(toys, tmp_path, monkeypatch):
    """But not those of other seeds or other experiments."""
    assert reproduce_all(("first", "second"), tmp_path) == 0
    assert reproduce_all(("first",), tmp_path, seeds=8) == 0
    kept = set((tmp_path / ".computed").iterdir())
    assert len(kept) == 3
    monkeypatch.setattr(reproduce, "fingerprint", lambda: "other code")
    assert reproduce_all(("first",), tmp_path) == 0
    entries = set((tmp_path / ".computed").iterdir())
    assert len(entries) == 2
    (survivor,) = entries & kept
    assert survivor.name.startswith("second")


def test_the_fingerprint_covers_the_source(tmp_path, monkeypatch):
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "module.py").write_text("STEP = 1")
    monkeypatch.setattr(store.holdfast, "__file__", str(tmp_path / "__init__.py"))
    before = store.fingerprint()
    assert store.fingerprint() == before
    (tmp_path / "inner" / "module.py").write_text("STEP = 2")
    assert store.fingerprint() != before


def test_a_call_that_is_killed_leaves_no_result(toys, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            reproduce_all(("first",), tmp_path)
    assert not list((tmp_path / ".computed").iterdir())
    assert reproduce_all(("first",), tmp_path) == 0
    assert toys["first"].computed == 2


def test_an_interrupt_ends_what_is_computed_beside(toys, tmp_path, monkeypatch):
    began, finished = threading.Event(), []

    def interrupted(*_):
        assert began.wait(30)  # the second is computed beside the first
        raise KeyboardInterrupt

    def long(seeds, progress):
        began.set()
        for step in range(1000):
            progress(step, 1000)
            time.sleep(0.01)
        finished.append(seeds)

    monkeypatch.setattr(toys["first"], "simulate", interrupted)
    monkeypatch.setattr(toys["second"], "simulate", long)
    with pytest.raises(KeyboardInterrupt):
        reproduce_all((), tmp_path)
    assert not finished


def test_what_cannot_be_stored_is_still_shown(toys, tmp_path, capsys, monkeypatch):
    plain = toys["first"].simulate
    monkeypatch.setattr(toys["first"], "simulate", lambda *given: _with_pairs(plain(*given)))
    assert reproduce_all(("first",), tmp_path) == 0
    assert "not kept for the next call" in capsys.readouterr().out
    assert (tmp_path / "first.png").exists()


def _with_pairs(data):
    """With a coordinate that zarr does not know."""
    pairs = pd.MultiIndex.from_product([[1, 2], [3, 4]], names=["one", "two"])
    return data.assign_coords(xr.Coordinates.from_pandas_multiindex(pairs, "pair"))


def test_an_experiment_that_fails_does_not_lose_the_others(toys, tmp_path, monkeypatch, capsys):
    def fail(data):
        raise RuntimeError("no [ink] left")

    monkeypatch.setattr(toys["second"], "draw", fail)
    assert reproduce_all((), tmp_path) == 1
    for name in ("first", "third"):
        assert all((tmp_path / f"{name}.{ending}").exists() for ending in ("png", "svg", "csv"))
    written = ledger(tmp_path)
    assert [claim["id"] for claim in written["claims"]] == ["first-holds", "third-holds"]
    assert written["failed"] == {"second": "RuntimeError: no [ink] left"}
    assert "no [ink] left" in (tmp_path / "report.html").read_text()
    shown = capsys.readouterr()
    assert "2 of 3 second" in shown.out
    assert shown.err.endswith("second failed: RuntimeError: no [ink] left\n")
    assert "Traceback" in shown.err


def test_an_id_that_is_taken_counts_as_a_failure(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(toys["second"], "name", "first")
    assert reproduce_all((), tmp_path) == 1
    assert "second" in ledger(tmp_path)["failed"]


def test_a_broken_claim_is_told_by_the_exit_code_but_not_by_a_quick_look(toys, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(toys["first"], "value", 0.1)
    assert reproduce_all(("first",), tmp_path) == 1
    assert "not this time: first-holds" in capsys.readouterr().out
    assert ledger(tmp_path)["quick"] is False
    assert reproduce_all(("first",), tmp_path, quick=True) == 0
    assert "not this time: first-holds" in capsys.readouterr().out
    assert ledger(tmp_path)["quick"] is True
    assert ledger(tmp_path)["seeds"] == {"first": 7}
    assert "quick look" in (tmp_path / "report.html").read_text()


def test_unknown_experiments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"names must be among figure_\d, .* got 'figure_99'"):
        reproduce_all(("figure_99",), tmp_path)
