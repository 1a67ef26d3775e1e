"""The cells of a sweep: each is one point with a block of its seeds, or with all of them for quantiles over seeds.

All blocks have the same number of seeds, so that every cell is the same computation to the last bit, whatever the
number of seeds. The last block may reach beyond the seeds that were requested.
"""

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.names import Named, modules_in
from holdfast.sweeps.programs import ProgramFunction, check_form, checked, merges_seeds, program_of, reduced
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.naming import Cell, cell_name, settings_hash

# Seeds that are computed together. A cell should take long against its file, and be short enough that little is lost
# with it; an accelerator has to be filled.
SEEDS_ON_CPU, SEEDS_ON_ACCELERATOR = 64, 8192
# Failures that are named for each reason.
MOST_NAMED = 3


class SweepCell(NamedTuple):
    """What a cell of a sweep is.

    Attributes:
        point: the settings that the axes decide.
        seeds: that the cell computes.

    Example:
        >>> str(SweepCell({"bias": 1.0}, range(4)))
        'bias=1.0, seeds 0 to 3'
    """

    point: Mapping[str, Any]
    seeds: range

    def __str__(self) -> str:
        return describe_point({**self.point, "seeds": [self.seeds[0], self.seeds[-1]]})


@dataclass(frozen=True)
class SweepCells:
    """All cells of a sweep, in the order of its axes, with the names of their files.

    Attributes:
        sweep: what is swept.
        runs: seeds of a cell.
        code: digest of the code, which is a part of the names.
        about: what is good to know of that code: "platform", "code", "packages", "versions".

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"dimension": 20}, {"bias": [0.0, 1.0]}, seeds=100)
        >>> cells = SweepCells(sweep, runs_of_a_cell(sweep, "cpu"))
        >>> len(cells), [str(cell.label) for cell in cells][1:3]
        (4, ['bias=0.0, seeds 50 to 99', 'bias=1.0, seeds 0 to 49'])
    """

    sweep: Sweep
    runs: int
    code: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> list[range]:
        """The seeds of the cells of a point."""
        first, number = self.sweep.seed, math.ceil(self.sweep.seeds / self.runs)
        return [range(first + block * self.runs, first + (block + 1) * self.runs) for block in range(number)]

    @property
    def attributes(self) -> dict[str, Any]:
        """What the result says about itself: what was computed, and by what."""
        sweep = self.sweep
        found = {
            "program": program_of(sweep.program).target,
            "settings": dict(sweep.settings),
            "seed": sweep.seed,
            "record": sweep.record,
            "scales": dict(sweep.scales),
        }
        return found | ({"seeds": sweep.seeds} if merges_seeds(sweep.record) else {}) | dict(self.about)

    def __len__(self) -> int:
        return self.sweep.points * len(self.blocks)

    def __iter__(self) -> Iterator[Cell]:
        sweep = self.sweep
        what = {"the program": program_of(sweep.program).target, "what is recorded": sweep.record}
        shared = settings_hash({**sweep.settings, **what})
        blocks = [(seeds, shared + settings_hash({"the seeds": [seeds[0], self.runs]})) for seeds in self.blocks]
        for point, number in _points(sweep):
            for seeds, more in blocks:
                yield Cell(cell_name(number + more, self.code), SweepCell(point, seeds))


def _points(sweep: Sweep) -> Iterator[tuple[dict[str, Any], int]]:
    """Each point with the hash of its settings; the first axis, which may be long, is gone through as it is needed."""
    if not sweep.axes:
        yield {}, 0
        return
    first, *others = sweep.axes
    hashes = [[settings_hash(axis.settings(at)) for at in range(axis.size)] for axis in others]
    for position in range(first.size):
        own = first.settings(position)
        number = settings_hash(own)
        for rest in itertools.product(*(range(axis.size) for axis in others)):
            point = dict(own)
            for axis, at in zip(others, rest, strict=True):
                point |= axis.settings(at)
            yield point, number + sum(each[at] for each, at in zip(hashes, rest, strict=True))


