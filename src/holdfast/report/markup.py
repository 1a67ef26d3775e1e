"""What the pages of a report have in common: the frame, and the parts that sections are made of."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

STYLE = Path(__file__).parent / "templates" / "style.css"

_DOCUMENT = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
<p>$lead</p>
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
$footer
</footer>
</body>
</html>
""")


def document(
    title: str, *, lead: str, summary: str, contents: Mapping[str, str], sections: Sequence[str], footer: Sequence[str]
) -> str:
    """A whole page that needs no other file.

    Args:
        title: as text.
        lead: what the page is about, as markup.
        summary: as markup.
        contents: id of a section -> its name, as text.
        sections: as markup, see `section`.
        footer: paragraphs, as markup.
    """
    links = (f'<li><a href="#{escape(place)}">{escape(text)}</a></li>' for place, text in contents.items())
    return _DOCUMENT.substitute(
        title=escape(title),
        style=STYLE.read_text(encoding="utf-8"),
        lead=lead,
        summary=summary,
        contents="\n".join(links),
        sections="\n".join(sections),
        footer="\n".join(f"<p>{paragraph}</p>" for paragraph in footer),
    )


def section(place: str, title: str, *parts: str) -> str:
    """A section with a heading; the parts are markup."""
    place = escape(place)
    head = f'<section id="{place}" aria-labelledby="{place}-title">\n<h2 id="{place}-title">{escape(title)}</h2>'
    return "\n".join([head, *parts, "</section>"])


def items(sentences: Sequence[str]) -> str:
    """A list of sentences, given as text."""
    return "<ul>\n" + "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "\n</ul>"


def facts(known: Mapping[str, str]) -> str:
    """Names and what belongs to them, both as text."""
    rows = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in known.items())
    return f'<dl class="facts">\n{rows}\n</dl>'


def notice(tone: str, text: str) -> str:
    """A line that stands out; the text is markup."""
    return f'<p class="notice {tone}">{text}</p>'


def table(columns: Sequence[str], rows: Sequence[str]) -> str:
    """A table; see `row`."""
    head = "".join(f'<th scope="col" role="columnheader">{escape(column)}</th>' for column in columns)
    return "\n".join([
        '<table role="table">',
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>',
        '<tbody role="rowgroup">',
        *rows,
        "</tbody>",
        "</table>",
    ])  # fmt: skip


def row(head: str, cells: Mapping[str, str], place: str | None = None) -> str:
    """A row; the label of a cell stands in for the column head where rows are shown as cards.

    Args:
        head: of the row, as markup.
        cells: label -> markup.
        place: id of the row, for links to it.
    """
    body = "".join(f'<td role="cell" data-label="{escape(name)}">{cell}</td>' for name, cell in cells.items())
    attribute = "" if place is None else f' id="{escape(place)}"'
    return f'<tr role="row"{attribute}><th scope="row" role="rowheader">{head}</th>{body}</tr>'
