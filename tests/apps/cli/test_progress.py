"""The bar of work that is done cell by cell."""

import io
import re
import sys

import pytest
from rich.console import Console

from holdfast.apps.cli.main import main
from holdfast.apps.cli.terminal.progress import saving_bar, work_bar
from holdfast.sweeps import run_sweep, specify
from holdfast.sweeps.engines import ThreadEngine

SPEC = """
program = "program_with_a_bar:ratio"

[sweep]
scale = [0, 1, 2, 3, 4]
seeds = 2
"""


@pytest.fixture
def screen(monkeypatch):
    """What is drawn on a terminal of 160 columns; without colours, but with the codes that erase a bar."""
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=160, no_color=True, legacy_windows=False)
    module = sys.modules[work_bar.__module__]  # the package has a function of its name
    monkeypatch.setattr(module, "Console", lambda **_: console)
    return drawn


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((11, 33, 0.0, None, {}), " 33% 11/33"),
        ((22, 33, 2.0, 5.5, {}), " 67% 22/33 2 cells/s, 5.5 s left"),
        ((33, 33, 0.125, 0.0, {}), "100% 33/33 0.125 cells/s, 0 s left"),
        (
            (30, 33, 2.0, 90.0, {"a.py:2: ValueError: [no]": 4, "MemoryError: 8 TiB": 1, "OSError: third": 1}),
            " 91% 30/33 2 cells/s, 1 min 30 s left, 4 failed: a.py:2: ValueError: [no], 1 failed: MemoryError: 8 TiB",
        ),
        ((3, None, 2.0, None, {}), "3/? 2 cells/s"),
    ],
)
def test_a_bar_has_counts_rate_time_left_and_the_first_failures(words, expected, screen):
    with work_bar("runs [1]/results.zarr") as report:
        report(*words)
    drawn = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", screen.getvalue())  # without the codes of the terminal
    last = [line for line in drawn.splitlines() if line][-1]
    assert "runs [1]/results.zarr" in last
    assert expected in last
    assert "third" not in last


def test_the_bar_of_a_sweep_counts_what_was_finished_and_what_failed(screen, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "program_with_a_bar.py").write_text(
        "def ratio(settings, seeds):\n    return {'ratio': [1 / settings['scale'] for seed in seeds]}\n"
    )
    chosen = specify({}, {"scale": [1, 2]}, seeds=2, program="program_with_a_bar:ratio")
    assert run_sweep(chosen, "runs", ThreadEngine(1)).computed == 2
    (tmp_path / "spec.toml").write_text(SPEC)
    assert main(["sweep", "spec.toml", "--out", "runs"]) == 1
    drawn = screen.getvalue()
    assert "100% 5/5" in drawn
    assert "1 failed: program_with_a_bar.py:2: ZeroDivisionError: division by zero" in drawn
    assert "0/3" not in drawn


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ([(3, 3, 0.0, None, {}), (3, 3, 0.0, None, {})], "is up to date; nothing to compute"),
        ([(2, 3, 0.0, None, {}), (3, 3, 1.0, 0.0, {})], "wrote"),
        ([(3, 3, 0.0, None, {}), (3, 3, 1.0, 0.0, {})], "wrote"),  # a damaged cell was computed again
    ],
)
def test_a_file_is_said_to_be_written_if_something_was_computed(reports, said, tmp_path, capsys):
    with saving_bar(tmp_path / "runs.zarr") as report:
        for words in reports:
            report(*words)
    assert said in capsys.readouterr().err
