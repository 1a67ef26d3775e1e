"""The numbers of a comparison, and who leads by them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval
from holdfast_studies.comparison.measures import Measure, Values
from holdfast_studies.comparison.methods import ComparedMethod
from holdfast_studies.comparison.public_tests import PublicTest


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
