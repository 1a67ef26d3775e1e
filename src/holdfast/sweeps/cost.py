"""What a sweep will cost, before it runs: cells, runs, disk, and an estimate of the time from short probes."""

import math
import random
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.names import Named
from holdfast.core.validation import require
from holdfast.core.worker import working
from holdfast.sweeps.cells import SweepCells, runs_of_a_cell
from holdfast.sweeps.programs import QUANTILES, checked, merges_seeds, program_of, reduced
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.store import Store

MOST_BYTES = 2**40
# Next to its values, a run has an outcome (1 byte) and a step of divergence (4); a cell has a head.
BYTES_OF_A_RUN, BYTES_OF_A_HEAD = 5, 1500
# Bytes that a file takes at least on most disks.
BLOCK = 4096
# Steps of the two parts of a probe, whose difference is the time of a step.
STEPS_OF_A_PROBE = (10, 40)
# At most this many kinds of cells are probed; the times of others are interpolated.
MOST_PROBES = 6
# Of more cells than this, a sample tells how often each kind occurs.
MOST_TIMED = 10_000


class SweepEstimate(NamedTuple):
    """The cost of a sweep.

    Attributes:
        points: of the design.
        runs: points times seeds.
        cells: that are computed and saved one by one.
        missing: those that are not in the folder yet; the remaining fields are about these.
        runs_per_cell: seeds of a point that a cell computes.
        size: bytes of all cells; None: not known before the first cell.
        seconds: of one worker; None: not known.
        compilation: seconds in which one worker compiles the programs of all cells; None: not known.
        probed_cells: that were run for a few steps to estimate these seconds.
        probed_steps: of each of them.

    Example:
        >>> found = SweepEstimate(points=10, runs=640, cells=10, missing=140, runs_per_cell=64, size=28_000)
        >>> found.runs, found.disk
        (640, 573440)
    """

    points: int
    runs: int
    cells: int
    missing: int
    runs_per_cell: int
    size: int | None = None
    seconds: float | None = None
    compilation: float | None = None
    probed_cells: int = 0
    probed_steps: int = 0

    @property
    def disk(self) -> int | None:
        """Bytes that most file systems give to their files, one for each cell, in whole blocks."""
        if self.size is None or not self.missing:
            return self.size
        return self.missing * math.ceil(self.size / self.missing / BLOCK) * BLOCK

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
    sweep: Sweep,
    planned: tuple[Store[Any], SweepCells] | None = None,
    *,
    platform: str | None = None,
    probe: bool = True,
) -> SweepEstimate:
    """What a sweep costs; raises an error for one that no disk holds.

    Args:
        sweep: what is swept.
        planned: what `holdfast.sweeps.results.planned` finds in a folder, in which some cells may be finished; None: a
            new folder.
        platform: of jax, where it will run; by default the one that jax has here.
        probe: estimate the time, by running a few steps of one cell of each kind. User functions are not run.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> found = estimate_sweep(specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}), probe=False)
        >>> found.runs, found.cells, found.runs_per_cell
        (200, 4, 50)
    """
    import jax

    program = program_of(sweep.program)
    program.load()  # which must be there
    if planned is None:
        cells = SweepCells(sweep, runs_of_a_cell(sweep, platform or jax.default_backend()))
        labels, missing = None, len(cells)
    else:
        store, cells = planned
        labels = [cell.label for cell in store.missing(cells, verify=False)]
        missing = len(labels)
    size = checked_size(sweep)
    size = None if size is None else size * missing // len(cells) + missing * BYTES_OF_A_HEAD
    found = SweepEstimate(sweep.points, sweep.runs, len(cells), missing, cells.runs, size)
    if not (probe and missing and program.timing):
        return found
    several = range(sweep.points) if labels is None else labels
    some = random.Random(0).sample(several, min(len(several), MOST_TIMED))
    if labels is None:  # points are made where they are needed
        sizes = [axis.size for axis in sweep.axes]
        return _timed(found, sweep, [sweep.point(np.unravel_index(each, sizes)) for each in some])
    return _timed(found, sweep, [{**sweep.settings, **each.point} for each in some])


def _timed(found: SweepEstimate, sweep: Sweep, points: Collection[Mapping[str, Any]]) -> SweepEstimate:
    """An estimate with the time of its missing cells, by probes of those at some points, or at all.

    Cells are of one kind if they differ neither in whole numbers, other than steps and seeds, nor in texts or truth
    values: these decide the time of a step. Kinds are put in the order of their settings, so the estimate does not
    depend on the order of the values of an axis.
    """
    program = program_of(sweep.program)
    steps_name, function = program.timing[0], program.load()
    whole = {name for name in program.whole() if not name.endswith("seed")} - {steps_name}
    few, more = (min(steps, max(point[steps_name] for point in points)) for steps in STEPS_OF_A_PROBE)
    kinds: dict[tuple, list[Mapping[str, Any]]] = defaultdict(list)
    for point in points:
        kinds[tuple(v for name, v in point.items() if name in whole or isinstance(v, bool | str))].append(point)
    ordered = [kinds[key] for key in sorted(kinds)]

    def seconds(kind: int, steps: int) -> float:
        begin, seeds = time.perf_counter(), sweep.seed + np.arange(found.runs_per_cell)
        with working(threads=1):
            reduced(checked(function({**ordered[kind][0], steps_name: steps}, seeds), len(seeds)), sweep.record)
        return time.perf_counter() - begin

    probed = np.unique(np.linspace(0, len(ordered) - 1, MOST_PROBES).round().astype(int))
    first, short, long = np.array([[seconds(kind, steps) for steps in (few, few, more)] for kind in probed]).T
    step, compilation = np.maximum(long - short, 0.0) / max(more - few, 1), np.maximum(first - short, 0.0)
    step, start, compilation = (
        np.interp(range(len(ordered)), probed, each) for each in (step, long - more * step, compilation)
    )
    numbers, steps = np.array([(len(kind), sum(point[steps_name] for point in kind)) for kind in ordered]).T
    total = float(np.maximum(start * numbers + step * steps, 0.0).sum())
    return found._replace(
        seconds=total * found.missing / len(points), compilation=float(compilation.sum()),
        probed_cells=len(probed), probed_steps=more,
    )  # fmt: skip


def checked_size(sweep: Sweep) -> int | None:
    """Bytes of the values, to a few per cent; None for a program that is not ours.

    Raises:
        ValueError: if no disk holds them.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> checked_size(specify({"dimension": 20}, {"bias": [0.0, 1.0]}, seeds=100))
        9000
    """
    program, settings = program_of(sweep.program), sweep.point((0,) * len(sweep.axes))
    if not (program.record_bytes and program.timing):
        return None
    steps, every = (settings[name] for name in program.timing)
    records = 1 if sweep.record == "final" else math.ceil(steps / every) + 1
    runs, values = (1, len(QUANTILES)) if merges_seeds(sweep.record) else (sweep.seeds, 1)
    bytes_of_a_step = Named(program.record_bytes, "").load()(settings)
    size = sweep.points * runs * (values * records * bytes_of_a_step + BYTES_OF_A_RUN)
    require(
        size <= MOST_BYTES, f"the result must take at most {MOST_BYTES / 2**40:.0f} TiB", f"{size / 2**40:,.1f} TiB"
    )
    return size
