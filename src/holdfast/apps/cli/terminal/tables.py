"""Models of tables in the terminal."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
    title: str | None, headings: Sequence[str], *, left: Collection[str] = (), caption: str | None = None, **look: Any
) -> Table:
    """A table for a terminal; columns are aligned to the right unless `left` has their headings.

    Example:
        >>> [column.justify for column in new_table("Signals", ("signal", "median"), left=("signal",)).columns]
        ['left', 'right']
    """
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left", **look)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    return table


def show_model(model: "TableModel", summary: "TableSummary") -> None:
    """Print the features as in the summary of the fit, what effects are, remarks and the advice."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH  # a file has room for whole names
    console.print(_table(model, summary, console.width))
    remarks = (one for one in summary.remarks if one not in model.advice)
    show_advice([*model.notes, *in_options([*remarks, *model.advice])], console)


def show_passes(count: int) -> None:
    """Print how often a table was read."""
    Console().print(f"Read the data {count} {'time' if count == 1 else 'times'}.", highlight=False)


def show_advice(sentences: list[str], console: Console | None = None) -> None:
    """Print sentences, one per line."""
    console = console or Console()
    for sentence in sentences:
        console.print(f"- {sentence}", highlight=False, markup=False)


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
    table = new_table(None, (first, *map(str, errors.columns)), left=(first,), box=box.SIMPLE_HEAD, pad_edge=False)
    for label, row in errors.iterrows():
        table.add_row(escape(str(label)), *(f"{value:.4g}" for value in row))
    table.add_section()
    for name, summary in (("mean", errors.mean()), ("worst", errors.max())):
        table.add_row(name, *(f"{value:.4g}" for value in summary))
    console = Console()
    console.print(f"\n{what} in an environment that was not fitted", highlight=False)
    console.print(table)


def _table(model: "TableModel", summary: "TableSummary", width: int) -> Table:
    from holdfast.estimators.summary import COLUMNS, cell_text, shortened

    count = len(model.effects)
    environments = f", {count} {'environment' if count == 1 else 'environments'}" if model.environment else ""
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
