"""The recorded results on coloured MNIST for the report and the documentation.

    python -m holdfast.comparison.images.recorded_report docs

writes the table into the folder of the documentation.
"""

import sys
from pathlib import Path

from holdfast.comparison.images.published import published_accuracies
from holdfast.comparison.images.recorded_images import about_recorded_images, table_rows
from holdfast.core.writing import write_text
from holdfast.reproduction.page import RecordedSection

TABLE = "coloured_mnist_table.md"


def recorded_section() -> RecordedSection:
    """The table, as a section of the report of a reproduction.

    Example:
        >>> recorded_section().columns
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    head, *rows = table_rows()
    return RecordedSection(
        name="coloured-mnist",
        title="Coloured MNIST",
        about=about_recorded_images(),
        columns=head,
        rows=tuple(rows),
    )


def to_markdown() -> str:
    """The table for the documentation, with the published numbers below it.

    Example:
        >>> to_markdown().splitlines()[2]
        '| method | 0.8 and 0.9 | 0.9 and 0.3 |'
    """
    published = "Published, with the agreements 0.8 and 0.9:"
    parts = (about_recorded_images(), _table(table_rows()), published, _table(published_rows()))
    return "\n\n".join(parts) + "\n"


def published_rows() -> list[tuple[str, ...]]:
    """The table of what others published: its head, then a row for each number.

    Example:
        >>> published_rows()[0]
        ('method', 'accuracy', 'settings chosen by', 'source')
    """
    rows: list[tuple[str, ...]] = [("method", "accuracy", "settings chosen by", "source")]
    for each in published_accuracies():
        source = f"[arXiv:{each.source.arxiv}](https://arxiv.org/abs/{each.source.arxiv}), {each.source.table}"
        rows.append((each.method, f"{each.test / 100:.3f} ± {each.spread / 100:.3f}", each.rule, source))
    return rows


def _table(rows: list[tuple[str, ...]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def main(folder: str) -> None:
    """Write the table into the folder of the documentation."""
    write_text(Path(folder) / TABLE, to_markdown())


if __name__ == "__main__":
    main(*sys.argv[1:])
