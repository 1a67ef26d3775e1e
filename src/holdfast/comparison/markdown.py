"""A comparison as Markdown, for the documentation."""

from holdfast.comparison.findings import findings
from holdfast.comparison.public_tests import ABOUT_GROUPS, PUBLIC_TESTS
from holdfast.comparison.runner import Comparison
from holdfast.comparison.table import LEGEND, Shown, blocks, interval, number, seed_count


def markdown(comparison: Comparison) -> str:
    """All tables, and who leads in each, as they stand in the documentation."""
    parts = [LEGEND]
    told: list[str] = []
    for block in blocks(comparison):
        if block.group not in told:
            told.append(block.group)
            sentences = [each for test in block.tests for each in findings(comparison, test)]
            parts.append(f"### {block.group.capitalize()}\n\n{ABOUT_GROUPS[block.group]}")
            parts.append("\n".join(f"- {sentence}" for sentence in sentences))
        seeds = ", ".join(dict.fromkeys(_seeds(comparison, test) for test in block.tests))
        parts.append(f"**{block.title}** ({seeds})")
        head = f"| method | {' | '.join(block.tests)} |"
        lines = [head, "|---|" + "---|" * len(block.tests)]
        for title, row in block.rows.items():
            cells = [_markdown_cell(row[test]) if test in row else "" for test in block.tests]
            lines.append(f"| {title} | {' | '.join(cells)} |")
        for title, others in block.published.items():
            cells = [number(others[test]) if test in others else "" for test in block.tests]
            lines.append(f"| *{title}* | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _markdown_cell(shown: Shown) -> str:
    value = number(shown.estimate.value)
    return f"{f'**{value}**' if shown.leads else value}{shown.marks.lstrip('*')} ({interval(shown.estimate)})"


def _seeds(comparison: Comparison, test: str) -> str:
    return f"{seed_count(comparison, test)} {'folds' if PUBLIC_TESTS[test].folds else 'data seeds'}"
