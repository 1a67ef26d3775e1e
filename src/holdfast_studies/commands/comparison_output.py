"""A comparison in a terminal: its tables and what the marks mean."""

from rich.console import Console
from rich.table import Table

from holdfast_studies.comparison.runner import applies
from holdfast_studies.comparison.summary import LEGEND, ComparisonSummary, Score, ScoreTable, interval, number


def show_comparison(summary: ComparisonSummary) -> None:
    """Print all tables and the legend."""
    console = Console()
    for group in summary.groups:
        for table in group.tables:
            console.print(_table(table))
    unfit = [each.name for each in summary.methods if not any(applies(each, one.test) for one in summary.tests)]
    if unfit:
        print(f"Not run, since they are for none of these tests, by kind or by size: {', '.join(unfit)}.")
    console.print(LEGEND, style="dim")


def _table(scores: ScoreTable) -> Table:
    table = Table(title=scores.title, title_justify="left")
    table.add_column("method")
    for test in scores.columns:
        table.add_column(test, justify="right")
    for line in scores.lines(_cell, "[dim]{}[/dim]"):
        table.add_row(*line)
    return table


def _cell(score: Score | None) -> str:
    """The mean with its marks, and the interval on a line of its own."""
    if score is None:
        return ""
    value = number(score.estimate.value)
    value = f"[bold]{value}[/bold]" if score.leads else value
    return f"{value} {score.marks}\n[dim]{interval(score.estimate)}[/dim]"
