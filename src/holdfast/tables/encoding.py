"""Rows of a table as features, targets and environments, and why some of them cannot be used."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.tables.columns import LEAST_OF_ITS_KIND, Column, EncodedColumn, encode_column, features_frame, other_kind
from holdfast.tables.labels import EnvironmentRule
from holdfast.tables.values import as_numbers, as_text


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


class EncodedRows(NamedTuple):
    """Rows that have a target and an environment; the index has their positions in the table.

    Attributes:
        cells: of the table, or features.
        values: of the target.
        labels: of the environments; None: there is one.
        weights: how many rows each row stands for; None: one.
    """

    cells: pd.DataFrame
    values: pd.Series
    labels: pd.Series | None
    weights: pd.Series | None = None

    def where(self, mask: np.ndarray) -> "EncodedRows":
        """Some of the rows."""
        if mask.all():
            return self
        parts: list[Any] = [None if part is None else part[mask] for part in self]
        return EncodedRows(*parts)


class RowEncoding(NamedTuple):
    """How the rows of a table become features, targets and environments; what a worker needs to know about a survey.

    Attributes:
        target, target_numeric, environment, columns: as in `Survey`.
        decimal: the decimal sign of numbers that are written as text.
        weights: name of the column that says how many rows each row stands for; None: one.

    Example:
        >>> encoding = RowEncoding("yield", True, EnvironmentRule(()), (Column("light"),), ".")
        >>> rows = encoding.complete(pd.DataFrame({"light": [1.0, None, 2.0], "yield": [3.0, 4.0, None]}))
        >>> rows.cells["light"].tolist(), rows.values.tolist()
        ([1.0], [3.0])
    """

    target: str
    target_numeric: bool
    environment: EnvironmentRule
    columns: tuple[Column, ...]
    decimal: str
    weights: str | None = None

    def complete(self, chunk: pd.DataFrame, *, encoded: bool = True) -> EncodedRows:
        """The rows of a chunk without missing values, with their features or, not encoded, with their cells."""
        return self.examined(chunk, encoded=encoded)[0]

    def examined(self, chunk: pd.DataFrame, *, encoded: bool = True) -> tuple[EncodedRows, CellFaults]:
        """The same, and why the other rows cannot be used: features of those that have a target and an environment."""
        rows, faults = self.labelled(chunk)
        coded, found = encoded_columns(rows.cells, self.columns, self.decimal)
        faults = faults.merge(found)
        whole = np.ones(len(rows.cells), bool)
        for column, (_, missing, unknown) in zip(self.columns, coded, strict=True):
            whole &= ~unknown if column.fill is not None else ~(missing | unknown)
        names = [column.name for column in self.columns]
        cells = features_frame(coded, rows.cells, self.columns) if encoded else rows.cells[names]
        return rows._replace(cells=cells).where(whole), faults

    def labelled(self, chunk: pd.DataFrame) -> tuple[EncodedRows, CellFaults]:
        """The rows of a chunk that have a target and an environment, with their cells, and what the others lack."""
        values = chunk[self.target]
        if self.target_numeric:
            values = pd.Series(as_numbers(values, self.decimal), chunk.index, name=self.target, copy=False)
        else:
            values = as_text(values)
        parts = self.environment.parts(chunk, self.decimal)
        weights, required = None, {self.target: values, **parts}
        if self.weights is not None:
            weights = required[self.weights] = pd.Series(as_numbers(chunk[self.weights], self.decimal), chunk.index)
        faults, known = CellFaults(), np.ones(len(chunk), bool)
        for name, part in required.items():
            missing = part.isna().to_numpy()
            faults = faults.merge(faults_of(name, chunk[name], missing))
            known &= ~missing
        return EncodedRows(chunk, values, self.environment.joined(parts), weights).where(known), faults


def encoded_columns(
    cells: pd.DataFrame, columns: Sequence[Column], decimal: str
) -> tuple[list[EncodedColumn], CellFaults]:
    """Columns as numbers, and what is wrong with their cells.

    Example:
        >>> encoded_columns(pd.DataFrame({"light": [1.0, None]}), [Column("light")], ".")[1].reasons()
        ['light is missing in 1']
    """
    coded, faults = [], CellFaults()
    for column in columns:
        own = cells[column.name]
        coded.append(encode_column(own, column, decimal))
        found = faults_of(column.name, own, *coded[-1][1:], imputed=column.fill is not None)
        faults = faults.merge(found)
    return coded, faults


def class_labels(values: pd.Series) -> Any:
    """Classes as labels: whole numbers as integers, so that 0 and 1 are not called 0.0 and 1.0, others as text.

    Example:
        >>> class_labels(pd.Series([0.0, 1.0])).tolist(), class_labels(pd.Series(["no", "yes"])).tolist()
        ([0, 1], ['no', 'yes'])
    """
    if not pd.api.types.is_float_dtype(values):
        return values
    whole = (values == values.round()).all() and (values.abs() < 2**53).all()
    return values.astype(int) if whole else values.map(repr)
