"""What a worker computes for a cell, in this process or in another one."""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.blocks import seeds_of_a_cell
from holdfast.sweeps.engines.remote import RefusedWorkerError, difference
from holdfast.sweeps.programs import SweepProgram, code_of, modules_in, program_of
from holdfast.sweeps.recording import RecordName, checked, reduced
from holdfast.sweeps.store.cells import Index
from holdfast.sweeps.store.grid import GridCells


@dataclass(frozen=True)
class CellProgram:
    """What a worker computes for a cell. Picklable.

    Attributes:
        cells: that say what a cell is.
        program: by name.
        settings: those that all cells share.
        record: what is recorded.
        folder: of the command, in which user modules may lie.
        code: checksum of the program, see `code_of`.
    """

    cells: GridCells
    program: str
    settings: Mapping[str, Any]
    record: RecordName
    folder: str
    code: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Loaded only by a worker that has the same program: another one would fail cell after cell, in no time."""
        return _loaded_program, (self.cells, self.program, self.settings, self.record, self.folder, self.code)

    def __call__(self, index: Index) -> CellResult:
        """The records of one cell."""
        function, seeds = self._function(program_of(self.program).target), seeds_of_a_cell(self.cells, index)
        with modules_in(self.folder):
            found = function(self._settings(index), seeds)
        return reduced(checked(found, len(seeds)), self.record)

    def kind(self, index: Index) -> Hashable:
        """What cells must have in common to be computed together: the seeds, and settings that shape the program."""
        free = program_of(self.program).free
        own = self.cells.settings(index).items()
        return index[-1], tuple((name, value) for name, value in own if name not in free)

    def together(self, indices: Sequence[Index]) -> list[CellResult]:
        """The records of several cells of one kind."""
        function, seeds = self._function(program_of(self.program).together), seeds_of_a_cell(self.cells, indices[0])
        found = function([self._settings(index) for index in indices], seeds)
        return [reduced(checked(each, len(seeds)), self.record) for each in found]

    def _function(self, target: str) -> Callable:
        return _loaded(program_of(self.program), target, self.folder)

    def _settings(self, index: Index) -> dict[str, Any]:
        return {**self.settings, **self.cells.settings(index)}


@functools.cache
def _loaded(program: SweepProgram, target: str, folder: str) -> Callable:
    return program._replace(target=target).load(folder)


def _loaded_program(
    cells: GridCells, name: str, settings: Mapping[str, Any], record: RecordName, folder: str, code: str
) -> CellProgram:
    """The program on a worker, if it is the one that the command has: one that lives on may know an older one."""
    program = program_of(name)
    program.load(folder)
    of_module = f"code of {program.target.partition(':')[0]} with the digest"
    different = difference({of_module: code}, {of_module: code_of(program, folder)})
    if different:
        raise RefusedWorkerError(different)
    return CellProgram(cells, name, settings, record, folder, code)
