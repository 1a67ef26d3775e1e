"""Columns of a table, and the numbers that they are encoded as: the same in every file."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.splines import spline_basis, spline_width
from holdfast.tables.values import as_days, as_numbers, as_text, is_text, whole_numbers

ColumnKind = Literal["number", "category", "date"]
Finite = Annotated[float, msgspec.Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
# In a table to be predicted, a column with fewer values of its kind is another column.
LEAST_OF_ITS_KIND = 0.5
# Knots are continued beyond the outer ones, over at most this many times their range.
SPAN = 8


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of features.

    Attributes:
        name: of the column.
        kind: number, category or date (which counts in days since 1970-01-01).
        categories: the values of a column of categories, of which the first is the reference for the others.
        fill: what stands for a missing value, and gets an indicator; None: rows without a value have no features.
        knots: of a number or a date whose effect is a curve, increasing; none: it is a straight line.

    Example, clay is the reference for the other soils:
        >>> Column("soil", "category", ("clay", "sand", "silt")).features, Column("light", fill=2.5).features
        (['soil=sand', 'soil=silt'], ['light', 'light is missing'])
        >>> Column("light", knots=(0.0, 1.0, 3.0)).features
        ['light curve 1', 'light curve 2', 'light curve 3', 'light curve 4']
    """

    name: str
    kind: ColumnKind = "number"
    categories: tuple[str, ...] = ()
    fill: Finite | str | None = None
    knots: tuple[Finite, ...] = ()

    def __post_init__(self) -> None:
        if (self.kind == "category") != bool(self.categories):
            raise ValueError(f"column {self.name!r} is a {self.kind} with {len(self.categories)} categories")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"column {self.name!r} has a category twice")
        fits = self.fill in self.categories if self.kind == "category" else not isinstance(self.fill, str)
        if self.fill is not None and not fits:
            raise ValueError(f"column {self.name!r} cannot be filled with {self.fill!r}")
        if self.knots and self.kind == "category":
            raise ValueError(f"column {self.name!r} is a category with the knots of a curve")
        if self.knots and (len(self.knots) < 2 or any(low >= high for low, high in pairwise(self.knots))):
            raise ValueError(f"column {self.name!r} has knots that do not increase")
        if self.knots and not math.isfinite(SPAN * (self.knots[-1] - self.knots[0])):
            raise ValueError(f"column {self.name!r} has knots from {self.knots[0]} to {self.knots[-1]}, too far apart")

    @property
    def features(self) -> list[str]:
        """Names of the features that it is encoded as."""
        names = [f"{self.name}={value}" for value in self.categories[1:]] if self.categories else [self.name]
        if self.knots:
            names = [f"{self.name} curve {number}" for number in range(1, spline_width(len(self.knots)) + 1)]
        return names if self.fill is None else [*names, f"{self.name} is missing"]


class EncodedColumn(NamedTuple):
    """A column as numbers.

    Attributes:
        values: (rows, features), NaN in rows that cannot be used.
        missing: (rows,), where a value is missing, or is text in a column of numbers.
        unknown: (rows,), where a category is new.
    """

    values: np.ndarray
    missing: np.ndarray
    unknown: np.ndarray


def encode_column(values: pd.Series, column: Column, decimal: str = ".") -> EncodedColumn:
    """The features of one column.

    Example:
        >>> encoded = encode_column(pd.Series(["4", None]), Column("light", fill=2.5))
        >>> encoded.values.tolist(), encoded.missing.tolist()
        ([[4.0, 0.0], [2.5, 1.0]], [False, True])
    """
    if column.kind == "category":
        texts = category_texts(values, column, decimal)
        missing = texts.isna().to_numpy()
        positions = pd.Index(column.categories, dtype=object).get_indexer(pd.Index(texts, dtype=object))
        unknown = (positions < 0) & ~missing
        if column.fill is not None:
            positions = np.where(missing, column.categories.index(str(column.fill)), positions)
        coded = (positions[:, None] == np.arange(1, len(column.categories))).astype(float)
        coded[positions < 0] = np.nan
    else:
        numbers = as_days(values) if column.kind == "date" else as_numbers(values, decimal)
        missing, unknown = np.isnan(numbers), np.zeros(len(values), bool)
        if column.fill is not None:
            numbers = np.where(missing, float(column.fill), numbers)
        coded = spline_basis(numbers, np.array(knots)) if (knots := column.knots) else numbers[:, None]
    if column.fill is not None:
        coded = np.column_stack([coded, missing])
    return EncodedColumn(coded, missing, unknown)


