"""A process that computes the cells of a small grid: `python grid_writer.py FOLDER LOG`, killed by tests.

It notes every computation in the log before it begins, so that tests can count them.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.store.cells import Lease
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.layout import Layout

LAYOUT = Layout.of({"step_size": [0.1, 0.3, 0.2], "batching": ["hetero", "pooled"]}, seeds=50, most_seeds=5)
IDENTITY = {"program": "test", "settings": {"steps": 30}}


def computed(settings, seeds):
    """Values of several types and shapes that depend on all that a cell is."""
    random = [np.random.default_rng([int(seed), round(10 * settings["step_size"])]) for seed in seeds]
    values = {f"path_{number}": np.array([each.normal(size=30) for each in random], np.float32) for number in range(4)}
    values["steps"] = np.array([each.integers(1000) for each in random], np.int32)
    values["outcome"] = np.array([f"{settings['batching']} {seed}" for seed in seeds])
    return CellResult(values, {f"path_{number}": ("step",) for number in range(4)}, {"step": np.arange(30)})


def main(folder: Path, log: Path, pause: float = 0.0) -> None:
    """Compute what is missing; cells that other processes compute are left to them."""
    cells = GridCells.at(folder, LAYOUT, identity=IDENTITY)
    with open(log, "ab", buffering=0) as file:
        for index in cells.missing():
            with cells.lease(index) as lease:
                if lease is Lease.TAKEN:
                    file.write(f"{os.getpid()} {index}\n".encode())
                    time.sleep(pause)
                    cells.save(index, computed(cells.settings(index), cells.block(index)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
