"""Models of tables in the terminal."""

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.io.models import TableModel


def show_model(model: "TableModel") -> None:
    """Print the features with their coefficients and stability, and the advice."""
    console = Console()
    console.print(_table(model))
    show_advice([*model.notes, *model.advice], console)


def show_advice(sentences: list[str], console: Console | None = None) -> None:
    """Print sentences, one per line."""
    console = console or Console()
    for sentence in sentences:
        console.print(f"- {sentence}", highlight=False, markup=False)


def show_held_out(errors: "pd.DataFrame", task: str) -> None:
    """Print the error in each environment when all others were fitted."""
    what = "Share of wrong classes" if task == "classification" else "Mean squared error"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(str(errors.index.name))
    for name in errors.columns:
        table.add_column(str(name), justify="right")
    for label, row in errors.iterrows():
        table.add_row(escape(str(label)), *(f"{value:.4g}" for value in row))
    table.add_section()
    for name, summary in (("mean", errors.mean()), ("worst", errors.max())):
        table.add_row(name, *(f"{value:.4g}" for value in summary))
    console = Console()
    console.print(f"\n{what} in an environment that was not fitted", highlight=False)
    console.print(table)


def _table(model: "TableModel") -> Table:
    environments = f", {len(model.effects)} environments" if model.environment else ""
    title = escape(f"{model.task.capitalize()} of {model.target}: {model.rows} rows{environments}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("feature", overflow="ellipsis")  # the only column that gives way in a narrow terminal
    for column in ("coefficient", "lowest", "highest", "exponent", "survived"):
        table.add_column(column, justify="right", no_wrap=True, min_width=max(8, len(column)))
    table.add_column("", no_wrap=True, min_width=len("washed out"))
    # selected features first, then those that were washed out
    for row in sorted(model.stability, key=lambda row: (row["coefficient"] == 0, not row["varies"])):
        verdict = "selected" if row["coefficient"] else ("washed out" if row["varies"] else "not needed")
        numbers = (f"{row[name]:.3g}" if row[name] is not None else "-" for name in ("lowest_effect", "highest_effect"))
        table.add_row(
            escape(str(next(iter(row.values())))),
            f"{row['coefficient']:.3g}",
            *numbers,
            f"{row['exponent']:.4f}",
            f"{row['survived']:.0%}",
            verdict,
            style=None if row["coefficient"] else "dim",
        )
    unit = "log-odds" if model.task == "classification" else f"units of {model.target}"
    table.caption = escape(
        f"lowest, highest: effect over the environments that measure it well, given the selected features, in {unit}"
    )
    table.caption_justify = "left"
    return table
