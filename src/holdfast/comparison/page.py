"""One HTML file from a comparison, in the style of the report."""

from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from holdfast.comparison.findings import findings
from holdfast.comparison.methods import METHODS
from holdfast.comparison.published import SOURCE
from holdfast.comparison.recorded import about_recorded
from holdfast.comparison.runner import Comparison
from holdfast.comparison.table import LEGEND, Block, Shown, blocks, interval, number
from holdfast.comparison.tests import ABOUT_GROUPS, TESTS
from holdfast.report.page import STYLE

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style
.wide { overflow-x: auto; }
.wide table { min-width: 48rem; }
.wide tbody th { min-width: 11rem; }
.leads { font-weight: 700; }
@media (max-width: 48rem) { .wide table { min-width: 0; } }
</style>
</head>
<body>
<header>
<h1>$title</h1>
<p>Methods that learn from several environments, on public tests in which some features predict the target everywhere
and others only where they were learned. $legend</p>
</header>
<main>
<section id="summary" aria-label="Summary">
$summary
</section>
<nav id="contents" aria-label="Contents">
<h2>Contents</h2>
<ul>
$contents
</ul>
</nav>
$sections
</main>
<footer class="faint">
<p>Published results: $source.</p>
<p>Recorded results: $recorded</p>
</footer>
</body>
</html>
""")


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
    contents = [(_place(group), group.capitalize()) for group in groups] + [
        ("methods", "Methods and how they are tuned")
    ]
    sections.append(_methods(comparison))
    if comparison.failures:
        sections.append(_failures(comparison))
        contents.append(("failures", "Cells that failed"))
    return _PAGE.substitute(
        title="Holdfast: comparison" + (" (quick look)" if quick else ""),
        style=STYLE.read_text(encoding="utf-8"),
        legend=escape(LEGEND),
        summary=_summary(comparison, versions, quick),
        contents="\n".join(f'<li><a href="#{place}">{escape(text)}</a></li>' for place, text in contents),
        sections="\n".join(sections),
        source=escape(SOURCE),
        recorded=escape(about_recorded()),
    )


def _summary(comparison: Comparison, versions: Mapping[str, str], quick: bool) -> str:
    parts = ['<p class="notice open">Quick look: few seeds, wide intervals.</p>'] if quick else []
    if comparison.failures:
        parts.append(f'<p class="notice bad">{len(comparison.failures)} cells <a href="#failures">failed</a>.</p>')
    facts = {
        "Tests": str(len(comparison.tests)),
        "Methods": str(len(comparison.methods)),
        "Cells": str(sum(map(len, comparison.cells.values()))),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    rows = "\n".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return "\n".join([*parts, f'<dl class="facts">\n{rows}\n</dl>'])


def _section(comparison: Comparison, group: str, tables: Sequence[Block]) -> str:
    place = _place(group)
    parts = [
        f'<section id="{place}" aria-labelledby="{place}-title">',
        f'<h2 id="{place}-title">{escape(group.capitalize())}</h2>',
        f"<p>{escape(ABOUT_GROUPS[group])}</p>",
    ]
    told = [each for test in tables[0].tests for each in findings(comparison, test)]
    if told:
        items = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in told)
        parts.append(f"<h3>Who leads, and where we do not</h3>\n<ul>\n{items}\n</ul>")
    for block in tables:
        parts += [f"<h3>{escape(block.title)}</h3>", _table(block)]
    abouts = "\n".join(f"<dt>{escape(test)}</dt><dd>{escape(TESTS[test].about)}</dd>" for test in tables[0].tests)
    return "\n".join([*parts, f'<dl class="facts">\n{abouts}\n</dl>', "</section>"])


def _table(block: Block) -> str:
    rows = [(escape(title), {test: _cell(shown) for test, shown in row.items()}) for title, row in block.rows.items()]
    rows += [
        (f'<span class="faint">{escape(title)}</span>', {test: _value(value) for test, value in row.items()})
        for title, row in block.published.items()
    ]
    head = "".join(f'<th scope="col" role="columnheader">{escape(column)}</th>' for column in ("method", *block.tests))
    body = "\n".join(_row(title, cells, block.tests) for title, cells in rows)
    return (
        # What scrolls must be reachable by keyboard.
        f'<div class="wide" role="group" tabindex="0" aria-label="{escape(block.title)}">\n<table role="table">\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n<tbody role="rowgroup">\n{body}\n</tbody>\n'
        "</table>\n</div>"
    )


def _row(title: str, cells: Mapping[str, str], tests: Sequence[str]) -> str:
    """A row; the label of a cell stands in for the column head where rows are shown as cards."""
    body = "".join(f'<td role="cell" data-label="{escape(test)}">{cells.get(test, "")}</td>' for test in tests)
    return f'<tr role="row"><th scope="row" role="rowheader">{title}</th>{body}</tr>'


def _cell(shown: Shown) -> str:
    value, between = number(shown.estimate.value), interval(shown.estimate)
    strong = ' class="number leads"' if shown.leads else ' class="number"'
    return f'<span><span{strong}>{value}{shown.marks}</span><br><span class="number faint">{between}</span></span>'


def _value(value: float) -> str:
    return f'<span class="number faint">{number(value)}</span>'


def _methods(comparison: Comparison) -> str:
    chosen = [METHODS[name] for name in comparison.methods]
    rows = "\n".join(f"<dt>{escape(each.title)}</dt><dd>{escape(each.about)}</dd>" for each in chosen)
    title = '<h2 id="methods-title">Methods and how they are tuned</h2>'
    head = f'<section id="methods" aria-labelledby="methods-title">\n{title}'
    return f'{head}\n<dl class="facts">\n{rows}\n</dl>\n</section>'


def _failures(comparison: Comparison) -> str:
    items = "\n".join(
        f"<li>{escape(test)}, {escape(method)}, seed {seed}: {escape(error)}</li>"
        for (test, method, seed), error in comparison.failures.items()
    )
    title = '<h2 id="failures-title">Cells that failed</h2>'
    return f'<section id="failures" aria-labelledby="failures-title">\n{title}\n<ul>\n{items}\n</ul>\n</section>'


def _place(group: str) -> str:
    return group.replace(" ", "-")
