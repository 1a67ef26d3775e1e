"""How far a sweep is, seen from outside of the processes that compute it."""

import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.cell_result import CellResult
from holdfast.core.owner import owner
from holdfast.sweeps.cells import SweepCell, failed_settings
from holdfast.sweeps.results import notes_on, requested_cells
from holdfast.sweeps.store.files import LocalFiles
from holdfast.sweeps.store.store import Store, is_result

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
        notes: sentences for people, such as that cells were computed in different ways.

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
    notes: tuple[str, ...] = ()

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
    store, cells = requested_cells(folder)
    failures, missing = store.failures(), list(store.missing(cells, verify=False))
    damaged = sum(1 for _ in store.missing(cells)) - len(missing) if verify else None
    finished = len(cells) - len(missing) - (damaged or 0)
    running = Counter(map(_process, store.running()))
    reasons: dict[str, list[SweepCell]] = defaultdict(list)
    for cell in missing:
        if cell.name in failures:
            reasons[failures[cell.name]].append(cell.label)
    reasons = dict(sorted(reasons.items(), key=lambda each: -len(each[1])))
    numbers = {reason: len(failed) for reason, failed in reasons.items()}
    rate = _rate(store)
    working = rate and (running or not isinstance(store.files, LocalFiles))
    left = 0.0 if finished == len(cells) else (len(cells) - finished) / rate if working else None
    return SweepStatus(
        len(cells), finished, damaged, dict(running), numbers, failed_settings(cells.sweep, reasons), rate, left,
        notes_on(store, cells),
    )  # fmt: skip


def prune_sweep(folder: str | Path) -> int:
    """Delete the cells that other code computed than those of the last request; returns how many there were.

    Args:
        folder: of the sweep, or its URL.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10}, {"bias": [0.0, 1.0]}, seeds=2, out=folder)
        >>> prune_sweep(folder)
        0
    """
    store, cells = requested_cells(folder)
    return store.prune(cells.code)


def _process(content: str) -> str:
    """Which process computes a cell, human-readable."""
    machine, _, process = content.partition("-")
    here = machine == owner().partition("-")[0]
    return f"process {process} on {'this machine' if here else f'machine {machine}'}" if process else "unknown"


def _rate(store: Store[CellResult]) -> float:
    if not isinstance(store.files, LocalFiles):
        return 0.0
    results = [path for path in store.files.walk() if is_result(os.path.basename(path))]
    times = sorted((os.stat(f"{store.files}/{path}").st_mtime, os.path.basename(path)) for path in results)
    now = time.time()
    for seconds in RECENT:
        number = sum(at > now - seconds for at, _ in times)
        if number > 1:
            (first, name), before = times[-number], times[:-number]
            was_working = bool(before) and first - before[-1][0] < PAUSE
            saved = None if was_working else store.read(name)
            begin = before[-1][0] if was_working else first - (0.0 if saved is None else saved.seconds)
            return number / max(now - begin, 1e-3)
    return 0.0
