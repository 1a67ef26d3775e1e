"""Claims of experiments, computed once for all tests and workers that only look at their names and sources."""

import os
import pickle
from pathlib import Path

import pytest

from holdfast_studies import load
from studies.experiments.runs_made import RunsMade


class SharedClaims:
    """Claims by experiment, in a folder that all workers of a run of pytest see."""

    def __init__(self, folder):
        self._folder = folder

    def share(self, name, claims):
        """Leave the claims that a test has computed to the others."""
        path = self._folder / f"{name}.pickle"
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(claims))
        unfinished.replace(path)

    def of(self, name):
        """Those that a test has left, or else those of a quick look, which have the same names and sources."""
        path = self._folder / f"{name}.pickle"
        if not path.exists():
            experiment = load(name)
            # The interval of a median needs 6 seeds.
            effort = experiment.effort(quick=True, seeds=max(6, experiment.quick_seeds))
            self.share(name, experiment.claims(experiment.simulate(effort, None)))
        return pickle.loads(path.read_bytes())


@pytest.fixture(scope="session")
def shared_claims(tmp_path_factory):
    own = tmp_path_factory.getbasetemp()
    folder: Path = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "claims"
    folder.mkdir(exist_ok=True)
    return SharedClaims(folder)


@pytest.fixture
def claims_of(shared_claims):
    """The claims of an experiment, by its name."""
    return shared_claims.of


@pytest.fixture
def runs_made(monkeypatch):
    """The sizes of the runs that a test makes."""
    return RunsMade(monkeypatch)


def pytest_collection_modifyitems(items):
    """Tests that read the claims of others come last, when those have been computed."""
    items.sort(key=lambda item: "claims_of" in getattr(item, "fixturenames", ()))
