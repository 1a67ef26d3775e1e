"""What a sweep costs beside its computation: the store, the start, and a second worker."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.engines.dask import ProcessEngine
from holdfast.sweeps.engines.local import DEPTH, Engine, ThreadEngine
from holdfast.sweeps.results import open_sweep
from holdfast.sweeps.running import run_sweep
from holdfast.sweeps.specification import specify
from holdfast_studies.benchmarks.timing import once

# As many variables as a run of matrix sensing has.
VARIABLES = 12
LONG = 1.0  # processor seconds of a long cell

GRID = """
step_size = {{ start = 0.01, stop = 0.5, count = {side} }}
heterogeneity = {{ start = 0.0, stop = 12.0, count = {side} }}
"""
RANDOM = """
design = "random"
count = {count}
step_size = {{ low = 0.01, high = 0.5, scale = "log" }}
heterogeneity = {{ low = 0.0, high = 12.0 }}
"""
# A command up to its first cell: imports, checks of all settings, metadata, and the list of what is missing.
START = """
import sys
from holdfast.sweeps.results import prepare
from holdfast.sweeps.specification import read_sweep
store, cells = prepare(read_sweep(sys.argv[1]), sys.argv[2])
next(store.missing(cells))
"""


def small(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """The program of a cell that takes no time."""
    return CellResult({f"value_{number}": (seeds * settings["x"]).astype(np.float32) for number in range(VARIABLES)})


def long(settings: Mapping[str, Any], seeds: np.ndarray) -> CellResult:
    """The program of a cell that takes `LONG` seconds of its processor, and says how many it took."""
    begin, number = time.thread_time(), np.ones(100_000)
    while time.thread_time() - begin < LONG:
        number = np.sqrt(number + settings["x"])
    recorded = small(settings, seeds)
    used = np.full(len(seeds), (time.thread_time() - begin) / len(seeds))
    return CellResult({**recorded.values, "processor_seconds": used})


def store_of_small_cells(quick: bool) -> dict[str, dict[str, float]]:
    """Processor milliseconds of a cell beside its computation: lease, engine, files, checksum; and to verify it.

    For two numbers of cells, because a cell must not cost more where there are many. 100,000 of them take 6 GB on a
    file system with blocks of 4 kB. Nothing is deleted before the end: for some minutes ext4 gives the inodes of
    deleted files to no others, and to search past many of them can take longer than all the rest.
    """
    with tempfile.TemporaryDirectory() as folder:
        numbers = (100, 400) if quick else (10_000, 100_000)
        return {f"{cells:,} cells": _small_cells(cells, Path(folder) / f"{cells}.zarr") for cells in numbers}


def _small_cells(count: int, path: Path) -> dict[str, float]:
    axes = {"x": list(range(count // 100)), "y": list(range(100))}
    cells = specify({}, axes, seeds=8, program=small)

    def sweep() -> None:
        run_sweep(cells, path, ThreadEngine(2))

    def compute() -> None:
        for number in range(count):
            small({"x": number % 100}, np.arange(8))

    whole, again, computation = (once(work, time.process_time) for work in (sweep, sweep, compute))
    return {
        "cpu_ms_per_cell": 1e3 * (whole - computation) / count,
        "cpu_ms_per_cell_to_verify": 1e3 * again / count,
    }


def store_of_long_cells(quick: bool) -> dict[str, float]:
    """Share of the processor time that goes to all but the computation, for cells of a second."""
    chosen = specify({}, {"x": list(range(4 if quick else 30))}, seeds=64, program=long)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        outcome = run_sweep(chosen, Path(folder) / "results.zarr", ThreadEngine(2))
        whole = time.process_time() - begin
        used = float(open_sweep(Path(folder) / "results.zarr")["processor_seconds"].sum())
    return {"cells": outcome.computed, "cpu_seconds_per_cell": used / outcome.computed, "share": 1 - used / whole}


def start(quick: bool) -> dict[str, dict[str, float]]:
    """Processor seconds of a command until its first cell can begin, for designs of a million runs."""
    side = 200 if quick else 1000
    coarse = side // 8
    designs = {
        "64 runs a cell": (coarse**2, 64, GRID.format(side=coarse)),
        "1 run a cell": (side**2, 1, GRID.format(side=side)),
        "random points": (side**2, 1, RANDOM.format(count=side**2)),
        "with text": (side**2, 1, RANDOM.format(count=side**2) + 'order = ["independent", "reshuffled", "cyclic"]\n'),
    }
    found = {}
    for name, (cells, seeds, axes) in designs.items():
        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "spec.toml"
            spec.write_text(f"[sweep]\nseeds = {seeds}\n{axes}")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", START, str(spec), f"{folder}/results.zarr"], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found[name] = {"runs": cells * seeds, "cells": cells, "cpu_seconds": seconds}
    return found


def two_processes(quick: bool) -> dict[str, float]:
    """Cells a second of two processes against one, each held to a core, while all of them have work."""
    cells, steps = (12, 40) if quick else (40, 400)
    rates = {count: _rate(ProcessEngine(count), cells, steps, count) for count in (1, 2)}
    return {"one": rates[1], "two": rates[2], "two_over_one": rates[2] / rates[1]}


def _rate(engine: Engine, cells: int, steps: int, workers: int) -> float:
    """Cells a second, while every worker is busy.

    That is from the moment when each has finished one, so that it has compiled, to the moment when the last ones are
    handed out: these are bound to their worker, and another one may run out of work before.
    """
    axes = {"heterogeneity": {"start": 1.0, "stop": 9.0, "count": cells}}
    chosen = specify({"dimension": 60, "steps": steps}, axes, seeds=64)
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(chosen, Path(folder) / "results.zarr", engine)
        paths = (Path(folder) / "cells").glob("??/*")
        finished = sorted(path.stat().st_mtime for path in paths)
    first, last = DEPTH * workers - 1, cells - 1 - DEPTH * workers
    return (last - first) / (finished[last] - finished[first])
