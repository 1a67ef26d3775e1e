"""One pass over a table: what the cells of each column are, counted."""

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.tables.passes import ChunkedRows, Columns, Passes
from holdfast.tables.sampling import PART_SPAN
from holdfast.tables.values import as_days, as_numbers, as_text, grouped, is_date, is_text

# Text in at most this share of a column of numbers (or dates) is a missing value, not the end of the column.
MOST_STRAY_TEXT = 0.01
# Different values of a column are counted up to this number; with more it is an identifier for sure.
MOST_COUNTED = 1000
# Different values of a column that are noted: three tell a constant, two classes, and more apart.
SMALLEST = 3


class Rise(NamedTuple):
    """Whole numbers that rise from row to row.

    Attributes:
        first, last: of the rows.
    """

    first: int
    last: int


@dataclass(frozen=True)
class ColumnScan:
    """What a pass over a table finds in one column; findings of chunks are merged, however the table is cut.

    Attributes:
        rows, missing: all rows, and those without a value.
        numbers, dates: cells that are numbers, and cells that are dates.
        infinite: numbers that are not finite.
        by_type: whether numbers came from a chunk that was not read as text, so that 01 may have become 1.
        values: how often each text occurs; None if there are too many.
        seen_numbers, seen_texts: the three smallest different values, in order; numbers of noted columns alone.
        stray: the first text, in the order of the alphabet, that is no number, and the first that is no date.
        thousands: a number with thousands separators, the first in the order of the alphabet.
        rise: of a column of whole numbers that rise from row to row; None of any other.

    Example:
        >>> first, second = (scan_column(pd.Series(values)) for values in ([1, 2], [5]))
        >>> first.merge(second).rise, second.merge(first).rise
        (Rise(first=1, last=5), None)
    """

    rows: int = 0
    missing: int = 0
    numbers: int = 0
    dates: int = 0
    infinite: int = 0
    by_type: bool = False
    values: Counter[str] | None = field(default_factory=Counter)
    seen_numbers: tuple[float, ...] = ()
    seen_texts: tuple[str, ...] = ()
    stray: Mapping[str, str] = field(default_factory=dict)
    thousands: str | None = None
    rise: Rise | None = None

    @property
    def present(self) -> int:
        """Cells with a value."""
        return self.rows - self.missing

    @property
    def kind(self) -> str:
        """What the column is: empty, number, date or category."""
        allowed = MOST_STRAY_TEXT * self.present
        if self.present == 0:
            return "empty"
        if self.present - self.numbers <= allowed:
            return "number"
        return "date" if self.present - self.dates <= allowed else "category"

    @property
    def holds_numbers(self) -> bool:
        """Whether all its values are numbers."""
        return self.numbers == self.present

    def merge(self, after: "ColumnScan") -> "ColumnScan":
        """What these rows hold together with the ones after them."""
        if not self.rows or not after.rows:
            return self if self.rows else after
        values = None
        if self.values is not None and after.values is not None:
            values = _few(self.values + after.values)
        return ColumnScan(
            self.rows + after.rows,
            self.missing + after.missing,
            self.numbers + after.numbers,
            self.dates + after.dates,
            self.infinite + after.infinite,
            self.by_type or after.by_type,
            values,
            tuple(sorted({*self.seen_numbers, *after.seen_numbers})[:SMALLEST]),
            tuple(sorted({*self.seen_texts, *after.seen_texts})[:SMALLEST]),
            {
                kind: min(one[kind] for one in (self.stray, after.stray) if kind in one)
                for kind in self.stray.keys() | after.stray.keys()
            },
            min((text for text in (self.thousands, after.thousands) if text is not None), default=None),
            _joined(self.rise, after.rise),
        )


def scan_column(values: pd.Series, decimal: str = ".", *, noted: bool = False) -> ColumnScan:
    """What one chunk of a column holds.

    Args:
        values: the cells.
        decimal: the decimal sign of numbers that are written as text.
        noted: whether its smallest numbers are noted, which takes a while.
    """
    rows, missing = len(values), int(values.isna().sum())
    if is_text(values):
        return _scan_text(as_text(values).value_counts(), decimal, rows, missing)
    if is_date(values):
        texts = as_text(pd.Series(sorted(values.dropna().unique())[:SMALLEST], dtype=values.dtype))
        return ColumnScan(rows, missing, dates=rows - missing, seen_texts=tuple(sorted(texts)))
    numbers = as_numbers(values)
    known = np.isfinite(numbers)
    finite = int(known.sum())
    return ColumnScan(
        rows,
        missing,
        numbers=rows - missing,
        infinite=rows - missing - finite,
        by_type=finite > 0,
        seen_numbers=_smallest_numbers(values[known].to_numpy()) if noted else (),
        rise=_rise(values),
    )


