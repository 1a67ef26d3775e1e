"""Models of tables in the terminal."""

import ast
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.estimators.summary import TableSummary
    from holdfast.tables.models import TableModel


# An argument with its value, as sentences of the estimators write it.
_ARGUMENT = re.compile(
    r'\b(?P<name>pooling|level|invariance|tolerance|significance|effects)="?(?P<value>\w+(\.\d+)?)"?'
)
COLUMNS_ARGUMENT = re.compile(r"""\b(before|after)=(\[('([^'\\]|\\.)*'|"([^"\\]|\\.)*")\])""")


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


def show(*parts: Table | str) -> None:
    """Print tables, and sentences as they are."""
    console = Console()
    for part in parts:
        console.print(escape(part) if isinstance(part, str) else part, highlight=False)


def show_model(model: "TableModel", summary: "TableSummary") -> None:
    """Print the summary of a fit, with its advice and with notes about it and about the table."""
    from holdfast.estimators.summary import WIDTH

    width = min(shutil.get_terminal_size((WIDTH, 0)).columns, WIDTH)
    print(replace(summary, advice=in_options(model.advice), notes=in_options(model.notes)).text(width))


def in_options(sentences: Iterable[str]) -> list[str]:
    """Sentences that name arguments of Python, with the options of the command line instead.

    Example:
        >>> in_options(['level="environment" removes the levels; pooling=0 uses no other feature.'])
        ['--level environment removes the levels; --pooling 0 uses no other feature.']
        >>> in_options(["If so, say after=['wind speed']; otherwise before=['wind speed']."])
        ["If so, say --after 'wind speed'; otherwise --before 'wind speed'."]
    """
    plain = (_ARGUMENT.sub(lambda found: f"--{found['name']} {found['value']}", sentence) for sentence in sentences)
    return [
        COLUMNS_ARGUMENT.sub(lambda found: f"--{found[1]} {shlex.join(ast.literal_eval(found[2]))}", sentence)
        for sentence in plain
    ]


def show_held_out(errors: "pd.DataFrame", task: str) -> None:
    """Print the error in each environment when all others were fitted."""
    import pandas as pd

    what = "Share of wrong classes" if task == "classification" else "Mean squared error"
    rows = pd.concat([errors, errors.agg(["mean", "max"]).rename({"max": "worst"})])
    print(f"\n{what} in an environment that was not fitted", rows.to_string(float_format="{:.4g}".format), sep="\n")
