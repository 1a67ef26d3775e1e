"""How long the cells of a sweep take: a few steps of one cell of each kind are measured, or of some of many kinds."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.worker import working
from holdfast.sweeps.programs import program_of
from holdfast.sweeps.recording import checked, reduced
from holdfast.sweeps.specification import Sweep

# Steps of the two parts of a probe, whose difference is the time of a step.
STEPS_OF_A_PROBE = (10, 40)
# At most this many kinds of cells are probed; the times of others are interpolated.
MOST_PROBES = 6


class CellTimes(NamedTuple):
    """The time of some cells.

    Attributes:
        seconds: one worker needs for all of them, without compilation.
        compilation: seconds in which one worker compiles their programs.
        probed_cells: that were run for a few steps.
        probed_steps: of each of these.
    """

    seconds: float
    compilation: float
    probed_cells: int
    probed_steps: int


def time_cells(sweep: Sweep, points: Collection[Mapping[str, Any]], runs: int) -> CellTimes:
    """Estimate the time of cells by probes.

    Cells are of one kind if they differ neither in whole numbers, other than steps and seeds, nor in texts or truth
    values: these decide the time of a step. Kinds are put in the order of their settings, so the estimate does not
    depend on the order of the values of an axis.

    Args:
        sweep: of a program with steps.
        points: the settings of each cell.
        runs: of each cell.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"steps": 20, "oracle": "population"}, {"dimension": [10, 20], "bias": [0.0, 1.0]})
        >>> found = time_cells(sweep, [sweep.point((i, j)) for i in (0, 1) for j in (0, 1)], runs=16)
        >>> found.probed_cells, found.probed_steps
        (2, 20)
    """
    program = program_of(sweep.program)
    steps_name, function = program.timing[0], program.load()
    whole = {name for name in program.whole() if not name.endswith("seed")} - {steps_name}
    few, more = (min(steps, max(point[steps_name] for point in points)) for steps in STEPS_OF_A_PROBE)
    kinds: dict[tuple, list[Mapping[str, Any]]] = defaultdict(list)
    for point in points:
        kinds[tuple(v for name, v in point.items() if name in whole or isinstance(v, bool | str))].append(point)

    def seconds(point: Mapping[str, Any], steps: int) -> float:
        begin = time.perf_counter()
        with working(threads=1):
            found = function({**point, steps_name: steps}, sweep.seed + np.arange(runs))
            reduced(checked(found, runs), sweep.record)
        return time.perf_counter() - begin

    ordered = [kinds[key] for key in sorted(kinds)]
    probed = np.unique(np.linspace(0, len(ordered) - 1, MOST_PROBES).round().astype(int))
    probes = []
    for at in probed:
        first, short, long = (seconds(ordered[at][0], steps) for steps in (few, few, more))
        step = max(long - short, 0.0) / max(more - few, 1)
        probes.append((long - more * step, step, max(first - short, 0.0)))
    start, step, compilation = (
        np.interp(np.arange(len(ordered)), probed, times) for times in zip(*probes, strict=True)
    )
    numbers, steps = np.array([(len(kind), sum(point[steps_name] for point in kind)) for kind in ordered]).T
    total = float(np.maximum(start * numbers + step * steps, 0.0).sum())
    return CellTimes(total, float(compilation.sum()), len(probes), more)
