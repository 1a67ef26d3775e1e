"""Which experiments are computed, in which order, and what decides that they are computed again."""

import json
from importlib import import_module
from types import SimpleNamespace

from holdfast.sweeps.engines import ProcessEngine, ThreadEngine
from holdfast_studies import load, runner
from holdfast_studies.commands.reproduce import MOST_PROCESSES, default_engine
from holdfast_studies.experiment import Effort
from holdfast_studies.runner import Reporter, reproduce
from studies.reproduction.test_runner import Counter, run, toy, written_claims


def toys(counter):
    return {name: toy(name, counter) for name in ("first", "second", "third")}


def test_an_experiment_without_its_packages_is_left_out_with_the_extra_that_has_them(tmp_path, capsys):
    counter = Counter()
    needs = "needs no_such_package: pip install 'holdfast[torch]'"
    lacking = toy("lacking", counter, packages={"no_such_package": "torch", "numpy": "compare"})
    assert run(toys(counter) | {"lacking": lacking}, tmp_path) == 0
    assert counter.computed == 3
    assert written_claims(tmp_path)["left_out"] == {"lacking": needs}
    assert f"not computed: lacking {needs}" in capsys.readouterr().out
    assert (
        "Not computed, for want of a package: lacking needs no_such_package" in (tmp_path / "report.html").read_text()
    )
    assert run({"lacking": lacking}, tmp_path) == 1


def test_the_versions_of_its_packages_are_in_the_key_of_an_experiment():
    """Those of the others are not: a new torch computes two experiments again, not all."""
    counter = Counter()
    experiments = {"with_torch": toy("with_torch", counter, packages={"numpy": "torch"}), "without": toy("x", counter)}
    packages = {name: runner._key(name, each, Effort(7)).packages for name, each in experiments.items()}
    assert packages == {"with_torch": (*runner.PACKAGES, "numpy"), "without": runner.PACKAGES}
    for name in ("coloured_digits", "natural_environments"):
        assert "torch" in load(name).packages


def test_the_longest_are_computed_first_and_the_report_does_not_depend_on_it(tmp_path):
    order = []
    reporter = Reporter(begin=lambda name, *_: order.append(name))
    options = {"engine": ThreadEngine(1), "reporter": reporter}
    assert reproduce(toys(Counter()), tmp_path / "plain", **options) == 0
    assert reproduce(toys(Counter()), tmp_path / "longest", first=["second", "not asked for"], **options) == 0
    assert order == ["first", "second", "third", "second", "first", "third"]
    written = [json.loads((tmp_path / folder / "claims.json").read_text()) for folder in ("plain", "longest")]
    assert written[0]["claims"] == written[1]["claims"]


def test_a_command_computes_several_experiments_in_processes_and_one_in_threads(monkeypatch):
    monkeypatch.setattr("holdfast.core.worker.available_cores", lambda: [0, 1])
    assert default_engine(40) == ProcessEngine(2)
    assert default_engine(1) is None
    monkeypatch.setattr("holdfast.core.worker.available_cores", lambda: list(range(64)))
    assert default_engine(40) == ProcessEngine(MOST_PROCESSES)
    # what jax calls a device of a GPU
    loop = import_module("holdfast.core.run")
    monkeypatch.setattr(loop, "available_devices", lambda: [SimpleNamespace(platform="gpu")])
    assert default_engine(40) is None
