import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from holdfast.core.statistics import median
from holdfast.plots import new_figure
from holdfast.sweeps.engines import Feed, ProcessEngine
from holdfast.sweeps.engines.local import attempt
from holdfast.sweeps.store import naming, store
from holdfast_studies import TITLES, load
from holdfast_studies.claims import AS_STATED, Claim, Verdict
from holdfast_studies.commands.reproduction_output import REPORTER
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.papers import figure_3
from holdfast_studies.runner import Reporter, reproduce
from studies.reproduction.experiments_of_a_user import EXPERIMENTS, fail, no_claims, saved, square
from sweeps.store.cell_files import cell_files


class Counter:
    """Counts how often the simulation of a toy is called, and what value it returns."""

    def __init__(self, value=1.0):
        self.value, self.computed = value, 0


def toy(name, counter, **changed):
    """An experiment that takes no time."""

    def simulate(effort, progress):
        counter.computed += 1
        progress(1, 1)
        values = counter.value + np.zeros((2, effort.seeds), np.float32)
        coordinates = {"batching": ["hetero", "pooled"], "seed": np.arange(effort.seeds)}
        return xr.Dataset({"share": (("batching", "seed"), values)}, coordinates, {"threshold": 0.5})

    def draw(data):
        figure, (axes,) = new_figure(1, "toy")
        axes.plot(data["seed"], data["share"].sel(batching="pooled"))
        return figure

    def claims(data):
        allowed = (data.attrs["threshold"], np.inf)
        measured = median(data["share"].sel(batching="hetero"))
        return [Claim(f"{name}-holds", name, "It holds.", "d=1", measured, allowed, AS_STATED, "[why]")]

    parts = {
        "title": f"title of {name}",
        "source": f"About {name}.",
        "left_open": ("The number of seeds.",),
        "seeds": 20,
        "quick_seeds": 7,
        "simulate": simulate,
        "draw": draw,
        "numbers": lambda data: data["share"].to_dataframe().reset_index(),
        "claims": claims,
    }
    return Experiment(**parts | changed)


@pytest.fixture
def counter():
    return Counter()


@pytest.fixture
def toys(counter):
    return {name: toy(name, counter) for name in ("first", "second", "third")}


def run(experiments, out, **options):
    return reproduce(experiments, out, reporter=REPORTER, **options)


def _environment():
    """Of processes that import what lies next to the tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}


def written_claims(folder):
    return json.loads((folder / "claims.json").read_text())


def test_figures_numbers_claims_and_report_are_written(tmp_path, monkeypatch, capsys):
    small = {"figure_3": figure_3.EXPERIMENT}
    monkeypatch.setattr(figure_3, "GIVEN", replace(figure_3.GIVEN, dimension=12, every=50))
    assert run(small, tmp_path, seeds=48) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "figure_3.png", "figure_3.svg", "figure_3.csv", "claims.json", "report.html", ".computed",
    }  # fmt: skip
    assert (tmp_path / "figure_3.png").stat().st_size > 20_000
    numbers = pd.read_csv(tmp_path / "figure_3.csv")
    assert set(numbers["signal"]) == {"invariant", "spurious", "residual"}
    claims = written_claims(tmp_path)["claims"]
    assert len({claim["id"] for claim in claims}) == len(claims) == 4
    report = (tmp_path / "report.html").read_text()
    for claim in claims:
        assert claim["verdict"] in list(Verdict)
        assert claim["measured"]["low"] <= claim["measured"]["value"] <= claim["measured"]["high"]
        assert report.count(f'id="claim-{claim["id"]}"') == 1
    output = capsys.readouterr().out
    assert "wrote" in output
    assert "verdict" in output
    # The second time nothing is simulated, and all is as before.
    monkeypatch.setattr(figure_3, "run_simulation", None)
    (tmp_path / "figure_3.csv").unlink()
    assert run(small, tmp_path, seeds=48) == 0
    assert "reused" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text() == report
    assert written_claims(tmp_path)["claims"] == claims
    assert pd.read_csv(tmp_path / "figure_3.csv").equals(numbers)


def test_what_is_computed_is_reused_until_something_changes(counter, toys, tmp_path, monkeypatch, capsys):
    first = {"first": toys["first"]}
    counts = []
    for options in ({}, {}, {"seeds": 8}, {"seeds": 8}, {}, {"quick": True, "seeds": 8}):
        assert run(first, tmp_path, **options) == 0
        counts.append(counter.computed)
    assert counts == [1, 1, 2, 2, 2, 3]
    output = capsys.readouterr().out
    assert output.count("computed in") == 3
    assert output.count("  reused") == 3
    monkeypatch.setattr(naming, "fingerprint", lambda modules: "other code")
    assert run(first, tmp_path) == 0
    assert counter.computed == 4


def test_a_damaged_result_is_computed_again(counter, toys, tmp_path, capsys):
    first = {"first": toys["first"]}
    assert run(first, tmp_path) == 0
    (entry,) = cell_files(tmp_path / ".computed")
    entry.write_bytes(entry.read_bytes()[:-1])
    capsys.readouterr()
    assert run(first, tmp_path) == 0
    assert capsys.readouterr().out.count("computed again:") == 1
    assert counter.computed == 2
    assert run(first, tmp_path) == 0
    assert counter.computed == 2


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_result_and_goes_on(tmp_path):
    """The second experiment is killed at a moment when the first is saved."""
    script = """
