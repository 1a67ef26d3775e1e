"""Why rows of a table cannot be used: cells that are missing, of another kind, or of a category that is not known."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from holdfast.tables.columns import LEAST_OF_ITS_KIND, Column, other_kind
from holdfast.tables.values import as_text


@dataclass(frozen=True)
class CellFaults:
    """What is wrong with the cells of some rows; faults of chunks are merged, however a table is cut.

    Attributes:
        present: column -> rows that have some value.
        missing: column -> rows that lack a value, or have a stray one, and for which none is imputed.
        unknown: column -> rows with a category that the model does not know.
        stray: column of numbers or dates -> rows in which it holds something else, which counts as missing.
        examples: column -> an unknown or a stray value.

    Example:
        >>> values = pd.Series(["1", "x", None])
        >>> first = faults_of("light", values, np.array([False, True, True]))
        >>> first.merge(first).reasons()
        ['light is missing in 4']
        >>> first.about_stray(3)
        ["light has values such as 'x' in 1 of 3 rows, which count as missing."]
    """

    present: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    stray: Counter[str] = field(default_factory=Counter)
    examples: Mapping[str, str] = field(default_factory=dict)

    def merge(self, after: "CellFaults") -> "CellFaults":
        """With those of the rows after these, or of other columns."""
        return CellFaults(
            self.present + after.present,
            self.missing + after.missing,
            self.unknown + after.unknown,
            self.stray + after.stray,
            {**after.examples, **self.examples},
        )

    def about_stray(self, rows: int) -> list[str]:
        """Which columns hold something else than numbers or dates, a sentence for each."""
        return [
            f"{name} has values such as {self.examples[name]!r} in {count} of {rows} rows, which count as missing."
            for name, count in _most_first(self.stray)
        ]

    def reasons(self) -> list[str]:
        """Why rows cannot be used, column by column."""
        return [f"{name} is missing in {count}" for name, count in _most_first(self.missing)] + [
            f"{name} has categories that the model does not know in {count}, such as {self.examples[name]!r}"
            for name, count in _most_first(self.unknown)
        ]

    def check_kind(self, column: Column, file: str) -> None:
        """Raise a ValueError if most values of a column of numbers or dates are something else."""
        if self.stray[column.name] > (1 - LEAST_OF_ITS_KIND) * self.present[column.name]:
            raise ValueError(other_kind(column, "values", self.examples[column.name], file))


def _most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    """Of equal counts in the order of the alphabet: where a table is cut does not matter."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def faults_of(
    name: str, cells: pd.Series, missing: np.ndarray, unknown: np.ndarray | None = None, *, imputed: bool = False
) -> CellFaults:
    """The faults of one column.

    Args:
        name: of the column.
        cells: of some rows.
        missing: (rows,), which of them have no value of the kind of the column.
        unknown: (rows,), which of them have a category that is new; None: none.
        imputed: whether something stands for missing values.

    Example:
        >>> faults_of("soil", pd.Series(["clay", "peat"]), np.zeros(2, bool), np.array([False, True])).reasons()
        ["soil has categories that the model does not know in 1, such as 'peat'"]
    """
    lacking, new = int(missing.sum()), 0 if unknown is None else int(unknown.sum())
    odd = missing & cells.notna().to_numpy() if lacking else missing
    stray = int(odd.sum())
    shown = unknown if new else odd if stray else None
    return CellFaults(
        Counter({name: len(cells) - lacking + stray}),
        +Counter({name: 0 if imputed else lacking}),
        +Counter({name: new}),
        +Counter({name: stray}),
        {} if shown is None else {name: as_text(cells[shown][:1]).iloc[0]},
    )
