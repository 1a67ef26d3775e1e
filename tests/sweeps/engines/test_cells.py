"""Cells on real files, by every engine: the same bytes, whoever computes, dies or interrupts."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from holdfast.core import CellResult
from holdfast.sweeps.engines import DaskEngine, ProcessEngine, ThreadEngine
from holdfast.sweeps.store import CELLS, Cell, Store, compute
from holdfast.sweeps.store.naming import cell_name, settings_hash
from sweeps.store.cell_files import cell_files, contents, notes
from sweeps.store.waiting import wait_until

CELLS_OF_A_GRID = [
    Cell(cell_name(settings_hash({"scale": scale, "seeds": block}), "0" * 16), (scale, block))
    for scale in (0.1, 0.2, 0.3, 0.4)
    for block in range(3)
]


def _function(killed=None):
    # Defined inside, so that it is sent to other processes as it is: they cannot import the modules of tests.
    def function(label):
        import jax
        import jax.numpy as jnp
        import numpy as np

        from holdfast.core.run import Algorithm, Run, run

        if killed is not None and label == (0.3, 1) and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

        def build(shared, parameters):
            def step(key, state, number):
                return state @ (jnp.eye(8) + parameters * jax.random.normal(key, (8, 8)))

            return Run(Algorithm(lambda: jnp.eye(8), step), lambda state: {"state": state})

        scale, block = label
        seeds, scales = np.arange(4 * block, 4 * block + 4), np.full(4, scale, np.float32)
        return CellResult(
            {"final": run(build, None, scales, seeds, steps=10).values["state"][:, -1, 0]}, {"final": ["column"]}
        )

    return function


@pytest.mark.slow
def test_a_grid_has_the_same_bytes_on_every_engine_also_if_a_process_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    with ExitStack() as stack:
        local = stack.enter_context(
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, dashboard_address=":0", processes=False, protocol="tcp://",
                host="127.0.0.1",
            )
        )  # fmt: skip
        engines = {
            "one": ThreadEngine(1),
            "threads": ThreadEngine(2),
            "processes": ProcessEngine(2),
            "dask": DaskEngine(local.scheduler_address),
        }
        for name, engine in engines.items():
            store = Store(tmp_path / name, CELLS)
            killed = tmp_path / "killed" if name == "processes" else None
            outcome = compute(store, CELLS_OF_A_GRID, _function(killed), engine)
            # The receipt of a cell may be lost with its process, but not the cell.
            assert (outcome.computed + outcome.computed_elsewhere, outcome.failed) == (12, 0)
            assert outcome.computed_elsewhere <= (killed is not None)
            assert list(store.missing(CELLS_OF_A_GRID)) == []
    assert (tmp_path / "killed").exists()
    found = [contents(tmp_path / name) for name in engines]
    assert len(found[0]) == 12
    assert all(each == found[0] for each in found)


SCRIPT = """
import sys
import time
from pathlib import Path

import numpy as np

from holdfast.core.worker import StoppedError, current_worker
from holdfast.core import CellResult
from holdfast.sweeps.store import CELLS, Cell, Store, compute
from holdfast.sweeps.engines import EngineOptions


def function(number):
    for _ in range(20):
        time.sleep(0.01)
        if current_worker().stopped():
            raise StoppedError
    return CellResult({"value": np.full(1, float(number))})


if __name__ == "__main__":
    cells = [Cell(f"{number:032x}-0123456789abcdef", number) for number in range(40)]
    compute(Store(Path(sys.argv[1]), CELLS), cells, function, EngineOptions(**{sys.argv[2]: 2}).engine())
"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["workers", "processes"])
def test_ctrl_c_leaves_no_lease_and_the_same_command_goes_on(tmp_path, option):
    script, folder = tmp_path / "script.py", tmp_path / "cells"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(folder), option]
    # A group of its own, which gets the signal as a whole, as from a terminal.
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def finished():
        return {path.name: path.stat().st_mtime_ns for path in cell_files(folder)}

    wait_until(lambda: process.poll() is not None or len(finished()) >= 3, every=0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    before = finished()
    assert 3 <= len(before) < 40
    assert notes(folder, ".lease") == []
    assert notes(folder, ".failure") == []
    subprocess.run(command, check=True, timeout=60)
    after = finished()
    assert len(after) == 40
    assert before.items() <= after.items()  # nothing was computed twice
