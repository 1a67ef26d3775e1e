"""How far a sweep is: what runs while cells are computed, and how fast it is by the times of its files."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from holdfast.apps.cli.main import main
from holdfast.core import CellResult
from holdfast.sweeps import run_sweep, specify, sweep_status
from holdfast.sweeps.engines import ThreadEngine
from holdfast.sweeps.results import prepare, results_path
from sweeps.store.waiting import wait_until

PROGRAM = """
from sweeps.store.waiting import wait_until
from pathlib import Path


def waiting(settings, seeds):
    wait_until(Path(settings["folder"], f"go-{settings['number']}").exists, every=0.01)
    return {"waited": [True] * len(seeds)}
"""


def test_what_runs_is_seen_from_outside_with_its_rate_and_the_time_left(tmp_path, monkeypatch, capsys):
    """Of nine cells five are finished, two are computed by two threads, and two wait."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "program_that_waits.py").write_text(PROGRAM)
    axes = {"number": list(range(9))}
    chosen = specify({"folder": str(tmp_path)}, axes, seeds=2, program="program_that_waits:waiting")
    work = threading.Thread(target=run_sweep, args=(chosen, results_path(tmp_path / "runs"), ThreadEngine(2)))
    for number in range(5):
        (tmp_path / f"go-{number}").touch()
    begin = time.time()
    work.start()
    try:
        wait_until((tmp_path / "runs/cells/request").exists)
        wait_until(lambda: sweep_status(tmp_path / "runs").finished == 5)
        process = f"process {os.getpid()} on this machine"
        wait_until(lambda: sweep_status(tmp_path / "runs").running == {process: 2})
        status = sweep_status(tmp_path / "runs")
        # Five cells in the time since the first of them began, which is less than that since the command began.
        assert status.rate > 5 / (time.time() - begin)
        assert status.seconds_left == pytest.approx(4 / status.rate)
        assert main(["sweep-status", str(tmp_path / "runs")]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert f"finished 5 of 9 cells (55.6%) running 2 by {process} rate " in words
        assert "left failed 0" in words
    finally:
        for number in range(5, 9):
            (tmp_path / f"go-{number}").touch()
        work.join()
    status = sweep_status(tmp_path / "runs")
    assert (status.finished, status.running, status.seconds_left) == (9, {}, 0.0)


@pytest.mark.parametrize(
    ("ages", "seconds", "rate"),
    [
        ([], 2.0, 0.0),
        ([5.0], 2.0, 0.0),  # one cell has no rate
        ([10.0, 8.0, 6.0, 4.0, 2.0], 2.0, 5 / 12),
        ([70.0, 65.0, 50.0, 40.0], 10.0, 2 / 65),
        ([4000.0, 3990.0, 3980.0, 10.0, 5.0], 5.0, 2 / 15),  # nobody worked for an hour
        ([1800.0, 1200.0, 600.0, 30.0], 600.0, 4 / 2400),  # long cells
        ([71.0, 71.0, 71.0, 1.0, 1.0, 1.0], 70.0, 3 / 71),  # three workers in step
        ([171.0, 171.0, 171.0, 1.0, 1.0, 1.0], 170.0, 3 / 171),
    ],
)
def test_the_rate_is_that_of_the_last_minutes_without_pauses(ages, seconds, rate, tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr("holdfast.sweeps.status.time.time", lambda: now)
    store, cells = prepare(specify({"dimension": 6}, {"bias": [*range(9)]}, seeds=2), results_path(tmp_path))
    *some, last = cells
    for cell, age in zip(some, ages, strict=False):
        store.save(cell.name, CellResult({"value": np.zeros(2)}), seconds)
        os.utime(Path(store.folder, store.path(cell.name)), (now - age, now - age))
    status = sweep_status(tmp_path)
    assert (status.rate, status.running, status.seconds_left) == (pytest.approx(rate), {}, None)
    with store.lease(last.name):  # time is left only while someone works
        left = sweep_status(tmp_path).seconds_left
    assert left == (pytest.approx((9 - len(ages)) / rate) if rate else None)
