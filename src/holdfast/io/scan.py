"""One pass over a table: what the cells of each column are, counted."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.io.reading import TableFiles
from holdfast.io.values import as_days, as_numbers, as_text, grouped, is_date, is_text

# Text in at most this share of a column of numbers (or dates) is a missing value, not the end of the column.
MOST_STRAY_TEXT = 0.01
# Different values of a column are counted up to this number; with more it is an identifier for sure.
MOST_COUNTED = 1000


@dataclass
class ColumnScan:
    """What a pass over a table finds in one column.

    Attributes:
        rows, missing: all rows, and those without a value.
        numbers, dates: cells that are numbers, and cells that are dates.
        infinite: numbers that are not finite.
        by_type: whether numbers came from a chunk that was not read as text, so that 01 may have become 1.
        values: how often each text occurs; None if there are too many.
        seen_numbers, seen_texts: some different values, at least three if there are that many.
        stray: a text that is no number, and one that is no date.
        thousands: a number with thousands separators.
        last: the last value, while whole numbers have been rising from row to row.
    """

    rows: int = 0
    missing: int = 0
    numbers: int = 0
    dates: int = 0
    infinite: int = 0
    by_type: bool = False
    values: Counter[str] | None = field(default_factory=Counter)
    seen_numbers: set[float] = field(default_factory=set)
    seen_texts: set[str] = field(default_factory=set)
    stray: dict[str, str] = field(default_factory=dict)
    thousands: str | None = None
    last: int | None = None

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

    def add(self, values: pd.Series, decimal: str) -> None:
        """Count the cells of a chunk."""
        first = self.rows == 0
        self.rows += len(values)
        self.missing += int(values.isna().sum())
        if first or self.last is not None:
            self._follow(values)
        if is_text(values):
            self._add_text(as_text(values).value_counts(), decimal)
        elif is_date(values):
            self.dates += int(values.notna().sum())
            self.seen_texts |= set(as_text(values.dropna().drop_duplicates()[:3]))
        else:
            numbers = as_numbers(values)
            finite = int(np.isfinite(numbers).sum())
            self.numbers += int(values.notna().sum())
            self.infinite += int(values.notna().sum()) - finite
            self.by_type = self.by_type or finite > 0
            if len(self.seen_numbers) < 3:
                self.seen_numbers |= set(values[np.isfinite(numbers)].unique()[:3].tolist())

    def _add_text(self, counts: pd.Series, decimal: str) -> None:
        texts = pd.Series(counts.index, dtype=object)
        weights = counts.to_numpy()
        numbers = as_numbers(texts, decimal)
        self.numbers += int(weights[~np.isnan(numbers)].sum())
        # Dates look like no number and are rarely mixed with them, so that most columns need no second look.
        days = as_days(texts) if np.isnan(numbers).any() else np.full(len(texts), np.nan)
        self.dates += int(weights[~np.isnan(days)].sum())
        for kind, parsed in (("number", numbers), ("date", days)):
            if kind not in self.stray and np.isnan(parsed).any():
                self.stray[kind] = texts[int(np.argmax(np.isnan(parsed)))]
        if self.thousands is None:
            self.thousands = next((text for text in texts if grouped(text.strip(), decimal)), None)
        if len(self.seen_numbers) < 3:
            self.seen_numbers |= set(np.unique(numbers[~np.isnan(numbers)])[:3].tolist())
        if len(self.seen_texts) < 3:
            self.seen_texts |= set(texts[:3])
        if self.values is not None:
            self.values.update(dict(zip(texts, weights.tolist(), strict=True)))
            if len(self.values) > MOST_COUNTED:
                self.values = None

    def _follow(self, values: pd.Series) -> None:
        """Note the last value if whole numbers rise through this chunk, too."""
        before, self.last = self.last, None
        if len(values) and pd.api.types.is_integer_dtype(values) and not values.isna().any():
            numbers = values.to_numpy()
            if (numbers[1:] > numbers[:-1]).all() and (before is None or numbers[0] > before):
                self.last = int(numbers[-1])


def scan(
    table: TableFiles,
    columns: Sequence[str],
    text: Collection[str],
    chunk_rows: int,
    progress: Progress | None = None,
) -> tuple[int, dict[str, ColumnScan]]:
    """Read a table once; returns the number of rows and what each column holds.

    Args:
        table: the files.
        columns: to be looked at.
        text: columns to be read as text.
        chunk_rows: rows in a chunk.
        progress: called with (bytes read, bytes in all).
    """
    found = {name: ColumnScan() for name in columns}
    rows = 0
    for chunk in table.chunks(chunk_rows, text, columns, progress):
        rows += len(chunk)
        for name in columns:
            found[name].add(chunk[name], table.decimal)
    return rows, found
