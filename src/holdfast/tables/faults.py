"""Why rows of a table cannot be used: cells that are missing, of another kind, or of a category that is not known."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from holdfast.tables.columns import LEAST_OF_ITS_KIND, Column, EncodedColumn, other_kind
from holdfast.tables.values import as_text


class CellFaults(NamedTuple):
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

    present: Counter[str]
    missing: Counter[str]
    unknown: Counter[str]
    stray: Counter[str]
    examples: Mapping[str, str]

    @classmethod
    def none(cls) -> "CellFaults":
        """Of no cells."""
        return cls(Counter(), Counter(), Counter(), Counter(), {})

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


def faults_of(name: str, values: pd.Series, missing: np.ndarray, *, imputed: bool = False) -> CellFaults:
    """The faults of one column that is no category.

    Args:
        name: of the column.
        values: its cells.
        missing: (rows,), which of them cannot be used.
        imputed: whether something stands for these.
    """
    odd = missing & values.notna().to_numpy() if missing.any() else missing
    blank = int(missing.sum()) - int(odd.sum())
    return CellFaults(
        Counter({name: len(values) - blank}),
        +Counter({name: 0 if imputed else int(missing.sum())}),
        Counter(),
        +Counter({name: int(odd.sum())}),
        {name: as_text(values[odd][:1]).iloc[0]} if odd.any() else {},
    )


def feature_faults(column: Column, values: pd.Series, encoded: EncodedColumn) -> CellFaults:
    """The faults of a column of features, of the same rows.

    Args:
        column: what it is.
        values: its cells.
        encoded: what they became.

    Example:
        >>> from holdfast.tables.columns import encode_column
        >>> soil, values = Column("soil", "category", ("clay", "sand")), pd.Series(["clay", "peat"])
        >>> feature_faults(soil, values, encode_column(values, soil)).reasons()
        ["soil has categories that the model does not know in 1, such as 'peat'"]
    """
    found = faults_of(column.name, values, encoded.missing, imputed=column.fill is not None)
    if not encoded.unknown.any():
        return found
    example = as_text(values[encoded.unknown][:1]).iloc[0]
    return found._replace(unknown=Counter({column.name: int(encoded.unknown.sum())}), examples={column.name: example})
