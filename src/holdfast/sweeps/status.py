"""How far a sweep is, seen from outside of the processes that compute it."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.execution.cells import Index
from holdfast.execution.files import LocalFiles
from holdfast.execution.grid import GridCells
from holdfast.execution.header import CHECKSUMS
from holdfast.execution.owner import owner
from holdfast.execution.zarr_format import chunk_name, chunk_position
from holdfast.sweeps.running import existing_results, results_path

# Seconds over which the rate is measured: the first ones in which two cells were finished.
RECENT = (60.0, 3600.0)
# Failures that are named for each reason.
MOST_NAMED = 3


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


def sweep_status(out: str | Path, *, verify: bool = False) -> SweepStatus:
    """How far a sweep is; nothing is written.

    Args:
        out: folder of the sweep, or its URL.
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
    cells = GridCells.open(existing_results(out))
    total = cells.asked.cells
    finished = total - sum(1 for _ in cells.missing(verify=verify))
    damaged = len(cells.damaged) if verify else None
    running = Counter(_process(cells, index) for index in cells.running())
    reasons: dict[str, list[Index]] = defaultdict(list)
    for index, reason in cells.failures().items():
        reasons[reason].append(index)
    reasons = dict(sorted(reasons.items(), key=lambda each: -len(each[1])))
    failures = {reason: len(indices) for reason, indices in reasons.items()}
    rate = _rate(cells)
    working = rate and (running or not isinstance(cells.files, LocalFiles))
    left = 0.0 if finished == total else (total - finished) / rate if working else None
    return SweepStatus(total, finished, damaged, dict(running), failures, failed_settings(out, reasons), rate, left)


def failed_settings(out: str | Path, failures: Mapping[str, Iterable[Index]]) -> dict[str, list[dict[str, Any]]]:
    """Settings and seeds of the first cells that failed, so that they can be tried by hand.

    Args:
        out: folder of the sweep, or its URL.
        failures: reason -> cells.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.running import sweep
        >>> folder = tempfile.mkdtemp()
        >>> _ = sweep({"dimension": 10, "steps": 10}, {"bias": [0.0, 1.0]}, seeds=4, out=folder)
        >>> failed_settings(folder, {"ValueError: no": [(1, 0)]})
        {'ValueError: no': [{'bias': 1.0, 'seeds': [0, 3]}]}
    """
    if not failures:
        return {}
    cells = GridCells.open(results_path(out))
    first, in_one = cells.identity.get("seed", 0), cells.identity.get("seeds")  # quantiles have all seeds in one cell
    found: dict[str, list[dict[str, Any]]] = {}
    for reason, indices in failures.items():
        named: list[dict[str, Any]] = []
        found[reason] = named
        for index in sorted(indices):
            block = range(in_one) if in_one else [seed for seed in cells.block(index).tolist() if seed < cells.seeds]
            settings, seeds = cells.settings(index), [first + block[0], first + block[-1]]
            if named and named[-1] == {**settings, "seeds": [named[-1]["seeds"][0], seeds[0] - 1]}:
                named[-1]["seeds"][1] = seeds[1]  # the next block of the same point
            elif len(named) < MOST_NAMED:
                named.append({**settings, "seeds": seeds})
            else:
                break
    return found


def describe_point(point: Mapping[str, Any]) -> str:
    """A point of `failed_settings` in words.

    Example:
        >>> describe_point({"bias": 1.0, "seeds": [0, 3]}), describe_point({"bias": 1.0, "seeds": [3, 3]})
        ('bias=1.0, seeds 0 to 3', 'bias=1.0, seed 3')
    """
    first, last = point["seeds"]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    return ", ".join([*(f"{name}={value}" for name, value in point.items() if name != "seeds"), seeds])


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
    for seconds in RECENT:
        recent = [at for at in times if at > now - seconds]
        if len(recent) > 1:  # since the first of them: before that, perhaps nobody was working
            return (len(recent) - 1) / max(now - min(recent), 1e-3)
    return 0.0
