"""A comparison in a terminal: its tables and what the marks mean."""

from rich.console import Console
from rich.table import Table

from holdfast_studies.comparison.runner import applies
from holdfast_studies.comparison.summary import LEGEND, ComparisonSummary, Score, ScoreTable, interval, number


def show_comparison(summary: ComparisonSummary, console: Console | None = None) -> None:
    """Print all tables and the legend."""
    console = console or Console()
    for group in summary.groups:
        for table in group.tables:
            console.print(_table(table))
    unfit = [each.name for each in summary.methods if not any(applies(each, one.test) for one in summary.tests)]
    if unfit:
        text = f"Not run, since they are for none of these tests, by kind or by size: {', '.join(unfit)}."
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(LEGEND, style="dim")


def _table(scores: ScoreTable) -> Table:
    table = Table(title=scores.title, title_justify="left")
    table.add_column("method")
    for test in scores.columns:
        table.add_column(test, justify="right")
    for method, row in scores.rows:
        table.add_row(method.title, *(_cell(row[test]) if test in row else "" for test in scores.columns))
    for title, means in scores.published.items():
        cells = (number(means[test]) if test in means else "" for test in scores.columns)
        table.add_row(f"[dim]{title}[/dim]", *cells)
    return table


def _cell(score: Score) -> str:
    """The mean with its marks, and the interval on a line of its own."""
    value = number(score.estimate.value)
    value = f"[bold]{value}[/bold]" if score.leads else value
    return f"{value} {score.marks}\n[dim]{interval(score.estimate)}[/dim]"
