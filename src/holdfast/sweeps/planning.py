"""What a sweep will cost, before it runs: cells, runs, files, disk, and a measured estimate of the time."""

import math
import time
from typing import NamedTuple

from holdfast.core.names import Named
from holdfast.core.validation import require
from holdfast.core.worker import working
from holdfast.execution.grid import GridCells
from holdfast.execution.layout import Layout
from holdfast.sweeps.programs import program_of
from holdfast.sweeps.recording import QUANTILES, checked, reduced
from holdfast.sweeps.specification import Sweep

# Seeds that are computed together. A cell should take long against the files it writes, and be short enough that little
# is lost with it; an accelerator has to be filled.
SEEDS_ON_CPU, SEEDS_ON_ACCELERATOR = 64, 8192
MOST_BYTES = 2**40
# Steps of the two probes, whose difference is the time of a step.
PROBES = (10, 40)
# Next to its values, a run has an outcome (1 byte), a step of divergence, a checksum and a time (4 each).
BYTES_OF_A_RUN = 13
# Bytes that a file takes at least on most disks.
BLOCK = 4096
FILES_OF_A_CELL = 2  # of checksums and times, next to one for each variable


class Plan(NamedTuple):
    """The cost of a sweep.

    Attributes:
        points: of the design.
        runs: points times seeds.
        cells: that are computed and saved one by one.
        missing: those that are not in the folder yet; the remaining fields are about these.
        seeds_per_cell: runs of one cell.
        size: bytes of all values; None: not known before the first cell.
        files: in which they lie, a few for each cell; None: not known.
        seconds: of one worker, estimated; None: not known.
        compilation: seconds before the first cell, estimated; None: not known.

    Example:
        >>> plan = Plan(points=10, runs=640, cells=10, missing=10, seeds_per_cell=64, size=28_000, files=140)
        >>> plan.runs, plan.disk
        (640, 573440)
    """

    points: int
    runs: int
    cells: int
    missing: int
    seeds_per_cell: int
    size: int | None = None
    files: int | None = None
    seconds: float | None = None
    compilation: float | None = None

    @property
    def disk(self) -> int | None:
        """Bytes that most file systems give to these files, in whole blocks."""
        if self.size is None or not self.files:
            return self.size
        return self.files * math.ceil(self.size / self.files / BLOCK) * BLOCK


def layout_of(sweep: Sweep, platform: str) -> Layout:
    """The cells of a sweep; quantiles need all seeds of a point in one cell, which then counts as one seed.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> layout_of(specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}), "cpu").shape
        (2, 2)
    """
    if sweep.record == "quantiles":
        return Layout(sweep.axes, 1, 1)
    most = sweep.seeds_per_cell or (SEEDS_ON_CPU if platform == "cpu" else SEEDS_ON_ACCELERATOR)
    return Layout.of(sweep.axes, seeds=sweep.seeds, most_seeds=most)


def cells_together(sweep: Sweep, platform: str) -> int:
    """Cells that are computed in one call: on an accelerator as many as fill it, if the program can do that.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 64})
        >>> cells_together(sweep, "cpu"), cells_together(sweep, "gpu")
        (1, 128)
    """
    if platform == "cpu" or not program_of(sweep.program).together:
        return 1
    runs = sweep.seeds if sweep.record == "quantiles" else layout_of(sweep, platform).seeds_per_cell
    return max(1, SEEDS_ON_ACCELERATOR // runs)


def plan(sweep: Sweep, platform: str, cells: GridCells | None = None, *, probe: bool = True) -> Plan:
    """What a sweep costs; raises an error for one that no disk holds.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.
        cells: of the folder, in which some may be finished; None: a new one.
        probe: estimate the time, by running a few steps of one cell. Programs of the user's are not run.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> found = plan(specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}), "cpu", probe=False)
        >>> found.runs, found.cells, found.seeds_per_cell
        (200, 4, 50)
    """
    program_of(sweep.program).load()  # which must be there
    layout = layout_of(sweep, platform) if cells is None else cells.asked
    missing = layout.cells if cells is None else sum(1 for _ in cells.missing(verify=False))
    together = sweep.seeds if sweep.record == "quantiles" else layout.seeds_per_cell
    size = checked_size(sweep)
    size = None if size is None else size * missing // layout.cells
    found = Plan(sweep.points, sweep.runs, layout.cells, missing, together, size)
    if not (probe and missing and program_of(sweep.program).settings):
        return found
    files, seconds, compilation = _probe(sweep, together)
    return found._replace(files=missing * files, seconds=missing * seconds, compilation=compilation)


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
    if sweep.record == "quantiles":
        return sweep.points * (len(QUANTILES) * size + BYTES_OF_A_RUN)
    return sweep.runs * (size + BYTES_OF_A_RUN)


def _probe(sweep: Sweep, seeds: int) -> tuple[int, float, float]:
    """Files of one cell, its seconds on one worker, and those to compile it, from a few steps of the first one."""
    import numpy as np

    function, settings = program_of(sweep.program).load(), sweep.point((0,) * len(sweep.axes))
    numbers = sweep.seed + np.arange(seeds)

    def measured(steps: int) -> tuple[int, float]:
        begin = time.perf_counter()
        with working(threads=1):
            recorded = reduced(checked(function({**settings, "steps": steps}, numbers), seeds), sweep.record)
        return len(recorded.values) + FILES_OF_A_CELL, time.perf_counter() - begin

    few, more = (min(steps, settings["steps"]) for steps in PROBES)
    (_, first), (_, short), (files, long) = measured(few), measured(few), measured(more)
    further = max(settings["steps"] - more, 0) * max(long - short, 0.0) / max(more - few, 1)
    return files, long + further, max(first - short, 0.0)
