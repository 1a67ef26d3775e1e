"""Models of tables in the terminal."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.core.progress import counted

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.estimators.summary import TableSummary
    from holdfast.tables.models import TableModel


# Characters of the names of features for which other columns give way, and those that are printed in any case.
NAME_WIDTH, FEWEST = 24, 3
# Characters of the edges of a table, and of what follows a column: its padding and the divider.
EDGES, GAP = 2, 2
FILE_WIDTH = 160
# An argument with its value, as sentences of the estimators write it.
_ARGUMENT = re.compile(
    r'\b(?P<name>pooling|level|invariance|tolerance|significance|effects)="?(?P<value>\w+(\.\d+)?)"?'
)
# What a narrow terminal can do without, in this order.
_LEAST_NEEDED = (("[0.025", "0.975]"), ("effect",), ("std err",))


def new_table(
    title: str | None,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]] = (),
    *,
    left: Collection[str] = (),
    caption: str | None = None,
    **look: Any,
) -> Table:
    """A table for a terminal; columns are aligned to the right unless `left` has their headings.

    Example:
        >>> [column.justify for column in new_table("Signals", ("signal", "median"), left=("signal",)).columns]
        ['left', 'right']
    """
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left", **look)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def show(*parts: Table | str, width: int | None = None) -> None:
    """Print tables, and sentences as they are."""
    console = Console(width=width)
    for part in parts:
        console.print(escape(part) if isinstance(part, str) else part, highlight=False)


def show_model(model: "TableModel", summary: "TableSummary") -> None:
    """Print the features as in the summary of the fit, what effects are, remarks and the advice."""
    console = Console()
    # A file has room for whole names.
    width = console.width if console.is_terminal or "COLUMNS" in os.environ else FILE_WIDTH
    remarks = (one for one in summary.remarks if one not in model.advice)
    sentences = [*model.notes, *in_options([*remarks, *model.advice])]
    show(_table(model, summary, width), *map("- {}".format, sentences), width=width)


def in_options(sentences: Iterable[str]) -> list[str]:
    """Sentences that name arguments of Python, with the options of the command line instead.

    Example:
        >>> in_options(['level="environment" removes the levels; pooling=0 uses no other feature.'])
        ['--level environment removes the levels; --pooling 0 uses no other feature.']
    """
    return [_ARGUMENT.sub(lambda found: f"--{found['name']} {found['value']}", sentence) for sentence in sentences]


def show_held_out(errors: "pd.DataFrame", task: str) -> None:
    """Print the error in each environment when all others were fitted."""
    what = "Share of wrong classes" if task == "classification" else "Mean squared error"
    first = str(errors.index.name)
    rows = [(escape(str(label)), *map("{:.4g}".format, row)) for label, row in errors.iterrows()]
    table = new_table(
        None, (first, *map(str, errors.columns)), rows, left=(first,), box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_section()
    for name, summary in (("mean", errors.mean()), ("worst", errors.max())):
        table.add_row(name, *map("{:.4g}".format, summary))
    show(f"\n{what} in an environment that was not fitted", table)


def _table(model: "TableModel", summary: "TableSummary", width: int) -> Table:
    from holdfast.estimators.summary import COLUMNS, cell_text, shortened

    environments = f", {counted(len(model.effects), 'environment')}" if model.environment else ""
    title = escape(f"{model.task.capitalize()} of {model.target}: {model.rows} rows{environments}")
    frame = summary.table
    columns = {
        heading: [cell_text(column, value) for value in frame[column]] for heading, (column, _) in COLUMNS.items()
    }
    if summary.of_class:  # of more than two, the one that the row is about
        classes = dict(zip(summary.stability.index, map(str, summary.of_class), strict=True))
        columns = {"class": [classes[name] for name in frame.index]} | columns
    columns[""] = list(frame["verdict"])
    names = [str(name) for name in frame.index]
    longest = max(map(len, ["feature", *names]))
    for spare in _LEAST_NEEDED:
        if min(longest, NAME_WIDTH) + _width(columns) > width:
            columns = {heading: cells for heading, cells in columns.items() if heading not in spare}
    room = max(width - _width(columns), FEWEST)
    look: Any = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    headings = ("feature", *columns)
    table = new_table(title, headings, left=("feature", "class", ""), caption=escape(summary.legend), **look)
    for column in table.columns:
        column.no_wrap = True
    table.columns[0].max_width = room
    for name, selected, *cells in zip(shortened(names, room), frame["selected"], *columns.values(), strict=True):
        table.add_row(escape(name), *cells, style=None if selected else "dim")
    return table


def _width(columns: Mapping[str, Sequence[str]]) -> int:
    """Characters of a table beside the names of the features."""
    return EDGES + sum(GAP + max(map(len, [name, *cells])) for name, cells in columns.items())
