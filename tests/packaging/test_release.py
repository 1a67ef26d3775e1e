"""The wheel, in fresh environments: on two versions of Python, and with each extra alone.

Each environment is filled from the package index. The extra `cuda` needs NVIDIA's hardware and is not tried.
"""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import zipfile
from pathlib import Path

import pytest

import holdfast

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[2]
# What the developers use in one version only, torch, is tried in that version.
DEVELOPERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
# From what the user sets for this machine only what programs and pip need: no PYTHONPATH, and no cache of ours.
PASSED_ON = ("HOME", "PATH", "TMPDIR", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
TABLE = "wage,age,region\n" + "\n".join(f"{i % 7},{i % 5},{'north' if i % 2 else 'south'}" for i in range(200)) + "\n"
FIT = ["fit", "wages.csv", "--target", "wage", "--environment", "region"]
# Extra -> a program that needs it; without the extra it fails, with a message that names it.
PROGRAMS = {
    "torch": """
        from holdfast.torch import EnvironmentBatchSampler
        batches = list(EnvironmentBatchSampler(["a", "b"] * 3, batch_size=3))
        assert sorted(map(len, batches)) == [3, 3], batches
        """,
    "cluster": f"""
        from holdfast.apps.cli.main import main
        try:
            from distributed import LocalCluster
        except ImportError:
            raise SystemExit(main({[*FIT, "--dask", "tcp://127.0.0.1:8786"]}))
        options = dict(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0")
        with LocalCluster(**options) as cluster:
            raise SystemExit(main([*{FIT}, "--dask", cluster.scheduler_address]))
        """,
    "lab": """
        import re, subprocess, sys, urllib.request
        command = [sys.executable, "-u", "-m", "holdfast", "lab", "--no-browser", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            found = re.search(r"http://\\S+", server.stdout.readline())
            if found is None:
                raise SystemExit(server.wait())
            with urllib.request.urlopen(found[0]) as page:
                assert b"<html" in page.read()
            server.terminate()
        """,
    "compare": """
        import numpy as np
        from holdfast.estimators.baselines import AnchorRegressor
        inputs = np.random.default_rng(0).standard_normal((60, 2))
        AnchorRegressor().fit(inputs, inputs[:, 0], environments=np.repeat(["a", "b", "c"], 20))
        """,
}


def _interpreter(version):
    """Python of a version on the path or in pyenv's folder; each is started, since some commands start nothing."""
    candidates = [
        shutil.which(f"python{version}"),
        *Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"),
    ]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return str(candidate)
    return pytest.skip(f"Python {version} is not installed on this machine, so the wheel was not tried with it")


def _run(command, folder, **options):
    settings = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("PIP_")}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=folder, env=settings, timeout=1500, **options
    )
    return done.returncode, done.stdout, done.stderr


def _check(command, folder):
    code, out, err = _run(command, folder)
    assert code == 0, f"{command}\n{out[-2000:]}\n{err[-4000:]}"
    return out


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _check([sys.executable, "-m", "build", "--outdir", folder, ROOT], ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def _environment(wheel, folder, interpreter=sys.executable, extra=None):
    """A fresh environment with the wheel and at most one extra; returns its Python."""
    (folder / "wages.csv").write_text(TABLE)
    _check([interpreter, "-m", "venv", folder / "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else wheel
    (folder / "pins.txt").write_text("\n".join(each for each in DEVELOPERS if "==" in each))
    options = ["--quiet", "--disable-pip-version-check", "--constraint", folder / "pins.txt"]
    _check([python, "-m", "pip", "install", *options, wanted], folder)
    return python


def test_files_are_complete_and_well_described(files):
    """`twine check --strict`; nothing that a test or a build leaves behind is in them, and what the page needs is."""
    wheel, sdist = files
    _check([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], ROOT)
    names = zipfile.ZipFile(wheel).namelist()
    assert {"holdfast/py.typed", "holdfast/__init__.pyi", "holdfast/apps/lab/static/index.html"} <= set(names)
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    described = email.message_from_bytes(
        zipfile.ZipFile(wheel).read(f"holdfast-{holdfast.__version__}.dist-info/METADATA")
    )
    assert described["Version"] == holdfast.__version__
    assert described["License-Expression"] == "MIT"
    with tarfile.open(sdist) as archive:
        parts = {part for name in archive.getnames() for part in name.split("/")}
    assert parts & {"__pycache__", ".cache", ".git", ".venv", "_build", "dist", "results"} == set()
    assert {"pyproject.toml", "LICENSE", "CITATION.cff", "tests"} <= parts


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_the_wheel_works_in_a_clean_environment(files, version, tmp_path):
    """What the core is for, with the core alone; and where an extra is needed, the message names it."""
    python = _environment(files[0], tmp_path, _interpreter(version))
    holdfast_command = python.with_name("holdfast")
    for words in (
        ["--version"],
        ["simulate", "--dimension", "8", "--steps", "20", "--seeds", "2", "--out", "runs.zarr"],
        [*FIT, "--out", "model.json"],
        ["predict", "model.json", "wages.csv", "--out", "predictions.csv"],
        ["reproduce", "proposition_1", "--quick", "--out", "look"],
        ["completion", "bash"],
    ):
        _check([holdfast_command, *words], tmp_path)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 201
    assert (tmp_path / "look" / "report.html").exists()
    found = json.loads(_check([holdfast_command, "doctor", "--format", "json"], tmp_path))
    assert found["broken"] == []
    assert found["python"][0].startswith(version)
    assert "installed" not in found["extras"].values()
    for extra, program in PROGRAMS.items():
        code, _, err = _run([python, "-c", textwrap.dedent(program)], tmp_path)
        assert code != 0
        assert f"pip install 'holdfast[{extra}]'" in err.splitlines()[-1]


@pytest.mark.parametrize("extra", [*PROGRAMS, "docs"])
def test_an_extra_has_all_that_its_part_needs(files, extra, tmp_path):
    python = _environment(files[0], tmp_path, extra=extra)
    found = json.loads(_check([python.with_name("holdfast"), "doctor", "--format", "json"], tmp_path))
    assert found["broken"] == []
    assert found["extras"][extra] == "installed"
    if extra == "docs":  # these are tools, which no module of the package imports
        _check([python, "-c", "import furo, myst_parser, sphinx"], tmp_path)
    else:
        _check([python, "-c", textwrap.dedent(PROGRAMS[extra])], tmp_path)
