"""How far a sweep is, seen from outside of the processes that compute it."""

import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.owner import owner
from holdfast.sweeps.failures import failed_settings
from holdfast.sweeps.results import existing_results
from holdfast.sweeps.store.cells import LEASE_SUFFIX, Index
from holdfast.sweeps.store.files import LocalFiles
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.header import CHECKSUMS, SECONDS
from holdfast.sweeps.store.zarr_format import chunk_name, chunk_position

# Seconds over which the rate is measured: the first ones in which two cells were finished.
RECENT = (60.0, 3600.0)
# Seconds without a finished cell after which nobody was working, as far as one can tell.
PAUSE = 120.0


class SweepStatus(NamedTuple):
    """How far a sweep is.

    Attributes:
        cells: of the whole sweep.
        finished: number of them.
        damaged: cells that were finished, but whose files do not fit their checksums; None: not verified.
        running: process -> number of cells that it computes now; empty on object stores, which have no leases.
        failures: reason -> number of cells, which the next command tries again.
        failed: reason -> settings and seeds (the first and the last) of the first of these cells.
        rate: cells finished a second, over the last minute, or over the last hour if they take long; 0: not known.
        seconds_left: at this rate; None: not known, or no process is running.

    Example:
        >>> SweepStatus(
        ...     cells=10, finished=4, damaged=None, running={}, failures={}, failed={}, rate=2.0, seconds_left=3.0
        ... ).share
        0.4
    """

    cells: int
    finished: int
    damaged: int | None
    running: dict[str, int]
    failures: dict[str, int]
    failed: dict[str, list[dict[str, Any]]]
    rate: float
    seconds_left: float | None

    @property
    def share(self) -> float:
        """Of the cells that are finished."""
        return self.finished / self.cells

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return self._asdict()


def sweep_status(folder: str | Path, *, verify: bool = False) -> SweepStatus:
    """How far a sweep is; nothing is written.

    Args:
        folder: of the sweep, or its URL.
        verify: read all values too, and do not count cells as finished that are damaged.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> status = sweep_status(folder)
        >>> status.finished, status.cells, status.failures
        (2, 2, {})
    """
    cells = GridCells.open(existing_results(folder))
    total = cells.requested.cells
    finished = total - sum(1 for _ in cells.missing(verify=verify))
    damaged = len(cells.damaged) if verify else None
    positions = (index for index in cells.running() if isinstance(index, tuple))  # as those of a grid all are
    running = Counter(_process(cells, position) for position in positions)
    reasons: dict[str, list[Index]] = defaultdict(list)
    for index, reason in cells.failures().items():
        reasons[reason].append(index)
    reasons = dict(sorted(reasons.items(), key=lambda each: -len(each[1])))
    failures = {reason: len(indices) for reason, indices in reasons.items()}
    rate = _rate(cells)
    working = rate and (running or not isinstance(cells.files, LocalFiles))
    left = 0.0 if finished == total else (total - finished) / rate if working else None
    return SweepStatus(total, finished, damaged, dict(running), failures, failed_settings(cells, reasons), rate, left)


def _process(cells: GridCells, position: tuple[int, ...]) -> str:
    """Which process computes a cell, human-readable."""
    content = cells.files.read(chunk_name(CHECKSUMS, position) + LEASE_SUFFIX)
    machine, _, process = (content or b"-").decode(errors="replace").partition("-")
    here = machine == owner().partition("-")[0]
    return f"process {process} on {'this machine' if here else f'machine {machine}'}" if process else "unknown"


def _rate(cells: GridCells) -> float:
    if not isinstance(cells.files, LocalFiles):
        return 0.0
    try:
        with os.scandir(f"{cells.files.root}/{CHECKSUMS}") as entries:
            times = sorted((entry.stat().st_mtime, entry.name) for entry in entries if chunk_position(entry.name))
    except FileNotFoundError:  # someone deleted it, and with it all that says what is finished
        return 0.0
    now = time.time()
    for seconds in RECENT:
        number = sum(at > now - seconds for at, _ in times)
        if number > 1:
            (first, name), before = times[-number], times[:-number]
            was_working = bool(before) and first - before[-1][0] < PAUSE
            begin = before[-1][0] if was_working else first - _seconds(cells, name)
            return number / max(now - begin, 1e-3)
    return 0.0


def _seconds(cells: GridCells, name: str) -> float:
    """The computing time of a cell, by the name of its chunks."""
    content = cells.files.read(f"{SECONDS}/{name}")
    shares = np.frombuffer(content or b"", "<f4")  # one for each seed
    return float(np.nan_to_num(shares).sum())
