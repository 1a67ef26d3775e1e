"""How long the cells of a sweep take: a few steps of some of them are measured, the others lie in between."""

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.worker import working
from holdfast.sweeps.blocks import runs_of_a_cell
from holdfast.sweeps.programs import SweepProgram, program_of
from holdfast.sweeps.recording import checked, reduced
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.layout import Axis, Layout

# Steps of the two parts of a probe, whose difference is the time of a step.
STEPS_OF_A_PROBE = (10, 40)
# Kinds of cells that are probed; the times of others are interpolated.
MOST_PROBES = 6

Key = tuple[Any, ...]
"""The settings that cells of one kind have in common."""


class CellTimes(NamedTuple):
    """The time of some cells.

    Attributes:
        seconds: of all of them, on one worker.
        compilation: seconds in which one worker compiles their programs.
        variables: that each of them has.
        probed_cells: that were run for a few steps.
        probed_steps: of each of these.
    """

    seconds: float
    compilation: float
    variables: int
    probed_cells: int
    probed_steps: int


class CellKind(NamedTuple):
    """Cells, or positions along an axis, that differ in nothing that decides the time of a step.

    Attributes:
        example: one of them.
        number: of them.
        steps: of all of them together; 1 for each position of an axis that does not decide the steps.
    """

    example: Any
    number: int
    steps: int


def time_cells(sweep: Sweep, layout: Layout, cells: GridCells | None = None) -> CellTimes:
    """Estimate the time of the cells of a layout, or of those that are missing in a folder, by probes.

    Kinds of cells are put in the order of their settings, so that nothing depends on the order of the values of an
    axis.

    Args:
        sweep: of a program with steps.
        layout: its cells.
        cells: of the folder.

    Example:
        >>> from holdfast.sweeps.blocks import layout_of
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"steps": 20, "oracle": "population"}, {"dimension": [10, 20], "bias": [0.0, 1.0]})
        >>> found = time_cells(sweep, layout_of(sweep, "cpu"))
        >>> found.probed_cells, found.probed_steps
        (2, 20)
    """
    kinds = _new_kinds(sweep, layout) if cells is None else _missing_kinds(sweep, cells)
    ordered = [kinds[key] for key in sorted(kinds)]
    few, more = (min(steps, _longest(sweep)) for steps in STEPS_OF_A_PROBE)
    probed = np.unique(np.linspace(0, len(ordered) - 1, MOST_PROBES).round().astype(int))
    probes = [_probe(sweep, ordered[at].example, runs_of_a_cell(sweep, layout), few, more) for at in probed]
    start, step, compilation = (
        np.interp(np.arange(len(ordered)), probed, [getattr(probe, name) for probe in probes])
        for name in ("start", "step", "compilation")
    )
    numbers, steps = np.array([(kind.number, kind.steps) for kind in ordered]).T
    seconds = float(np.maximum(start * numbers + step * steps, 0.0).sum())
    return CellTimes(seconds, float(compilation.sum()), probes[0].variables, len(probes), more)


def _longest(sweep: Sweep) -> int:
    name = program_of(sweep.program).timing[0]
    swept = [axis.coordinates[name] for axis in sweep.axes if name in axis.coordinates]
    return max(swept[0]) if swept else sweep.settings[name]


class _AlongAxis(NamedTuple):
    """What the positions along an axis decide: part of the key of a cell's kind, and a factor of its steps."""

    keys: Sequence[Key]
    steps: Sequence[Any]

    @classmethod
    def of(cls, axis: Axis, program: SweepProgram) -> "_AlongAxis":
        """Whole numbers, names and truth values may change the program or its time, but seeds do not."""
        whole = {name for name in program.whole() if not name.endswith("seed")} - {program.timing[0]}
        deciding = [
            values for name, values in axis.coordinates.items() if name in whole or isinstance(values[0], bool | str)
        ]
        keys = list(zip(*deciding, strict=True)) if deciding else [()] * axis.size
        return cls(keys, axis.coordinates.get(program.timing[0], [1] * axis.size))


def _along_axes(sweep: Sweep, axes: Sequence[Axis]) -> list[_AlongAxis]:
    return [_AlongAxis.of(axis, program_of(sweep.program)) for axis in axes]


def _shared_steps(sweep: Sweep) -> int:
    """The steps of all points; 1 if they are an axis."""
    return sweep.settings.get(program_of(sweep.program).timing[0], 1)


def _grouped(keys: Iterable[Key], steps: Iterable[int], examples: Iterable[Any]) -> dict[Key, CellKind]:
    found: dict[Key, CellKind] = {}
    for key, more, example in zip(keys, steps, examples, strict=True):
        first, number, before = found.get(key, (example, 0, 0))
        found[key] = CellKind(first, number + 1, before + more)
    return found


def _new_kinds(sweep: Sweep, layout: Layout) -> dict[Key, CellKind]:
    """Of all cells of a layout, without making every cell."""
    along = [_grouped(each.keys, each.steps, range(len(each.keys))) for each in _along_axes(sweep, layout.axes)]
    blocks, found = layout.shape[-1], {}
    for combination in itertools.product(*(each.items() for each in along)):
        kinds = [kind for _, kind in combination]
        found[tuple(itertools.chain.from_iterable(key for key, _ in combination))] = CellKind(
            sweep.point([kind.example for kind in kinds]),
            blocks * math.prod(kind.number for kind in kinds),
            blocks * math.prod(kind.steps for kind in kinds) * _shared_steps(sweep),
        )
    return found


def _missing_kinds(sweep: Sweep, cells: GridCells) -> dict[Key, CellKind]:
    along, shared = _along_axes(sweep, cells.layout.axes), _shared_steps(sweep)
    missing: list[Any] = list(cells.missing(verify=False))
    parts = [[(each, at) for each, at in zip(along, index, strict=False)] for index in missing]
    keys = (tuple(itertools.chain.from_iterable(each.keys[at] for each, at in part)) for part in parts)
    steps = (shared * math.prod(each.steps[at] for each, at in part) for part in parts)
    found = _grouped(keys, steps, missing)
    return {
        key: kind._replace(example={**sweep.settings, **cells.settings(kind.example)}) for key, kind in found.items()
    }


class _Probe(NamedTuple):
    """Seconds of one cell on one worker without steps, for each step, and to compile it; and its variables."""

    start: float
    step: float
    compilation: float
    variables: int


def _probe(sweep: Sweep, settings: Mapping[str, Any], runs: int, few: int, more: int) -> _Probe:
    program, seeds = program_of(sweep.program), sweep.seed + np.arange(runs)
    function = program.load()

    def measured(steps: int) -> tuple[int, float]:
        begin = time.perf_counter()
        with working(threads=1):
            recorded = reduced(checked(function({**settings, program.timing[0]: steps}, seeds), runs), sweep.record)
        return len(recorded.values), time.perf_counter() - begin

    (_, first), (_, short), (variables, long) = measured(few), measured(few), measured(more)
    step = max(long - short, 0.0) / max(more - few, 1)
    return _Probe(long - more * step, step, max(first - short, 0.0), variables)
