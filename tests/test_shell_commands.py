"""What the documents promise: the shell commands of their pages are accepted, and run."""

import gzip
import itertools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from holdfast.apps.cli.main import _parse
from holdfast_studies import TITLES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPECIFICATION = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that would take many minutes run with these options as well.
SMALLER = {
    "holdfast phase": "--cells 3 --seeds 3",
    "holdfast reproduce": "--quick",
    "holdfast compare": "--tests Example1 --methods least_squares hetero --data-seeds 2",
    "holdfast bench": "sampler_of_many_rows --quick",  # the others have a test each
    "holdfast jumps": "--steps 4000",
}
# Of several experiments in one command the last runs: each has its own tests, of a quick look too.
MOST_EXPERIMENTS = 1
# Commands that write nothing that a later one reads. Those on several pages run on the first of them.
INDEPENDENT = ("holdfast simulate", "holdfast window", "holdfast reproduce")
# The snippets of all pages run in test_documents; these pages have some that write what their commands read.
WRITING = ("README.md", "quickstart.md", "theory.md")
# Ends only when it is stopped (tests/lab starts it), or needs other machines (tests/execution starts such clusters).
NOT_RUN = ("holdfast lab", "dask ", "srun ", "make ", "pip install")
NEEDS_CLUSTER = "--dask"


def _commands(page):
    """The lines of the shell blocks of a page, without their comments; a script for another machine is one block."""
    lines = [line for block in BLOCK.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    without = (re.sub(r"(^|\s+)#.*", "", line).strip() for line in lines)
    return [line for line in without if line]


COMMANDS = {page: _commands(page) for page in PAGES if _commands(page)}


def _calls(command):
    """The calls of holdfast in a pipeline, each as a list of arguments."""
    parts = (shlex.split(part) for part in re.split(r"\s\|\s", command))
    return [part[1:] for part in parts if part and part[0] == "holdfast"]


def test_every_command_is_accepted():
    """By the parser of the command line, the Makefile and the extras of the package."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for command in sorted({command for commands in COMMANDS.values() for command in commands}):
        for call in _calls(command):
            _parse(call)  # an argument that is not known exits
        if command.startswith("make "):
            assert command.split()[1] in targets, command
        if command.startswith("pip install"):
            extras = re.findall(r"\[(.*)\]", command)
            assert set(",".join(extras).split(",")) - {""} <= set(project["optional-dependencies"]), command


def test_commands_are_in_shell_blocks():
    """Where they are checked, and not in a block without a language."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"^ {4}(holdfast|pip|make) ", text, re.MULTILINE), page.name
        assert not re.search(r"^```(bash|console|shell)", text, re.MULTILINE), page.name


def _files(folder):
    """The files that commands name: a table in several formats, measurements, a specification."""
    random, rows = np.random.default_rng(0), 900
    table = pd.DataFrame(random.standard_normal((rows, 3)), columns=["education", "experience", "hours"]).round(3)
    table["log_wage"] = (table["education"] + 0.5 * table["experience"] + random.standard_normal(rows)).round(3)
    table["wage"] = np.exp(table["log_wage"]).round(3)
    table["region"] = np.repeat(["north", "south", "west"], rows // 3)
    table["urban"] = np.tile(["yes", "no"], rows // 2)
    table["date"] = pd.date_range("2019-01-01", periods=rows, freq="D").astype(str)
    table["key"] = [f"person {number}" for number in range(rows)]
    table.to_csv(folder / "wages.csv", index=False)
    table.to_csv(folder / "new.csv", index=False)
    table.to_parquet(folder / "new.parquet", index=False)
    (folder / "wages.csv.gz").write_bytes(gzip.compress((folder / "wages.csv").read_bytes()))
    (folder / "years").mkdir()
    table.to_csv(folder / "years" / "all.csv.gz", index=False)
    measurements, labels = random.standard_normal((800, 6, 6)), np.repeat(["home", "away"], 400)
    responses = measurements[:, 0, 0] + np.where(labels == "home", -4.0, 6.0) * measurements[:, 1, 1]
    np.savez(folder / "measurements.npz", X=measurements, y=responses, environment=labels)
    specification = SPECIFICATION.search((ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8"))
    assert specification
    for name in ("phase.toml", "spec.toml"):
        (folder / name).write_text(specification[1], encoding="utf-8")


def _shortened(command):
    """The same command with less to compute."""
    words = command.split()
    if command.startswith("holdfast reproduce"):
        names = [word for word in words if word in TITLES]
        words = [word for word in words if word not in names[:-MOST_EXPERIMENTS]]
    command = " ".join(words)
    for start, options in SMALLER.items():
        if re.match(rf"{start}(\s|$)", command):
            return f"{command} {options}"
    return command


def _run_on(page):
    """The commands of a page that are run: those of holdfast that need no other machine and ran on no page before."""
    before = {
        command for other in itertools.takewhile(lambda other: other != page, COMMANDS) for command in COMMANDS[other]
    }
    return [
        command
        for command in COMMANDS[page]
        if _calls(command)
        and NEEDS_CLUSTER not in command
        and not command.startswith(NOT_RUN)
        and not (command in before and command.startswith(INDEPENDENT))
    ]


def test_every_command_is_run_on_some_page():
    """Or needs what the tests do not have."""
    run = {command for page in COMMANDS for command in _run_on(page)}
    for command in {command for commands in COMMANDS.values() for command in commands if _calls(command)} - run:
        assert NEEDS_CLUSTER in command or command.startswith(NOT_RUN), command


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in COMMANDS if _run_on(page)], ids=lambda page: page.name)
def test_every_command_runs(page, tmp_path):
    """In one folder and in the order of the page."""
    _files(tmp_path)
    text = page.read_text(encoding="utf-8")
    (tmp_path / "snippets.py").write_text("\n".join(SNIPPET.findall(text)), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MPLBACKEND": "Agg"}
    script = [f"{sys.executable} snippets.py"] if page.name in WRITING else []
    for command in [*script, *map(_shortened, _run_on(page))]:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
