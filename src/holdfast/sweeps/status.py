"""How far a sweep is, seen from outside of the processes that compute it."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.execution.files import LocalFiles
from holdfast.execution.grid import GridCells
from holdfast.execution.header import CHECKSUMS
from holdfast.execution.owner import owner
from holdfast.execution.zarr_format import chunk_name, chunk_position
from holdfast.sweeps.running import results_path

# Seconds over which the rate is measured.
RECENT = 60.0


class SweepStatus(NamedTuple):
    """How far a sweep is.

    Attributes:
        cells: of the whole sweep.
        finished: number of them.
        running: process -> number of cells that it computes now; empty on object stores, which have no leases.
        failures: reason -> number of cells, which the next command tries again.
        rate: cells finished a second, over the last minute; 0 if there are none, or it is not known.
        seconds_left: at this rate; None: not known, or no process is running.

    Example:
        >>> SweepStatus(cells=10, finished=4, running={}, failures={}, rate=2.0, seconds_left=3.0).share
        0.4
    """

    cells: int
    finished: int
    running: dict[str, int]
    failures: dict[str, int]
    rate: float
    seconds_left: float | None

    @property
    def share(self) -> float:
        """Of the cells that are finished."""
        return self.finished / self.cells

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return self._asdict()


def sweep_status(out: str | Path) -> SweepStatus:
    """How far a sweep is; nothing is written.

    Args:
        out: folder of the sweep, or its URL.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> status = sweep_status(folder)
        >>> status.finished, status.cells, status.failures
        (2, 2, {})
    """
    cells = GridCells.open(results_path(out))
    total = cells.asked.cells
    finished = total - sum(1 for _ in cells.missing(verify=False))
    running = Counter(_process(cells, index) for index in cells.running())
    failures = Counter(cells.failures().values())
    rate = _rate(cells)
    working = rate and (running or not isinstance(cells.files, LocalFiles))
    left = 0.0 if finished == total else (total - finished) / rate if working else None
    return SweepStatus(total, finished, dict(running), dict(failures.most_common()), rate, left)


def _process(cells: GridCells, index: Any) -> str:
    """Who computes a cell, as people know it."""
    content = cells.files.read(f"{chunk_name(CHECKSUMS, index)}.lease")
    machine, _, process = (content or b"-").decode(errors="replace").partition("-")
    here = machine == owner().partition("-")[0]
    return f"process {process} on {'this machine' if here else f'machine {machine}'}" if process else "unknown"


def _rate(cells: GridCells) -> float:
    if not isinstance(cells.files, LocalFiles):
        return 0.0
    now, times = time.time(), []
    with os.scandir(f"{cells.files.root}/{CHECKSUMS}") as entries:
        for entry in entries:
            if chunk_position(entry.name):
                times.append(entry.stat().st_mtime)
    recent = [at for at in times if at > now - RECENT]
    return len(recent) / max(now - max(min(times), now - RECENT), 1e-3) if recent else 0.0
