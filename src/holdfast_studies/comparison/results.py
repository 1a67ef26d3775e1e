"""The numbers of a comparison, and who leads by them; many tables as one test.

Every table then counts once, by its error relative to a plain regression on the same rows.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval
from holdfast.datasets.real_tables import Half
from holdfast.datasets.splits import Dataset, Kind
from holdfast_studies.comparison.methods import ComparedMethod
from holdfast_studies.comparison.methods.base import Measure, Values
from holdfast_studies.comparison.public_tests import Group, PublicTest

# What the error of a method is divided by.
REFERENCE: dict[Kind, str] = {"regression": "least_squares", "classification": "regularized"}
KIND_TITLES: dict[Kind, str] = {"regression": "numbers", "classification": "labels"}
HALF_TITLES: dict[Half, str] = {"choice": "to choose on", "confirmation": "put aside"}
# A table counts as worse than the reference if the error is larger by more than this share.
NOTICEABLE = 0.02
# An error of 0, of labels, is one wrong label in this many rows.
FEWEST_ROWS = 1e4


class CellIndex(NamedTuple):
    """One method on one seed of a test, by name."""

    test: str
    method: str
    seed: int


@dataclass(frozen=True)
class Ranking:
    """Methods on the seeds that all of them have.

    Attributes:
        values: method -> (seeds,), what was measured.
        behind: method -> its mean difference to the lowest mean, with a 95 % interval. The differences are paired,
            because methods see the same data.

    Example:
        >>> values = {"irm": np.array([1.0, 2.0, 3.0]), "pooled": np.array([1.5, 2.6, 3.5])}
        >>> Ranking(values, {"pooled": mean_interval(values["pooled"] - values["irm"])}).leaders
        ['irm']
    """

    values: dict[str, np.ndarray]
    behind: dict[str, Estimate]

    @property
    def leaders(self) -> list[str]:
        """The method with the lowest mean, and those whose difference to it may be 0; empty if there are no methods."""
        best = [name for name in self.values if name not in self.behind]
        return best + [name for name, difference in self.behind.items() if difference.low <= 0]


@dataclass(frozen=True)
class Comparison:
    """The numbers of a comparison.

    Attributes:
        tests: in the order of the tables.
        methods: in the order of the tables.
        cells: (test, method) -> seed -> what was measured; a pair that does not apply is missing.
        failures: the errors of the cells that raised one.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> cells = {
        ...     ("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}},
        ...     ("Example1", "anchor"): {0: {"error": 13.0}, 1: {"error": 14.1}},
        ... }
        >>> methods = (METHODS["anchor"], METHODS["eills"])
        >>> ranking = Comparison((PUBLIC_TESTS["Example1"],), methods, cells, {}).ranking("Example1", "error")
        >>> ranking.leaders, round(ranking.behind["anchor"].value, 2)
        (['eills'], 3.05)
    """

    tests: tuple[PublicTest, ...]
    methods: tuple[ComparedMethod, ...]
    cells: dict[tuple[str, str], dict[int, Values]]
    failures: dict[CellIndex, str]

    def values(self, test: str, method: str, measure: Measure) -> dict[int, float]:
        """Seed -> what was measured; empty if the method or the measure does not apply to the test."""
        cells = self.cells.get((test, method), {})
        return {seed: float(cell[measure]) for seed, cell in cells.items() if measure in cell}

    def ranking(self, test: str, measure: Measure) -> Ranking:
        """The methods that can be compared on a test, oracles left out.

        An unfinished method may have had easier seeds than the others, and would leave few seeds to compare the others
        on: from the most finished one on, methods join as long as at least half of its seeds stay common to all.
        """
        found = {each.name: self.values(test, each.name, measure) for each in self.methods if not each.oracle}
        by_seeds = sorted((name for name in found if found[name]), key=lambda name: -len(found[name]))
        if not by_seeds:
            return Ranking({}, {})
        most = common = set(found[by_seeds[0]])
        joined = set()
        for name in by_seeds:
            left = common & set(found[name])
            if 2 * len(left) >= len(most):
                joined.add(name)
                common = left
        seeds = sorted(common)
        values = {name: np.array([found[name][seed] for seed in seeds]) for name in found if name in joined}
        best = min(values, key=lambda name: values[name].mean())
        return Ranking(values, {name: mean_interval(values[name] - values[best]) for name in values if name != best})


def relative_comparison(comparison: Comparison, group: Group) -> Comparison:
    """The tests of a group of many as up to four, numbers or labels, to choose on or put aside; a seed is a table.

    Args:
        comparison: with the reference among its methods; a table on which it was not run is left out.
        group: whose tests are meant.

    Example, an error of twice that of least squares on one table:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> tips, methods = PUBLIC_TESTS["tips"], (METHODS["least_squares"], METHODS["drig"])
        >>> cells = {("tips", "least_squares"): {0: {"error": 0.5}}, ("tips", "drig"): {0: {"error": 1.0}}}
        >>> found = relative_comparison(Comparison((tips,), methods, cells, {}), tips.group)
        >>> found.tests[0].name, found.values("numbers, to choose on", "drig", "log_ratio")
        ('numbers, to choose on', {0: 0.6931471805599453})
    """
    own = replace(group, measures=("log_ratio", "beyond_2_percent"), many=False)
    tests: list[PublicTest] = []
    cells: dict[tuple[str, str], dict[int, Values]] = {}
    for kind, reference in REFERENCE.items():
        for half, title in HALF_TITLES.items():
            tables = [each for each in comparison.tests if (each.group, each.kind, each.half) == (group, kind, half)]
            name = f"{KIND_TITLES[kind]}, {title}"
            for method in comparison.methods:
                ratios = {
                    number: ratio
                    for number, table in enumerate(tables)
                    if (ratio := _log_ratio(comparison, table.name, method.name, reference)) is not None
                }
                if ratios:
                    cells[name, method.name] = {number: _values(ratio) for number, ratio in ratios.items()}
            if tables:
                about = f"{len(tables)} tables, relative to {reference}"
                tests.append(PublicTest(name, about, kind, len(tables), partial(_no_data, name), own, half=half))
    return Comparison(tuple(tests), comparison.methods, cells, {})


def _log_ratio(comparison: Comparison, table: str, method: str, reference: str) -> float | None:
    """Mean over the folds that both have."""
    ours, theirs = (comparison.values(table, name, "error") for name in (method, reference))
    common = sorted(set(ours) & set(theirs))
    if not common:
        return None
    errors = np.maximum([[ours[fold], theirs[fold]] for fold in common], 1 / FEWEST_ROWS)
    return float(np.diff(np.log(errors[:, ::-1]), axis=1).mean())


def _values(ratio: float) -> Values:
    return {"log_ratio": ratio, "beyond_2_percent": float(ratio > np.log1p(NOTICEABLE))}


def _no_data(name: str, seed: int) -> Dataset:
    raise ValueError(f"{name} sums up other tests and has no data of its own")