def category_texts(values: pd.Series, column: Column, decimal: str = ".") -> pd.Series:
    """The categories of cells: as they are written, but where all categories are numbers, 1.0 is the category 1.

    Example:
        >>> category_texts(pd.Series(["1.0", "2", "01"]), Column("grade", "category", ("1", "2"))).tolist()
        ['1', '2', '01']
    """
    texts = as_text(values)
    if np.isnan(as_numbers(pd.Series(column.categories, dtype=object), decimal)).any():
        return texts
    return texts.where(texts.isin(column.categories), whole_numbers(texts, decimal))


def encode(chunk: pd.DataFrame, columns: Sequence[Column], decimal: str = ".") -> pd.DataFrame:
    """The features of a chunk as numbers; NaN in rows with a missing value that is not filled, or an unknown category.

    Example:
        >>> chunk = pd.DataFrame({"light": [1.5, 2.0], "soil": ["sand", "peat"]})
        >>> encode(chunk, [Column("light"), Column("soil", "category", ("clay", "sand"))]).to_numpy().tolist()
        [[1.5, 1.0], [2.0, nan]]
    """
    return features_frame([encode_column(chunk[column.name], column, decimal) for column in columns], chunk, columns)


def features_frame(encoded: Sequence[EncodedColumn], chunk: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The features of encoded columns, with the index of the chunk that they come from."""
    parts = [column.values for column in encoded]
    stacked = np.concatenate(parts, axis=1) if parts else np.empty((len(chunk), 0))
    return pd.DataFrame(stacked, index=chunk.index, columns=features_of(columns))


def features_of(columns: Iterable[Column]) -> list[str]:
    """Names of the features of columns, in order."""
    return [feature for column in columns for feature in column.features]


def check_features(columns: Iterable[Column], file: str) -> None:
    """Raise a ValueError if two columns have a feature of the same name."""
    counts = Counter(features_of(columns))
    for name, count in counts.items():
        if count > 1:
            raise ValueError(f"features must have different names, got {name!r} from two columns of {file}: rename one")


def groups_of(columns: Iterable[Column]) -> list[str]:
    """For each feature, the column that it comes from: features of one column belong together.

    Example:
        >>> groups_of([Column("light", fill=2.5), Column("soil", "category", ("clay", "sand"))])
        ['light', 'light', 'soil']
    """
    return [column.name for column in columns for _ in column.features]


def check_kind(values: pd.Series, column: Column, decimal: str, file: str) -> None:
    """Raise a ValueError if a column is of another kind than the one that was fitted.

    Example:
        >>> check_kind(pd.Series(["high", "low"]), Column("light"), ".", "new.csv")
        Traceback (most recent call last):
        ValueError: column 'light' must hold numbers, as in the fit, got text such as 'high' in new.csv
    """
    present = values[values.notna().to_numpy()]
    if len(present) == 0:
        return
    if column.kind == "category":
        known = category_texts(present, column, decimal).isin(column.categories)
        if not known.any() and not np.isnan(as_numbers(present, decimal)).any():
            raise ValueError(
                f"column {column.name!r} must hold categories such as {column.categories[0]!r}, as in the fit, got "
                f"numbers such as {present.iloc[0]} in {file}"
            )
        return
    numbers = as_days(present) if column.kind == "date" else as_numbers(present, decimal)
    other = np.isnan(numbers)
    if 1 - other.mean() < LEAST_OF_ITS_KIND:
        found = "text" if is_text(present) else "values"
        raise ValueError(other_kind(column, found, as_text(present[other]).iloc[0], file))


def other_kind(column: Column, found: str, example: str, file: str) -> str:
    """The sentence about a column of numbers or dates that holds something else.

    Example:
        >>> other_kind(Column("light"), "text", "high", "new.csv")
        "column 'light' must hold numbers, as in the fit, got text such as 'high' in new.csv"
    """
    word = {"number": "numbers", "date": "dates such as 2020-01-31"}[column.kind]
    return f"column {column.name!r} must hold {word}, as in the fit, got {found} such as {example!r} in {file}"
