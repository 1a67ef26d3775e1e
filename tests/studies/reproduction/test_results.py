"""Data sets come as they are computed; what is written does not depend on that order."""

import json
import time
from dataclasses import replace

import xarray as xr

from holdfast.sweeps.store import DATASETS, Key, Store
from holdfast.sweeps.store.store import FOLDER
from holdfast_studies.results import data_sets
from holdfast_studies.runner import Reporter, reproduce
from studies.reproduction.experiments_of_a_user import EXPERIMENTS, square


def test_each_is_drawn_when_it_is_computed_and_written_in_the_given_order(tmp_path):
    """The first experiment ends only when the figure of the second is there."""
    drawn = tmp_path / "cube.svg"

    def waits(effort, progress):
        for _ in range(6000):
            if drawn.exists():
                return square(effort, progress)
            time.sleep(0.01)
        raise TimeoutError("nothing was drawn in the meantime")

    experiments = EXPERIMENTS | {"square": replace(EXPERIMENTS["square"], simulate=waits)}
    assert list(experiments) == ["square", "cube"]
    begun = []
    assert reproduce(experiments, tmp_path, reporter=Reporter(begin=lambda name, *_: begun.append(name))) == 0
    assert begun == ["cube", "square"]
    written = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["id"] for claim in written["claims"]] == ["square-grows", "cube-grows"]


def test_an_experiment_that_fails_comes_with_its_error_in_the_given_order(tmp_path):
    """The later ones are computed all the same, and errors are reported in the order of the experiments."""

    def fails(effort, progress):
        while not (tmp_path / "cube.svg").exists():
            time.sleep(0.01)
        raise ArithmeticError("late")

    def fails_at_once(effort, progress):
        raise ArithmeticError("early")

    late, early = (replace(EXPERIMENTS["square"], simulate=function) for function in (fails, fails_at_once))
    errors = {}
    experiments = {"late": late, "early": early, "cube": EXPERIMENTS["cube"]}
    assert reproduce(experiments, tmp_path, reporter=Reporter(errors=errors.update)) == 1
    assert [str(error) for error in errors.values()] == ["late", "early"]
    assert list(json.loads((tmp_path / "claims.json").read_text())["failed"]) == ["late", "early"]


def test_a_failure_that_was_noted_before_is_not_one_of_this_run(tmp_path, monkeypatch):
    """Another command saves the result meanwhile, and is killed before it deletes the note of an earlier failure."""
    key, data = Key("square", {}, ("holdfast.core.statistics",)), xr.Dataset({"x": ("t", [1.0])})
    store = Store(tmp_path / FOLDER, DATASETS)
    store.fail(key.file, "ValueError: last week")
    lease = Store.lease

    def late(own, name):
        store.save(key.file, data)
        return lease(own, name)

    monkeypatch.setattr(Store, "lease", late)
    ((name, source),) = data_sets({"square": lambda progress: data}, {"square": key}, tmp_path)
    assert (name, source.notes) == ("square", ("computed by another process",))
    assert source.data.equals(data)
