"""`holdfast doctor`: what it finds agrees with the metadata and the devices, and only a broken core is a failure."""

import json
from importlib.metadata import metadata, version

import jax
import pytest
from packaging.requirements import Requirement

from holdfast.apps.cli.commands import tools
from holdfast.apps.cli.commands.tools import missing
from holdfast.apps.cli.main import main
from holdfast.sweeps.store.naming import computed_by


@pytest.fixture
def _quick(monkeypatch):
    """Without what takes seconds: a simulation, which is compiled."""
    monkeypatch.setattr("holdfast.sensing.simulation.simulate", lambda settings: None)


def _install(monkeypatch, package, version):
    """As if this version were installed."""
    true = tools.installed_version
    monkeypatch.setattr(tools, "installed_version", lambda name: version if name == package else true(name))


def _answer(capsys, *options):
    code = main(["doctor", "--format", "json", *options])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_it_reports_versions_devices_extras_and_folders(capsys, tmp_path):
    code, found = _answer(capsys, "--out", str(tmp_path))
    assert code == 0
    assert found["broken"] == []
    assert found["packages"]["numpy"] == version("numpy")
    assert len(found["devices"]) == jax.device_count()
    assert found["simulations"] == [computed_by()]
    assert set(found["extras"]) == set(metadata("holdfast").get_all("Provides-Extra")) - {"dev"}
    assert found["folders"][str(tmp_path)] == "writable"


@pytest.mark.usefixtures("_quick")
def test_a_missing_extra_is_named_with_its_command_and_is_no_failure(capsys, monkeypatch):
    _install(monkeypatch, "ivmodels", "none")
    code, found = _answer(capsys)
    assert code == 0
    assert found["extras"]["compare"].startswith("pip install 'holdfast[compare]'   (missing: ivmodels>=")
    assert main(["doctor"]) == 0
    assert "compare: pip install 'holdfast[compare]'   (missing: ivmodels" in capsys.readouterr().out


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(("found", "words"), [("none", "scipy>="), ("0.1", "(installed: 0.1)")])
def test_a_core_package_that_is_missing_or_too_old_is_a_failure(found, words, capsys, monkeypatch):
    _install(monkeypatch, "scipy", found)
    code, answer = _answer(capsys)
    assert code == 1
    assert [words in each for each in answer["broken"]] == [True]


def test_a_core_that_does_not_compute_is_a_failure(capsys, monkeypatch):
    monkeypatch.setattr("holdfast.sensing.simulation.simulate", lambda settings: 1 / 0)
    code, answer = _answer(capsys)
    assert code == 1
    assert answer["broken"] == ["a simulation of two steps fails: ZeroDivisionError: division by zero"]


@pytest.mark.usefixtures("_quick")
def test_folders_that_take_no_files_are_reported(capsys, tmp_path):
    (tmp_path / "file").touch()
    code, found = _answer(capsys, "--out", str(tmp_path / "file"))
    assert code == 0
    assert found["folders"][str(tmp_path / "file")] == "cannot be written to"


@pytest.mark.usefixtures("_quick")
def test_without_metadata_it_says_so(monkeypatch, capsys):
    _install(monkeypatch, "holdfast", "none")
    code, found = _answer(capsys)
    assert code == 1
    assert "holdfast is not installed" in found["broken"][0]


def test_extras_of_requirements_count(monkeypatch):
    """jax is installed, but jax[cuda13] is more than that."""
    true = tools.installed_version
    monkeypatch.setattr(tools, "installed_version", lambda name: "none" if "cuda" in name else true(name))
    assert missing(Requirement("jax")) == []
    assert any(each.startswith("jax-cuda13") for each in missing(Requirement("jax[cuda13]")))