def runs_of_a_cell(sweep: Sweep, platform: str) -> int:
    """The number of seeds that a cell computes: few blocks, all of the same size.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> axes = {"bias": [0.0, 1.0], "seeds": 100}
        >>> runs_of_a_cell(specify({"dimension": 20}, axes), "cpu")
        50
        >>> runs_of_a_cell(specify({"dimension": 20}, axes, record="quantiles"), "cpu")
        100
    """
    if merges_seeds(sweep.record):
        return sweep.seeds
    most = sweep.seeds_per_cell or (SEEDS_ON_CPU if platform == "cpu" else SEEDS_ON_ACCELERATOR)
    return math.ceil(sweep.seeds / math.ceil(sweep.seeds / most))


def cells_together(cells: SweepCells, platform: str) -> int:
    """Cells that are computed in one call: on an accelerator as many as fill it, if the program can do that.

    Args:
        cells: of the sweep.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> cells = SweepCells(specify({"dimension": 20}, {"bias": [0.0, 1.0]}, seeds=64), 64)
        >>> cells_together(cells, "cpu"), cells_together(cells, "gpu")
        (1, 128)
    """
    if platform == "cpu" or not program_of(cells.sweep.program).together:
        return 1
    return max(1, SEEDS_ON_ACCELERATOR // cells.runs)


def failed_settings(sweep: Sweep, failures: Mapping[str, Iterable[SweepCell]]) -> dict[str, list[dict[str, Any]]]:
    """Settings and seeds of the first cells that failed, so that they can be tried by hand.

    Args:
        sweep: what was swept.
        failures: reason -> cells.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"dimension": 20}, {"bias": [0.0, 1.0]}, seeds=4)
        >>> failed_settings(sweep, {"ValueError: no": [SweepCell({"bias": 1.0}, range(4))]})
        {'ValueError: no': [{'bias': 1.0, 'seeds': [0, 3]}]}
    """
    last = sweep.seed + sweep.seeds - 1  # more may have been computed
    found: dict[str, list[dict[str, Any]]] = {}
    for reason, cells in failures.items():
        named = found[reason] = []
        for point, block in sorted(cells, key=lambda cell: (cell.seeds[0], *cell.point.values())):
            first, end = block[0], max(block[0], min(block[-1], last))
            before = [each for each in named if each == {**point, "seeds": [each["seeds"][0], first - 1]}]
            if before:  # the block before of the same point
                before[0]["seeds"][1] = end
            elif len(named) < MOST_NAMED:
                named.append({**point, "seeds": [first, end]})
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


@dataclass(frozen=True)
class CellProgram:
    """What a worker computes for a cell. Picklable.

    Attributes:
        sweep: what is swept, without its axes: cells have their values.
        folder: of the command, in which user modules may lie.
    """

    sweep: Sweep
    folder: str
    _first: list[CellResult] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Loaded only by a worker that can import the program: another one would fail cell after cell, in no time."""
        return _loaded, (self.sweep, self.folder)

    @cached_property
    def function(self) -> ProgramFunction:
        """Settings of a cell, seeds -> what is found."""
        return program_of(self.sweep.program).load(self.folder)

    def __call__(self, cell: SweepCell) -> CellResult:
        """The records of one cell."""
        with modules_in(self.folder):
            return self._recorded(cell, self.function(self._settings(cell), np.array(cell.seeds)))

    def kind(self, cell: SweepCell) -> Hashable:
        """What cells must have in common to be computed together: the seeds, and settings that shape the program."""
        free = program_of(self.sweep.program).free
        return cell.seeds, tuple((name, value) for name, value in cell.point.items() if name not in free)

    def together(self, cells: Sequence[SweepCell]) -> list[CellResult]:
        """The records of several cells of one kind."""
        function = Named(program_of(self.sweep.program).together, "").load()
        found = function(list(map(self._settings, cells)), np.array(cells[0].seeds))
        return list(map(self._recorded, cells, found))

    def _settings(self, cell: SweepCell) -> dict[str, Any]:
        return {**self.sweep.settings, **cell.point}

    def _recorded(self, cell: SweepCell, found: Any) -> CellResult:
        result = reduced(checked(found, len(cell.seeds), cell.point), self.sweep.record)
        if not self._first:
            self._first.append(result)
        check_form(self._first[0], result)
        return result


def _loaded(sweep: Sweep, folder: str) -> CellProgram:
    program = CellProgram(sweep, folder)
    program.function  # noqa: B018 (or an error, before the first cell)
    return program