def _scan_text(counts: pd.Series, decimal: str, rows: int, missing: int) -> ColumnScan:
    texts = pd.Series(counts.index, dtype=object)
    weights = counts.to_numpy()
    numbers = as_numbers(texts, decimal)
    # Dates look like no number and are rarely mixed with them, so that most columns need no second look.
    days = as_days(texts) if np.isnan(numbers).any() else np.full(len(texts), np.nan)
    return ColumnScan(
        rows,
        missing,
        numbers=int(weights[~np.isnan(numbers)].sum()),
        dates=int(weights[~np.isnan(days)].sum()),
        values=_few(dict(zip(texts, weights.tolist(), strict=True))),
        seen_numbers=_smallest_numbers(numbers[~np.isnan(numbers)]),
        seen_texts=tuple(heapq.nsmallest(SMALLEST, texts)),
        stray={
            kind: min(texts[np.isnan(parsed)])
            for kind, parsed in (("number", numbers), ("date", days))
            if np.isnan(parsed).any()
        },
        thousands=min((text for text in texts if grouped(text.strip(), decimal)), default=None),
    )


def _few(counts: dict[str, int]) -> Counter[str] | None:
    return Counter(counts) if len(counts) <= MOST_COUNTED else None


def _smallest_numbers(numbers: np.ndarray) -> tuple[float, ...]:
    """The smallest different ones, in order."""
    found: list[float] = []
    while len(numbers) and len(found) < SMALLEST:
        found.append(numbers.min().item())
        numbers = numbers[numbers > found[-1]]
    return tuple(found)


def _rise(values: pd.Series) -> Rise | None:
    if len(values) and pd.api.types.is_integer_dtype(values) and not values.isna().any():
        numbers = values.to_numpy()
        if (numbers[1:] > numbers[:-1]).all():
            return Rise(int(numbers[0]), int(numbers[-1]))
    return None


def _joined(before: Rise | None, after: Rise | None) -> Rise | None:
    if before is None or after is None or before.last >= after.first:
        return None
    return Rise(before.first, after.last)


class TableScan(NamedTuple):
    """What a pass over a table finds.

    Attributes:
        columns: name -> what the column holds.
        lengths: file or partition -> its rows.
    """

    columns: dict[str, ColumnScan]
    lengths: Counter[int]

    @property
    def rows(self) -> int:
        """In all."""
        return sum(self.lengths.values())

    def merge(self, after: "TableScan") -> "TableScan":
        """With the rows after these."""
        columns = {name: column.merge(after.columns[name]) for name, column in self.columns.items()}
        return TableScan(columns, self.lengths + after.lengths)


def scan(
    table: ChunkedRows,
    columns: Sequence[str],
    text: Collection[str],
    chunk_rows: int,
    passes: Passes,
    *,
    noted: Collection[str],
    progress: Progress | None = None,
) -> TableScan:
    """Read a table once.

    Args:
        table: to be read.
        columns: to be looked at.
        text: columns to be read as text.
        chunk_rows: rows in a chunk.
        passes: by which it is read.
        noted: the columns whose smallest numbers are noted.
        progress: called with (done, total).
    """
    collect = partial(_scan_chunk, decimal=table.decimal, noted=noted)
    found = passes.reduce(table, Columns(columns, text, chunk_rows), collect, TableScan.merge, progress)
    return found or TableScan({name: ColumnScan() for name in columns}, Counter())


def _scan_chunk(chunk: pd.DataFrame, decimal: str, noted: Collection[str]) -> TableScan:
    columns = {str(name): scan_column(chunk[name], decimal, noted=name in noted) for name in chunk.columns}
    return TableScan(columns, row_counts(chunk))


def row_counts(chunk: pd.DataFrame) -> Counter[int]:
    """The file or the partition of a chunk -> its rows in the chunk; nothing of no rows.

    Example, of the second partition:
        >>> row_counts(pd.DataFrame({"light": [1.0, 2.0]}, index=[PART_SPAN, PART_SPAN + 1]))
        Counter({1: 2})
    """
    return Counter({int(chunk.index[0]) // PART_SPAN: len(chunk)}) if len(chunk) else Counter()
