"""Processes that write to one grid, are killed, and share the work."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from holdfast.sweeps.store import GridCells, open_grid
from sweeps.store import grid_writer
from sweeps.store.grid_files import contents
from sweeps.store.waiting import wait_until

CELLS = grid_writer.LAYOUT.cells


def start(folder, log, pause=0.0):
    command = [sys.executable, "-W", "error", grid_writer.__file__, str(folder), str(log), str(pause)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def finish(process):
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def computations(log):
    return log.read_text().splitlines() if log.exists() else []


def begun(process, log, number):
    """Whether so many computations have begun, or the process has ended."""
    return len(computations(log)) >= number or process.poll() is not None


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    grid_writer.main(folder / "results.zarr", folder / "log")
    assert len(computations(folder / "log")) == CELLS
    return contents(folder / "results.zarr")


def kill_and_resume(folder: Path, kills: int, seed: int) -> int:
    """Kill a writer at random moments, read the grid each time, let the last writer finish; returns the kills."""
    source, log, results = random.Random(seed), folder / "log", folder / "results.zarr"
    killed = 0
    for kill in range(kills):
        process = start(results, log)
        # moments spread over the whole work: in the middle of the cell that comes then, or in what follows
        target = CELLS * kill // kills + source.randrange(2)
        wait_until(partial(begun, process, log, target), every=1e-4)
        time.sleep(source.uniform(0, 0.002))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        if (results / "zarr.json").exists():
            assert not open_grid(results)["finished"].values.all() or len(computations(log)) >= CELLS
    finish(start(results, log))
    return killed


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_random_moments_the_result_is_the_same_to_the_last_bit(tmp_path, undisturbed, kills):
    killed = kill_and_resume(tmp_path, kills, seed=kills)
    assert killed >= kills - 1  # the last one may have been finished just before
    assert contents(tmp_path / "results.zarr") == undisturbed
    done = Counter(line.partition(" ")[2] for line in computations(tmp_path / "log"))
    assert len(done) == CELLS
    # a process computes one cell at a time, so each kill costs one cell at most
    assert done.total() - CELLS <= killed


def test_two_processes_share_the_work_and_compute_nothing_twice(tmp_path, undisturbed):
    log, results = tmp_path / "log", tmp_path / "results.zarr"
    processes = [start(results, log, 0.005) for _ in range(2)]
    for process in processes:
        finish(process)
    assert contents(results) == undisturbed
    lines = computations(log)
    assert len(lines) == len({line.partition(" ")[2] for line in lines}) == CELLS
    assert len({line.partition(" ")[0] for line in lines}) == 2


def test_a_process_that_is_killed_loses_its_lease_to_the_next_one(tmp_path):
    log, results = tmp_path / "log", tmp_path / "results.zarr"
    process = start(results, log, 60.0)
    wait_until(lambda: computations(log), every=0.01)
    cells = GridCells.open(results)
    (index,) = cells.running()
    with cells.lease(index) as lease:
        assert lease.value == "busy"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert cells.running() == []
    with cells.lease(index) as lease:
        assert lease.value == "taken"
