"""The numbers of a comparison as tables for people."""

from dataclasses import dataclass
from math import isfinite

from rich.table import Table

from holdfast.comparison.methods import METHODS
from holdfast.comparison.public_tests import GROUPS, PUBLIC_TESTS, Measure
from holdfast.comparison.published import PUBLISHED
from holdfast.comparison.runner import Comparison
from holdfast.core.statistics import FEW_VALUES, Estimate

TITLES: dict[Measure, str] = {
    "error": "test error",
    "worst_error": "test error in the worst environment",
    "coefficient_error": "distance of the coefficients to the invariant ones",
    "false_coefficient": "largest coefficient that should be 0",
}
LEGEND = (
    "Mean over seeds with its 95 % interval, by bootstrap or, for fewer than "
    f"{FEW_VALUES} seeds or folds, Student's t. Bold, or marked *: the lowest mean, and means that cannot be told from "
    "it (95 % interval of the paired difference, over the seeds that all compared methods have); the oracle, which is "
    "told what is invariant, is left out. Marked r: recorded, computed once on an accelerator and shipped with the "
    "package. Marked n: over fewer seeds; with fewer than half of them in common with the others a method is not "
    "among those compared."
)


@dataclass(frozen=True)
class Shown:
    """A number in a table.

    Attributes:
        estimate: with its interval; the ends are NaN for a published number, whose spread over seeds is known at most.
        leads: whether it is among the best.
        recorded: whether it was computed earlier, see `holdfast.comparison.recorded`.
        seeds: over how many the mean is taken, where they are fewer than others have in this test; else None.
    """

    estimate: Estimate
    leads: bool = False
    recorded: bool = False
    seeds: int | None = None

    @property
    def marks(self) -> str:
        """What stands behind the number."""
        fewer = f" n={self.seeds}" if self.seeds is not None else ""
        return ("*" if self.leads else "") + (" r" if self.recorded else "") + fewer


@dataclass(frozen=True)
class Block:
    """One table.

    Attributes:
        group: of tests.
        measure: what is shown.
        tests: the columns.
        rows: title of the row -> test -> what is shown; tests that do not apply are missing.
        published: rows of others, likewise.
    """

    group: str
    measure: Measure
    tests: tuple[str, ...]
    rows: dict[str, dict[str, Shown]]
    published: dict[str, dict[str, float]]

    @property
    def title(self) -> str:
        """What the table shows."""
        return f"{self.group.capitalize()}: {TITLES[self.measure]}"


def blocks(comparison: Comparison) -> list[Block]:
    """The tables of a comparison, one for each group of tests and measure."""
    found = []
    for group, measures in GROUPS.items():
        tests = tuple(name for name in comparison.tests if PUBLIC_TESTS[name].group == group)
        for place, measure in enumerate(measures):
            rows = _rows(comparison, tests, measure)
            published = _published(tests) if group == "unit tests" and place == 0 else {}
            if rows:
                found.append(Block(group, measure, tests, rows, published))
    return found


def _rows(comparison: Comparison, tests: tuple[str, ...], measure: Measure) -> dict[str, dict[str, Shown]]:
    leaders = {test: comparison.leaders(test, measure) for test in tests}
    most = {test: seed_count(comparison, test) for test in tests}
    rows = {}
    for method in comparison.methods:
        row = {}
        for test in tests:
            estimate = comparison.estimate(test, method, measure)
            if estimate is not None:
                cells = comparison.cells[test, method]
                recorded = any(cell.get("choice") == "recorded" for cell in cells.values())
                fewer = len(cells) if len(cells) < most[test] else None
                row[test] = Shown(estimate, method in leaders[test], recorded, fewer)
        if row:
            rows[METHODS[method].title] = row
    return rows


def _published(tests: tuple[str, ...]) -> dict[str, dict[str, float]]:
    rows = {
        f"{name}, published": {test: found[test].mean for test in tests if test in found}
        for name, found in PUBLISHED.items()
    }
    return {name: row for name, row in rows.items() if row}


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
    """The ends of an interval; of a single value there is none.

    Example:
        >>> interval(Estimate(0.5, 0.25, 0.75))
        '0.250 to 0.750'
    """
    if not isfinite(estimate.low):
        return "one seed"
    return f"{number(estimate.low)} to {number(estimate.high)}"


def terminal_table(block: Block) -> Table:
    """For the terminal; an interval stands below its mean."""
    table = Table(title=block.title, title_justify="left")
    table.add_column("method")
    for test in block.tests:
        table.add_column(test, justify="right")
    for title, row in block.rows.items():
        cells = []
        for test in block.tests:
            shown = row.get(test)
            if shown is None:
                cells.append("")
                continue
            value = f"[bold]{number(shown.estimate.value)}[/bold]" if shown.leads else number(shown.estimate.value)
            cells.append(f"{value} {shown.marks}\n[dim]{interval(shown.estimate)}[/dim]")
        table.add_row(title, *cells)
    for title, others in block.published.items():
        table.add_row(f"[dim]{title}[/dim]", *(number(others[test]) if test in others else "" for test in block.tests))
    return table


def seed_count(comparison: Comparison, test: str) -> int:
    """The most that a method was run on."""
    return max((len(comparison.cells.get((test, method), {})) for method in comparison.methods), default=0)