import os, signal, sys, time
from dataclasses import replace
from pathlib import Path
from studies.reproduction.experiments_of_a_user import EXPERIMENTS, saved
from holdfast_studies import reproduce

def killed(effort, progress):
    while not saved(Path(sys.argv[1]), "square"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

reproduce(EXPERIMENTS | {"cube": replace(EXPERIMENTS["cube"], simulate=killed)}, Path(sys.argv[1]))
"""
    process = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=_environment(), timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert saved(tmp_path, "square")
    assert not saved(tmp_path, "cube")
    notes = []
    assert reproduce(EXPERIMENTS, tmp_path, reporter=Reporter(note=notes.append)) == 0
    assert [note.split()[0] for note in notes if not note.startswith("wrote")] == ["computed", "reused"]


def test_an_interrupt_ends_what_is_computed_at_the_same_time(counter, tmp_path):
    began, finished = threading.Event(), []

    def interrupted(effort, progress):
        assert began.wait(30)  # the second is computed at the same time
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            progress(1, 2)  # raises an error when the interrupt has arrived
            time.sleep(0.01)

    def long(effort, progress):
        began.set()
        for step in range(1000):
            progress(step, 1000)
            time.sleep(0.01)
        finished.append(effort)

    simulations = {"first": interrupted, "second": long}
    both = {name: toy(name, counter, simulate=simulate) for name, simulate in simulations.items()}
    with pytest.raises(KeyboardInterrupt):
        run(both, tmp_path)
    assert not finished
    assert not list((tmp_path / ".computed").rglob("*.lease"))


def test_data_that_has_no_form_on_disk_is_a_failure_with_the_reason(counter, toys, tmp_path):
    simulate = toys["first"].simulate
    odd = toy("first", counter, simulate=lambda *given: _with_pairs(simulate(*given)))
    assert run(toys | {"first": odd}, tmp_path) == 1
    (reason,) = written_claims(tmp_path)["failed"].values()
    assert reason.startswith("ValueError: the result must have a form on disk, which this has not: ")
    assert (tmp_path / "third.png").exists()


def test_an_object_with_values_of_its_own_is_not_saved(counter, toys, tmp_path, capsys):
    changed = toy("first", counter, simulate=partial(toys["first"].simulate))
    assert run({"first": changed}, tmp_path) == run({"first": changed}, tmp_path) == 0
    assert counter.computed == 2
    assert capsys.readouterr().out.count("not saved for the next call") == 2


def test_an_object_is_not_saved_but_the_others_are(counter, toys, tmp_path):
    mixed = toys | {"second": toy("second", counter, simulate=partial(toys["second"].simulate))}
    assert run(mixed, tmp_path) == run(mixed, tmp_path) == 0
    assert counter.computed == 3 + 1
    assert len(cell_files(tmp_path / ".computed")) == 2


@pytest.mark.slow
def test_two_processes_share_the_experiments(tmp_path):
    """Two calls at the same time compute each experiment once, and both draw all of them."""
    script = """
import sys
from pathlib import Path
from studies.reproduction.experiments_of_a_user import EXPERIMENTS
from holdfast.sweeps.engines import ThreadEngine
from holdfast_studies import Reporter, reproduce
sys.exit(reproduce(EXPERIMENTS, Path(sys.argv[1]), engine=ThreadEngine(1), reporter=Reporter(note=print)))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    notes = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    computed = sum(text.count("computed in") for text in notes)
    assert computed == len(EXPERIMENTS)


@pytest.mark.slow
def test_experiments_are_computed_by_processes(tmp_path):
    notes = []
    reporter = Reporter(note=notes.append)
    assert reproduce(EXPERIMENTS, tmp_path, engine=ProcessEngine(1), reporter=reporter) == 0
    assert notes.count("computed by another process") == len(EXPERIMENTS)
    failing = {"odd": replace(EXPERIMENTS["square"], simulate=fail)}
    errors = {}
    assert reproduce(failing, tmp_path, engine=ProcessEngine(1), reporter=Reporter(errors=errors.update)) == 1
    line = fail.__code__.co_firstlineno + 2
    reason = f"experiments_of_a_user.py:{line}: ArithmeticError: no number is odd and even"
    assert written_claims(tmp_path)["failed"] == {"odd": reason}
    assert str(errors["odd"]) == reason


def _with_pairs(data):
    """With a coordinate that files do not know."""
    pairs = pd.MultiIndex.from_product([[1, 2], [3, 4]], names=["one", "two"])
    return data.assign_coords(xr.Coordinates.from_pandas_multiindex(pairs, "pair"))


def test_an_experiment_that_fails_does_not_lose_the_others(counter, toys, tmp_path, capsys):
    def fail(data):
        raise RuntimeError("no [ink] left")

    assert run(toys | {"second": toy("second", counter, draw=fail)}, tmp_path) == 1
    for name in ("first", "third"):
        assert all((tmp_path / f"{name}.{ending}").exists() for ending in ("png", "svg", "csv"))
    written = written_claims(tmp_path)
    assert [claim["id"] for claim in written["claims"]] == ["first-holds", "third-holds"]
    assert written["failed"] == {"second": "RuntimeError: no [ink] left"}
    assert "no [ink] left" in (tmp_path / "report.html").read_text()
    output = capsys.readouterr()
    assert "of 3 second" in output.out
    assert output.err.endswith("second failed: RuntimeError: no [ink] left\n")
    assert "Traceback" in output.err


def test_a_result_that_is_deleted_meanwhile_is_a_failure_with_the_reason(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(store.Store, "load", lambda self, key: None)
    assert run({"first": toys["first"]}, tmp_path) == 1
    assert store.LOST in written_claims(tmp_path)["failed"]["first"]


def test_an_id_that_is_taken_counts_as_a_failure(counter, toys, tmp_path):
    assert run(toys | {"second": toy("first", counter)}, tmp_path) == 1
    assert "second" in written_claims(tmp_path)["failed"]


def test_a_broken_claim_changes_the_exit_code_but_not_in_a_quick_look(counter, toys, tmp_path, capsys):
    first = {"first": toys["first"]}
    counter.value = 0.1
    assert run(first, tmp_path) == 1
    assert "otherwise than expected: first-holds" in capsys.readouterr().out
    assert written_claims(tmp_path)["quick"] is False
    assert run(first, tmp_path, quick=True) == 0
    assert "otherwise than expected: first-holds" in capsys.readouterr().out
    assert written_claims(tmp_path)["quick"] is True
    assert written_claims(tmp_path)["seeds"] == {"first": 7}
    assert "quick look" in (tmp_path / "report.html").read_text()


def test_an_undecided_claim_fails_a_full_run_only(counter, tmp_path, capsys):
    def claims(data):
        values = np.linspace(-1, 1, data.sizes["seed"])
        return [Claim("first-holds", "first", "It holds.", "d=1", median(values), (0, np.inf), AS_STATED, "why")]

    first = {"first": toy("first", counter, claims=claims)}
    assert run(first, tmp_path) == 1
    assert "undecided this time: first-holds" in capsys.readouterr().out
    assert written_claims(tmp_path)["undecided"] == ["first-holds"]
    for options in ({"quick": True}, {"seeds": 8}):  # fewer seeds than the experiment asks for
        assert run(first, tmp_path, **options) == 0
        assert written_claims(tmp_path)["undecided"] == []
    assert "undecided this time" not in capsys.readouterr().out


def test_a_run_without_a_reporter_says_nothing(toys, tmp_path, capsys):
    assert reproduce(toys, tmp_path) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"simulate": lambda effort, progress: []}, "simulate must return a Dataset, got list"),
        ({"draw": lambda data: None}, "draw must return a Figure, got NoneType"),
        ({"numbers": lambda data: data["share"]}, "numbers must return a DataFrame, got DataArray"),
        ({"claims": lambda data: None}, "claims must return a list, got NoneType"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_function(changed, message, counter, tmp_path, capsys):
    assert reproduce({"first": toy("first", counter, **changed)}, tmp_path) == 1
    assert written_claims(tmp_path)["failed"] == {"first": f"ValueError: {message}"}
    output = capsys.readouterr()  # a run without a reporter says what failed
    assert not output.out
    assert output.err.startswith("Traceback")
    assert output.err.endswith(f"{message}\nfirst failed, see above\n")


def test_a_run_without_a_reporter_warns_of_what_is_not_saved(counter, toys, tmp_path, capsys):
    assert reproduce({"first": toy("first", counter, simulate=partial(toys["first"].simulate))}, tmp_path) == 0
    assert capsys.readouterr().err.startswith("first: not saved for the next call")


class ElsewhereEngine:
    """A worker that gets copies, and has another working directory."""

    name = "elsewhere"

    def __init__(self, folder):
        self._folder = folder

    def run(self, work, items):
        copy = pickle.loads(pickle.dumps(work))
        for item in items:
            if item is not Feed.WAIT:
                with contextlib.chdir(self._folder):
                    finished = attempt(copy, item)
                yield finished


def test_workers_in_other_folders_write_to_the_same_store(tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    monkeypatch.chdir(tmp_path / "ours")
    chosen = EXPERIMENTS | {"partial": replace(EXPERIMENTS["square"], simulate=partial(square), claims=no_claims)}
    assert reproduce(chosen, Path("results"), engine=ElsewhereEngine(tmp_path / "theirs")) == 0
    assert saved(tmp_path / "ours" / "results", "square")
    assert list((tmp_path / "theirs").iterdir()) == []


def test_all_experiments_travel_to_workers():
    for name in TITLES:
        simulate = load(name).simulate
        assert pickle.loads(pickle.dumps(simulate)) is simulate


@pytest.mark.parametrize("name", ["seeds", "quick_seeds"])
def test_an_experiment_has_at_least_one_seed(name, counter):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        toy("first", counter, **{name: 0})


def test_effort():
    experiment = toy("first", Counter())
    assert experiment.effort() == Effort(20)
    assert experiment.effort(quick=True) == Effort(7, quick=True)
    assert experiment.effort(quick=True, seeds=9) == Effort(9, quick=True)
    assert (Effort(9).slab, Effort(9, quick=True).slab) == (None, 9)
