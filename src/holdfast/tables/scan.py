"""One pass over a table: what the cells of each column are, counted."""

import heapq
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from holdfast.tables.columns import COLUMN_TYPES, LEAST_OF_ITS_KIND, MOST_COUNTED, ScalarType
from holdfast.tables.passes import row_counts
from holdfast.tables.values import all_numbers, as_text, coded_text, dressing, is_date, is_number, marks_missing

# Cells of another kind in at most this share of a column are missing values, not the end of the column.
MOST_STRAY_TEXT = 0.01
# So are marks of missing values: common ones, and texts without a digit that are repeated, in at most this share.
MOST_REPEATED = 0.1
# Texts of another kind that are counted, the first in the order of the alphabet.
STRAY_COUNTED = 100
# In fewer rows, whole numbers may rise from row to row by chance or by design.
FEWEST_NUMBERED = 20
_INTEGER, _DIGIT = re.compile(r"[+-]?\d+"), re.compile(r"\d")


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
        fitting: kind -> cells that are of it; numbers are not looked at as anything else.
        infinite: kind -> those of them that are not finite.
        values: how often each text occurs; None if there are too many.
        stray: kind -> how often each text occurs that is not of it, of the first ones in the order of the alphabet.
        dressed: currency sign, or "" for thousands separators alone -> the first such number, in that order.
        rise: of a column of whole numbers that rise from row to row; None of any other.
        decimal: the decimal sign of numbers that are written as text.

    Example:
        >>> first, second = (scan_column(pd.Series(values)) for values in ([1, 2], [5]))
        >>> first.merge(second).rise, second.merge(first).rise
        (Rise(first=1, last=5), None)
    """

    rows: int = 0
    missing: int = 0
    fitting: Counter[str] = field(default_factory=Counter)
    infinite: Counter[str] = field(default_factory=Counter)
    values: Counter[str] | None = field(default_factory=Counter)
    stray: Mapping[str, Counter[str]] = field(default_factory=dict)
    dressed: Mapping[str, str] = field(default_factory=dict)
    rise: Rise | None = None
    decimal: str = "."

    @property
    def present(self) -> int:
        """Cells with a value."""
        return self.rows - self.missing

    @property
    def kind(self) -> str:
        """What the column is: empty, or one of `COLUMN_TYPES`."""
        if self.present == 0:
            return "empty"
        return next((kind for kind in COLUMN_TYPES if self._is(kind)), "category")

    def _is(self, kind: str) -> bool:
        """Whether nearly all cells are of a kind, or stand for missing values."""
        if (fitting := self.fitting[kind]) < LEAST_OF_ITS_KIND * self.present:
            return False
        stray = self.stray.get(kind, Counter[str]())
        known = sum(count for text, count in stray.items() if marks_missing(text))
        repeated = sum(
            count for text, count in stray.items() if count > 1 and not (marks_missing(text) or _DIGIT.search(text))
        )
        marks = known + (repeated if repeated <= MOST_REPEATED * self.present else 0)
        return self.present - fitting - marks <= MOST_STRAY_TEXT * (self.present - marks)

    @property
    def holds_numbers(self) -> bool:
        """Whether all its values are numbers."""
        return self.fitting["number"] == self.present

    @property
    def rises(self) -> bool:
        """Whether it numbers the rows."""
        return self.rise is not None and self.rows >= FEWEST_NUMBERED

    def merge(self, after: "ColumnScan") -> "ColumnScan":
        """What these rows hold together with the ones after them."""
        if not self.rows or not after.rows:
            return self if self.rows else after
        rise = None
        if self.rise is not None and after.rise is not None and self.rise.last < after.rise.first:
            rise = Rise(self.rise.first, after.rise.last)
        return ColumnScan(
            self.rows + after.rows,
            self.missing + after.missing,
            self.fitting + after.fitting,
            self.infinite + after.infinite,
            None if self.values is None or after.values is None else _few(self.values + after.values),
            {
                kind: _first(self.stray.get(kind, Counter()) + after.stray.get(kind, Counter()))
                for kind in self.stray.keys() | after.stray.keys()
            },
            {
                sign: min(one[sign] for one in (self.dressed, after.dressed) if sign in one)
                for sign in self.dressed.keys() | after.dressed.keys()
            },
            rise,
            self.decimal,
        )


def scan_column(cells: pd.Series, decimal: str = ".") -> ColumnScan:
    """What one chunk of a column holds.

    Args:
        cells: the chunk.
        decimal: the decimal sign of numbers that are written as text.
    """
    by_type = "number" if is_number(cells) else "date" if is_date(cells) else None
    finite = by_type == "number" and bool(np.isfinite(all_numbers(cells)).all())
    rows, missing = len(cells), 0 if finite else int(cells.isna().sum())
    if by_type is not None:
        infinite = 0 if finite or by_type == "date" else int(np.isinf(all_numbers(cells)).sum())
        begin = pd.unique(cells.to_numpy()[: 2 * MOST_COUNTED])  # as a rule it shows that there are too many
        values = None if len(begin) > MOST_COUNTED + 1 else _few(_text_counts(as_text(cells)))
        fitting, infinities = Counter({by_type: rows - missing}), +Counter({by_type: infinite})
        return ColumnScan(rows, missing, fitting, infinities, values, rise=_rise(cells, missing), decimal=decimal)
    texts = as_text(cells)
    counts = _text_counts(texts)
    different = coded_text(np.arange(len(counts)), list(counts))
    weights = np.array([*counts.values()], int)
    fitting, infinities, stray = Counter[str](), Counter[str](), {}
    scalars = {name: kind for name, kind in COLUMN_TYPES.items() if isinstance(kind, ScalarType)}
    for name, kind in scalars.items():  # what is none of them is a category
        numbers = kind.parse(different, decimal)
        others = np.isnan(numbers)
        fitting[name] = int(weights[~others].sum())
        infinities[name] = int(weights[np.isinf(numbers)].sum())
        if not others.any():
            break
        stray[name] = _first({text: counts[text] for text in different[others]})
    dressed: dict[str, str] = {}
    for text in sorted(counts, reverse=True):
        if (sign := dressing(text, decimal)) is not None:
            dressed[sign] = text
    rise = _rise(texts, missing)
    return ColumnScan(rows, missing, fitting, +infinities, _few(counts), stray, dressed, rise, decimal)


def _text_counts(texts: pd.Series) -> dict[str, int]:
    """How often each text of a category occurs."""
    counts = np.bincount(texts.cat.codes.to_numpy() + 1, minlength=1 + len(texts.cat.categories))[1:]
    return {text: count for text, count in zip(texts.cat.categories, counts.tolist(), strict=True) if count}


def _first(counts: Mapping[str, int]) -> Counter[str]:
    """Those in the order of the alphabet; how often they occur does not depend on how the table is cut."""
    return Counter({text: counts[text] for text in heapq.nsmallest(STRAY_COUNTED, counts)})


def _few(counts: Mapping[str, int]) -> Counter[str] | None:
    return Counter(counts) if len(counts) <= MOST_COUNTED else None


def _rise(cells: pd.Series, missing: int) -> Rise | None:
    if missing or not len(cells):
        return None
    if isinstance(cells.dtype, pd.CategoricalDtype):
        texts = cells.cat.categories.to_numpy(object)[cells.cat.codes]
        if len(cells.cat.categories) < len(cells) or not all(_INTEGER.fullmatch(text) for text in texts):
            return None
        numbers = np.array([int(text) for text in texts])
    elif pd.api.types.is_integer_dtype(cells):
        numbers = cells.to_numpy()
    else:
        return None
    return Rise(int(numbers[0]), int(numbers[-1])) if (numbers[1:] > numbers[:-1]).all() else None


class TableScan(NamedTuple):
    """What a pass over a table finds.

    Attributes:
        columns: name -> what the column holds.
        lengths: file or partition -> its rows.
    """

    columns: dict[str, ColumnScan]
    lengths: Counter[int]

    def merge(self, after: "TableScan") -> "TableScan":
        """With the rows after these."""
        columns = {name: column.merge(after.columns[name]) for name, column in self.columns.items()}
        return TableScan(columns, self.lengths + after.lengths)


def scan_chunk(chunk: pd.DataFrame, decimal: str) -> TableScan:
    """What one chunk of a table holds.

    Example:
        >>> scan_chunk(pd.DataFrame({"light": [1.5, 2.5], "soil": ["clay", "sand"]}), ".").columns["soil"].kind
        'category'
    """
    return TableScan({str(name): scan_column(chunk[name], decimal) for name in chunk.columns}, row_counts(chunk))
