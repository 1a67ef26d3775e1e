"""One HTML file from a comparison, in the style of the report."""

from collections.abc import Mapping, Sequence
from html import escape

from holdfast.comparison.findings import findings
from holdfast.comparison.methods import METHODS
from holdfast.comparison.public_tests import ABOUT_GROUPS, PUBLIC_TESTS
from holdfast.comparison.published import SOURCE
from holdfast.comparison.recorded import about_recorded
from holdfast.comparison.runner import Comparison
from holdfast.comparison.table import LEGEND, Block, Shown, blocks, interval, number
from holdfast.report import markup

METHODS_TITLE, FAILURES_TITLE = "Methods and how they are tuned", "Cells that failed"
_LEAD = (
    "Methods that learn from several environments, on public tests in which some features predict the target "
    "everywhere and others only where they were learned."
)
_REPORT = (
    'The reproduction of the papers: <a href="report.html">report.html</a>, which <code>holdfast reproduce</code> '
    "writes beside this page."
)


def page(comparison: Comparison, *, versions: Mapping[str, str], quick: bool = False) -> str:
    """The comparison as HTML that needs no other file.

    Args:
        comparison: what was measured.
        versions: of the packages that computed it.
        quick: whether this was a look with few seeds, which the page then says.
    """
    tables = blocks(comparison)
    groups = list(dict.fromkeys(block.group for block in tables))
    sections = [_section(comparison, group, [block for block in tables if block.group == group]) for group in groups]
    contents = {_place(group): group.capitalize() for group in groups}
    sections.append(_methods(comparison))
    contents["methods"] = METHODS_TITLE
    if comparison.failures:
        sections.append(_failures(comparison))
        contents["failures"] = FAILURES_TITLE
    return markup.document(
        "Holdfast: comparison" + (" (quick look)" if quick else ""),
        lead=f"{_LEAD} {escape(LEGEND)}",
        summary=_summary(comparison, versions, quick),
        contents=contents,
        sections=sections,
        footer=(f"Published results: {escape(SOURCE)}.", f"Recorded results: {escape(about_recorded())}", _REPORT),
    )


def _summary(comparison: Comparison, versions: Mapping[str, str], quick: bool) -> str:
    parts = [markup.notice("open", "Quick look: few seeds, wide intervals.")] if quick else []
    if comparison.failures:
        parts.append(markup.notice("bad", f'{len(comparison.failures)} cells <a href="#failures">failed</a>.'))
    known = {
        "Tests": str(len(comparison.tests)),
        "Methods": str(len(comparison.methods)),
        "Cells": str(sum(map(len, comparison.cells.values()))),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return "\n".join([*parts, markup.facts(known)])


def _section(comparison: Comparison, group: str, tables: Sequence[Block]) -> str:
    parts = [f"<p>{escape(ABOUT_GROUPS[group])}</p>"]
    told = [each for test in tables[0].tests for each in findings(comparison, test)]
    if told:
        parts += ["<h3>Who leads, and where we do not</h3>", markup.items(told)]
    for block in tables:
        parts += [f"<h3>{escape(block.title)}</h3>", _table(block)]
    parts.append(markup.facts({test: PUBLIC_TESTS[test].about for test in tables[0].tests}))
    return markup.section(_place(group), group.capitalize(), *parts)


def _table(block: Block) -> str:
    rows = [(escape(title), {test: _cell(shown) for test, shown in row.items()}) for title, row in block.rows.items()]
    rows += [
        (f'<span class="faint">{escape(title)}</span>', {test: _value(value) for test, value in row.items()})
        for title, row in block.published.items()
    ]
    shown = [markup.row(title, {test: cells.get(test, "") for test in block.tests}) for title, cells in rows]
    return "\n".join([
        # What scrolls must be reachable by keyboard.
        f'<div class="wide" role="group" tabindex="0" aria-label="{escape(block.title)}">',
        markup.table(("method", *block.tests), shown),
        "</div>",
    ])  # fmt: skip


def _cell(shown: Shown) -> str:
    value, between = number(shown.estimate.value), interval(shown.estimate)
    strong = ' class="number leads"' if shown.leads else ' class="number"'
    return f'<span><span{strong}>{value}{shown.marks}</span><br><span class="number faint">{between}</span></span>'


def _value(value: float) -> str:
    return f'<span class="number faint">{number(value)}</span>'


def _methods(comparison: Comparison) -> str:
    chosen = [METHODS[name] for name in comparison.methods]
    return markup.section("methods", METHODS_TITLE, markup.facts({each.title: each.about for each in chosen}))


def _failures(comparison: Comparison) -> str:
    failed = [f"{test}, {method}, seed {seed}: {error}" for (test, method, seed), error in comparison.failures.items()]
    return markup.section("failures", FAILURES_TITLE, markup.items(failed))


def _place(group: str) -> str:
    return group.replace(" ", "-")
