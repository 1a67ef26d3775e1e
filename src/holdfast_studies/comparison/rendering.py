"""The summary of a comparison as Markdown, JSON and HTML, and in a terminal."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.plots.pages import render
from holdfast_studies.comparison.recorded import PUBLISHED, SOURCE, about_recorded
from holdfast_studies.comparison.runner import applies
from holdfast_studies.comparison.summary import (
    LEGEND,
    ComparisonSummary,
    RankedTest,
    Score,
    ScoreTable,
    interval,
    number,
)


def to_markdown(summary: ComparisonSummary) -> str:
    """All tables, and who leads in each, for the documentation.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison, summarize
        >>> cells = {("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}}}
        >>> summary = summarize(Comparison((PUBLIC_TESTS["Example1"],), (METHODS["eills"],), cells, {}))
        >>> print(to_markdown(summary).splitlines()[12])
        | EILLS | **10.50** (4.15 to 16.85) |
    """
    parts = [LEGEND]
    for each in summary.groups:
        parts.append(f"### {each.group.name.capitalize()}\n\n{each.group.about}")
        parts.append("\n".join(f"- {sentence}" for sentence in each.findings))
        for table in each.tables:
            unit = "tables" if each.overall else None
            seeds = (f"{test.seeds} {unit or ('folds' if test.test.folds else 'data seeds')}" for test in table.tests)
            parts.append(f"**{table.title}** ({', '.join(dict.fromkeys(seeds))})")
            parts.append(markdown_table([("method", *table.columns), *table.lines(_markdown_cell, "*{}*")]))
        for table in each.details:
            parts.append(f"**{table.title}, each table** (a: put aside)")
            parts.append(_markdown_details(table))
    return "\n\n".join(parts) + "\n"


def _markdown_details(table: ScoreTable) -> str:
    rows = [("table", *table.titles)]
    for ranked in table.tests:
        name = f"{ranked.test.name} a" if ranked.test.half == "confirmation" else ranked.test.name
        rows.append((name, *(_markdown_cell(scores.get(ranked.test.name)) for _, scores in table.rows)))
    return markdown_table(rows)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; its head is the first row.

    Example:
        >>> print(markdown_table([("method", "error"), ("IRM", "0.45")]))
        | method | error |
        |---|---|
        | IRM | 0.45 |
    """
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def _markdown_cell(score: Score | None) -> str:
    if score is None:
        return ""
    value = number(score.estimate.value)
    return f"{f'**{value}**' if score.leads else value}{score.marks.lstrip('*')} ({interval(score.estimate)})"


def to_json(summary: ComparisonSummary) -> str:
    """All numbers for programs; the ends of an interval are null where there is a single value.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison, summarize
        >>> cells = {("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}}}
        >>> summary = summarize(Comparison((PUBLIC_TESTS["Example1"],), (METHODS["eills"],), cells, {}))
        >>> json.loads(to_json(summary))["tests"]["Example1"]["leaders"]
        ['eills']
    """
    content = {
        "versions": summary.versions,
        "methods": {each.name: {"title": each.title, "about": each.about} for each in summary.methods},
        "tests": {each.test.name: _plain_test(each) for each in summary.tests},
        "overall": {each.test.name: _plain_test(each) for group in summary.groups for each in group.overall},
        "published": {"source": SOURCE, "errors": PUBLISHED},
        "failed": [{**cell._asdict(), "error": error} for cell, error in summary.failures.items()],
    }
    return json.dumps(content, indent=1, allow_nan=False)


def _plain_test(ranked: RankedTest) -> dict[str, Any]:
    return {
        "about": ranked.test.about,
        "group": ranked.test.group.name,
        "half": ranked.test.half,
        "leaders": ranked.leaders,
        "findings": ranked.findings,
        "measures": {
            measure: {method: _plain_score(score) for method, score in scores.items()}
            for measure, scores in ranked.scores.items()
        },
    }


def _plain_score(score: Score) -> dict[str, Any]:
    # A single value has no interval, and JSON no infinity.
    ends = {name: value if isfinite(value) else None for name, value in score.estimate._asdict().items()}
    return {**ends, "deviation": score.deviation, "seeds": score.seeds, "recorded": score.recorded}


def to_html(summary: ComparisonSummary, *, quick: bool = False) -> str:
    """One page that needs no other file.

    Args:
        summary: what the page says.
        quick: whether this was a quick look with few seeds; the page then says so.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison, summarize
        >>> cells = {("Example1", "eills"): {0: {"error": 10.0}, 1: {"error": 11.0}}}
        >>> summary = summarize(Comparison((PUBLIC_TESTS["Example1"],), (METHODS["eills"],), cells, {}))
        >>> "<h1>Holdfast: comparison (quick look)</h1>" in to_html(summary, quick=True)
        True
    """
    groups = {each.group.name.replace(" ", "-"): each for each in summary.groups}
    contents = {anchor: each.group.name.capitalize() for anchor, each in groups.items()}
    contents["methods"] = "Methods and how they are tuned"
    if summary.failures:
        contents["failures"] = "Cells that failed"
    return render(
        "comparison.html",
        package="holdfast_studies",
        title="Holdfast: comparison" + (" (quick look)" if quick else ""),
        quick=quick,
        contents=contents,
        summary=summary,
        groups=groups,
        legend=LEGEND,
        origin={
            "Tests": str(len(summary.tests)),
            "Methods": str(len(summary.methods)),
            "Cells": str(summary.cells),
            "Versions": ", ".join(f"{name} {version}" for name, version in summary.versions.items()),
        },
        published=SOURCE,
        recorded=about_recorded(),
        number=number,
        interval=interval,
    )


def show_comparison(summary: ComparisonSummary) -> None:
    """Print all tables and the legend."""
    console = Console()
    for group in summary.groups:
        for table in group.tables:
            console.print(_terminal_table(table))
    unfit = [each.name for each in summary.methods if not any(applies(each, one.test) for one in summary.tests)]
    if unfit:
        print(f"Not run, since they are for none of these tests, by kind or by size: {', '.join(unfit)}.")
    console.print(LEGEND, style="dim")


def _terminal_table(scores: ScoreTable) -> Table:
    table = Table(title=scores.title, title_justify="left")
    table.add_column("method")
    for test in scores.columns:
        table.add_column(test, justify="right")
    for line in scores.lines(_terminal_cell, "[dim]{}[/dim]"):
        table.add_row(*line)
    return table


def _terminal_cell(score: Score | None) -> str:
    """The mean with its marks, and the interval on a line of its own."""
    if score is None:
        return ""
    value = number(score.estimate.value)
    value = f"[bold]{value}[/bold]" if score.leads else value
    return f"{value} {score.marks}\n[dim]{interval(score.estimate)}[/dim]"
