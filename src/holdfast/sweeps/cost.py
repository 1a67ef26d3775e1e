"""What a sweep will cost, before it runs: cells, runs, files, disk, and an estimate of the time from short probes."""

import math
import random
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.names import Named
from holdfast.core.validation import require
from holdfast.sweeps.blocks import layout_of, runs_of_a_cell
from holdfast.sweeps.programs import program_of
from holdfast.sweeps.recording import values_of_a_record
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.layout import Layout
from holdfast.sweeps.timing import time_cells

MOST_BYTES = 2**40
# Next to its values, a run has an outcome (1 byte), a step of divergence, a checksum and a time (4 each).
BYTES_OF_A_RUN = 13
# Bytes that a file takes at least on most disks.
BLOCK = 4096
# Of more cells than this, a sample tells how often each kind occurs.
MOST_TIMED = 10_000
FILES_OF_A_CELL = 2  # of checksums and times, next to one for each variable


class SweepEstimate(NamedTuple):
    """The cost of a sweep.

    Attributes:
        points: of the design.
        runs: points times seeds.
        cells: that are computed and saved one by one.
        missing: those that are not in the folder yet; the remaining fields are about these.
        runs_per_cell: seeds of a point that a cell computes.
        size: bytes of all values; None: not known before the first cell.
        files: in which they lie, a few for each cell; None: not known.
        seconds: of one worker; None: not known.
        compilation: seconds in which one worker compiles the programs of all cells; None: not known.
        probed_cells: that were run for a few steps to estimate these seconds.
        probed_steps: of each of them.

    Example:
        >>> found = SweepEstimate(points=10, runs=640, cells=10, missing=10, runs_per_cell=64, size=28_000, files=140)
        >>> found.runs, found.disk
        (640, 573440)
    """

    points: int
    runs: int
    cells: int
    missing: int
    runs_per_cell: int
    size: int | None = None
    files: int | None = None
    seconds: float | None = None
    compilation: float | None = None
    probed_cells: int = 0
    probed_steps: int = 0

    @property
    def disk(self) -> int | None:
        """Bytes that most file systems give to these files, in whole blocks."""
        if self.size is None or not self.files:
            return self.size
        return self.files * math.ceil(self.size / self.files / BLOCK) * BLOCK

    def wall_seconds(self, workers: int) -> float | None:
        """From the first cell to the last with a number of workers; None: not known.

        Each takes its share of the cells, which are whole. The programs are compiled once in all by threads, one after
        the other where their cells follow each other, and once by each process.

        Example:
            >>> found = SweepEstimate(3, 48, cells=3, missing=3, runs_per_cell=16, seconds=30.0, compilation=1.0)
            >>> [found.wall_seconds(workers) for workers in (1, 2, 4)]
            [31.0, 21.0, 11.0]
        """
        if self.seconds is None or self.compilation is None:
            return None
        rounds = math.ceil(self.missing / workers)
        return self.seconds * rounds / max(self.missing, 1) + self.compilation


def estimate_sweep(
    sweep: Sweep, cells: GridCells | None = None, *, platform: str | None = None, probe: bool = True
) -> SweepEstimate:
    """What a sweep costs; raises an error for one that no disk holds.

    Args:
        sweep: what is swept.
        cells: of the folder, in which some may be finished; None: a new one.
        platform: of jax, where it will run; by default the one that jax has here.
        probe: estimate the time, by running a few steps of one cell of each kind. User functions are not run.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> found = estimate_sweep(specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}), probe=False)
        >>> found.runs, found.cells, found.runs_per_cell
        (200, 4, 50)
    """
    program = program_of(sweep.program)
    program.load()  # which must be there
    layout = layout_of(sweep, platform or _backend()) if cells is None else cells.requested
    missing = layout.cells if cells is None else sum(1 for _ in cells.missing(verify=False))
    size = checked_size(sweep)
    size = None if size is None else size * missing // layout.cells
    runs = runs_of_a_cell(sweep, layout)
    found = SweepEstimate(sweep.points, sweep.runs, layout.cells, missing, runs, size)
    if not (probe and missing and program.timing):
        return found
    wanted = range(layout.cells) if cells is None else list(cells.missing(verify=False))
    some = random.Random(0).sample(wanted, min(missing, MOST_TIMED))
    times = time_cells(sweep, [_settings(sweep, layout, cells, each) for each in some], runs)
    return found._replace(
        files=missing * (times.variables + FILES_OF_A_CELL),
        seconds=times.seconds * missing / len(some),
        compilation=times.compilation,
        probed_cells=times.probed_cells,
        probed_steps=times.probed_steps,
    )


def _settings(sweep: Sweep, layout: Layout, cells: GridCells | None, cell: Any) -> dict[str, Any]:
    """Of a cell: one that is missing in a folder, or by its number in a layout."""
    if cells is None:
        return sweep.point(tuple(map(int, np.unravel_index(cell, layout.shape)))[:-1])
    return {**sweep.settings, **cells.settings(cell)}


def checked_size(sweep: Sweep) -> int | None:
    """Bytes of the result, to a few per cent; None for a program that is not ours.

    Raises:
        ValueError: if no disk holds them.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> checked_size(specify({"dimension": 20}, {"bias": [0.0, 1.0]}, seeds=100))
        10600
    """
    size = _size(sweep)
    contract = f"the result must take at most {MOST_BYTES / 2**40:.0f} TiB"
    require(size is None or size <= MOST_BYTES, contract, f"{(size or 0) / 2**40:,.1f} TiB")
    return size


def _size(sweep: Sweep) -> int | None:
    program, settings = program_of(sweep.program), sweep.point((0,) * len(sweep.axes))
    if not (program.record_bytes and program.timing):
        return None
    steps, every = (settings[name] for name in program.timing)
    records = 1 if sweep.record == "final" else math.ceil(steps / every) + 1
    size = records * Named(program.record_bytes, "").load()(settings)
    runs, values = values_of_a_record(sweep.record, sweep.seeds)
    return sweep.points * runs * (values * size + BYTES_OF_A_RUN)


def _backend() -> str:
    import jax

    return jax.default_backend()
