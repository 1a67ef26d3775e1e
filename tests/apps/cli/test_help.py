"""Help texts: they fit a terminal, say what they mean, and their examples run."""

import inspect
import re
import shlex
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from holdfast.apps.cli.main import CLOSING, COMMANDS, _parse, main

EXAMPLE = re.compile(r"^ +(holdfast .*)$", re.MULTILINE)
# Examples that take seconds, and those that are not run but whose options are checked: they serve a page until they are
# stopped, need a cluster, or take minutes to hours.
LONGER = re.compile(
    r"holdfast (simulate|window|sweep|jumps --algorithm|phase time|fit .*held-out"
    r"|advise \w+\.npz|reproduce figure|doctor)"
)
ENDLESS = re.compile(r"holdfast (lab|compare --(quick|recompute)|reproduce --out|phase step_size|bench|jumps --seeds)")
SPEC = """
[settings]
dimension = 20
steps = 20

[sweep]
step_size = [0.02, 0.05]
heterogeneity = { start = 1.0, stop = 9.0, count = 3 }
seeds = 4
"""


def _help(command, capsys):
    try:
        code = main([*command.split(), "--help"])
    except SystemExit as stop:
        code = stop.code
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_for_people_with_terminals_of_80_columns(command, capsys, monkeypatch):
    """It fits, has examples, no {None}|INT, no empty default, and no line that is broken where the source is."""
    monkeypatch.setenv("COLUMNS", "80")
    printed = _help(command, capsys)
    assert max(map(len, printed.splitlines())) <= 80
    assert "\n\n\n" not in printed
    assert ("[settings]\n    dimension = 20\n\n    [sweep]" in printed) == (command == "sweep")
    assert "\n\n    holdfast " in printed
    assert not re.search(r"\{None|None\}|\(default: ?(None|False|)\)|\[\w+ \[", printed)
    inside = [line[1:-1].strip() for line in printed.splitlines() if line.startswith("│")]
    alone = [line for line, following in pairwise(inside) if re.fullmatch(r"[a-z]+", line) and following[:1].islower()]
    assert alone == []


def test_every_command_is_in_the_overview(capsys):
    printed = _help("", capsys)
    assert [name for name in COMMANDS if not re.search(rf"^│ {name} ", printed, re.MULTILINE)] == []


def _examples():
    """The examples of all help texts, in an order in which one finds what another has written."""
    texts = [inspect.getdoc(command.arguments) or "" for command in COMMANDS.values()]
    found = [each for text in [*texts, CLOSING] for each in EXAMPLE.findall(text) if ">" not in each]
    return list(dict.fromkeys(found))


def test_options_of_examples_exist():
    for example in _examples():
        _, name, *words = shlex.split(example)
        _parse([name, *words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples read: a table, new rows of it, its parts, measurements of matrices, a specification."""
    path, generator = tmp_path_factory.mktemp("examples"), np.random.default_rng(0)
    rows = pd.DataFrame(generator.standard_normal((600, 2)), columns=["age", "school"])
    rows["region"], rows["urban"] = np.repeat(["north", "south", "west"], 200), np.tile(["yes", "no"], 300)
    rows["wage"] = rows["age"] + generator.standard_normal(600)
    rows.to_csv(path / "wages.csv", index=False)
    rows.drop(columns="wage").to_csv(path / "new.csv", index=False)
    (path / "data").mkdir()
    for number in range(2):
        rows[number::2].to_parquet(path / "data" / f"{number}.parquet")
    shape = (2000, 4, 4)
    matrices, environment = generator.standard_normal(shape), np.repeat([0, 1], 1000)
    signals = np.array([np.diag([1.0, strength, 0.0, 0.0]) for strength in (-5.0, 7.0)])
    labels = np.einsum("nij,nij->n", matrices, signals[environment])
    np.savez(path / "measurements.npz", X=matrices, y=labels, environment=environment)
    (path / "spec.toml").write_text(SPEC)
    return path


def _run(examples, folder, monkeypatch):
    """Run them one after the other: some read what others write."""
    monkeypatch.chdir(folder)
    assert [each for each in examples if main(shlex.split(each)[1:]) != 0] == []


def test_cheap_examples_run(folder, monkeypatch):
    _run([each for each in _examples() if not LONGER.match(each) and not ENDLESS.match(each)], folder, monkeypatch)


@pytest.mark.slow
def test_examples_that_take_longer_run(folder, monkeypatch):
    _run([each for each in _examples() if LONGER.match(each)], folder, monkeypatch)
