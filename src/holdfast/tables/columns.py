"""Columns of a table, the types that they may have, and the numbers that they are encoded as.

A type says how a column is recognised, described, encoded and checked. A new one is a `ColumnType` in `COLUMN_TYPES`;
a column of cells that each stand for one number takes a `ScalarType` and a function.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.linear_algebra import spline_basis, spline_width
from holdfast.core.validation import require
from holdfast.tables.values import all_numbers, as_days, as_numbers, as_text, folded, is_date, parsed_text, whole_number

if TYPE_CHECKING:
    from holdfast.tables.scan import ColumnScan

Finite = Annotated[float, msgspec.Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
# In a table to be predicted, a column with fewer values of its kind is another column.
LEAST_OF_ITS_KIND = 0.5
# Knots are continued beyond the outer ones, over at most this many times their range.
SPAN = 8
# A column of text with more different values is an identifier, not a category, unless the user says that it is one.
MOST_CATEGORIES = 50
# Different values of a column are counted up to this number; with more it is an identifier for sure.
MOST_COUNTED = 1000
# Texts of another kind that a note shows.
MOST_SHOWN = 5


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of features.

    Attributes:
        name: of the column.
        kind: one of `COLUMN_TYPES`: number, category or date (which counts in days since 1970-01-01).
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
    kind: str = "number"
    categories: tuple[str, ...] = ()
    fill: Finite | str | None = None
    knots: tuple[Finite, ...] = ()

    def __post_init__(self) -> None:
        contract = f"column {self.name!r} must be one of {', '.join(COLUMN_TYPES)}"
        require(self.kind in COLUMN_TYPES, contract, repr(self.kind))
        self.type.check(self)
        if self.knots and (len(self.knots) < 2 or any(low >= high for low, high in pairwise(self.knots))):
            raise ValueError(f"column {self.name!r} has knots that do not increase")
        if self.knots and not math.isfinite(SPAN * (self.knots[-1] - self.knots[0])):
            raise ValueError(f"column {self.name!r} has knots from {self.knots[0]} to {self.knots[-1]}, too far apart")

    @property
    def type(self) -> "ColumnType":
        """What a column of its kind is."""
        return COLUMN_TYPES[self.kind]

    @property
    def features(self) -> list[str]:
        """Names of the features that it is encoded as."""
        names = self.type.features(self)
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


@dataclass(frozen=True)
class ScalarType:
    """A column of which each cell stands for one number: with a straight effect, or a curve.

    Attributes:
        name: of the kind.
        values: what a column holds, in messages.
        parse: (cells, decimal sign) -> (cells,) the number of each; NaN of what is missing or of another kind, infinite
            of what is of this kind but has no use.
        notes: (name, what was found) -> sentences about a column.
        suggests_environments: whether a column may say where or when a row was recorded.
        reads_text: whether the text of cells counts, where they look like numbers.

    Example, shares in percent:
        >>> def percent(cells, decimal):
        ...     return cells.str.extract(r"(.*) %")[0].astype(float).to_numpy() / 100
        >>> ScalarType("share", "shares such as 5 %", percent).parse(pd.Series(["5 %", "soon"]), ".").tolist()
        [0.05, nan]
    """

    name: str
    values: str
    parse: Callable[[pd.Series, str], np.ndarray]
    notes: Callable[[str, "ColumnScan"], list[str]] = lambda name, found: []
    suggests_environments: bool = False
    reads_text: bool = False

    def describe(self, name: str, found: "ColumnScan", named: bool) -> tuple[Column | None, list[str]]:
        """The column as a feature, None if it is left out, and notes; `named` by the user as of this kind."""
        if found.rises and not named:
            return None, [
                f"{name} rises from row to row in whole numbers and was left out as a row number; --numeric {name} "
                "makes it count."
            ]
        return Column(name, self.name), [*self.notes(name, found), *self.about_stray(name, found)]

    def about_stray(self, name: str, found: "ColumnScan") -> list[str]:
        """A sentence about cells of another kind, if there are any."""
        if not (stray := found.present - found.fitting[self.name]):
            return []
        texts = found.stray[self.name].most_common(MOST_SHOWN)
        shown = ", ".join(f"{text!r} ({count})" for text, count in sorted(texts, key=lambda one: (-one[1], one[0])))
        more = "" if len(texts) == len(found.stray[self.name]) else ", ..."
        return [f"{name} has text in {stray} of {found.rows} rows, which counts as missing: {shown}{more}."]

    def usable(self, found: "ColumnScan") -> int:
        """Rows of a column that have a feature."""
        return found.fitting[self.name] - found.infinite[self.name]

    def check(self, column: Column) -> None:
        """Raise a ValueError if the parts of a column do not belong together."""
        if column.categories:
            raise ValueError(f"column {column.name!r} is a {self.name} with {len(column.categories)} categories")
        if isinstance(column.fill, str):
            raise ValueError(f"column {column.name!r} cannot be filled with {column.fill!r}")

    def features(self, column: Column) -> list[str]:
        """Names of the features, without the indicator of missing values."""
        if not column.knots:
            return [column.name]
        return [f"{column.name} curve {number}" for number in range(1, spline_width(len(column.knots)) + 1)]

    def numbers(self, cells: pd.Series, column: Column, decimal: str) -> np.ndarray:
        """(cells,), the number that stands for each; NaN for a missing value."""
        numbers = self.parse(cells, decimal)
        known = np.isfinite(numbers)
        return numbers if known.all() else np.where(known, numbers, np.nan)

    def fill(self, numbers: np.ndarray, column: Column) -> float:
        """What stands for a missing value, from the finite numbers of cells."""
        return float(np.median(numbers))

    def filled(self, column: Column) -> float:
        """The number of `column.fill`."""
        return float(column.fill or 0)

    def expand(self, numbers: np.ndarray, column: Column) -> np.ndarray:
        """(cells, features) from the numbers of cells."""
        return spline_basis(numbers, np.array(column.knots)) if column.knots else numbers[:, None]

    def words(self, column: Column) -> str:
        """What a column holds, in messages."""
        return self.values

    def is_other(self, cells: pd.Series, column: Column, decimal: str) -> np.ndarray | None:
        """(cells,), which of them show that a column is of another kind; None if it may be of this one."""
        other = np.isnan(self.parse(cells, decimal))
        return None if 1 - other.mean() >= LEAST_OF_ITS_KIND else other


class CategoryType:
    """A column of categories: the first is the reference, each other one has a feature that is 0 or 1."""

    name = "category"
    suggests_environments = True
    reads_text = True

    def describe(self, name: str, found: "ColumnScan", named: bool) -> tuple[Column | None, list[str]]:
        """The column as a feature, None if it is left out, and notes; `named` by the user as of this kind."""
        mixed = 0 < found.fitting["number"] < found.present
        hint = f"; --numeric {name} reads its text as missing values" if mixed else ""
        spellings = defaultdict[str, Counter[str]](Counter)
        for text, count in (found.values or {}).items():  # where all are numbers, 1 and 1.0 are one category
            text = whole_number(text, found.decimal) if found.holds_numbers else text
            spellings[text if named else folded(text)][text] += count
        if found.values is None or (len(spellings) > MOST_CATEGORIES and not named):
            many = f"over {MOST_COUNTED}" if found.values is None else str(len(spellings))
            contract = f"categories must name columns with at most {MOST_COUNTED} different values"
            require(not named, contract, repr(name))
            also = hint or f"; --categories {name} makes it count" if found.values is not None else hint
            return None, [
                f"{name} has {many} different values{', text as well as numbers,' if mixed else ','} more than the "
                f"{MOST_CATEGORIES} that categories may have, and was left out as an identifier{also}."
            ]
        usual = {key: min(each, key=lambda text: (-each[text], text)) for key, each in spellings.items()}
        values = {text if named else text.strip(): spellings[key].total() for key, text in usual.items()}
        several = [each for _, each in sorted(spellings.items()) if len(each) > 1]
        shown = "; ".join(", ".join(f"{text!r} ({each[text]})" for text in sorted(each)) for each in several)
        notes = [f"{name} has spellings of one category, {shown}; --categories {name} keeps them apart."] * bool(
            several
        )
        if len(values) == 1:
            return None, [*notes, f"{name} is {next(iter(values))!r} in every row and was left out."]
        # Compared with the most frequent value; sorted otherwise, so that the order of rows does not matter.
        first = min(values, key=lambda value: (-values[value], value))
        if mixed and not named:
            notes.append(f"{name} holds text as well as numbers, and all its values were taken as categories{hint}.")
        return Column(name, self.name, (first, *sorted(values.keys() - {first}))), notes

    def usable(self, found: "ColumnScan") -> int:
        """Rows of a column that have a feature."""
        return found.present

    def check(self, column: Column) -> None:
        """Raise a ValueError if the parts of a column do not belong together."""
        if not column.categories:
            raise ValueError(f"column {column.name!r} is a category with 0 categories")
        if len(set(column.categories)) < len(column.categories):
            raise ValueError(f"column {column.name!r} has a category twice")
        if column.fill is not None and column.fill not in column.categories:
            raise ValueError(f"column {column.name!r} cannot be filled with {column.fill!r}")
        if column.knots:
            raise ValueError(f"column {column.name!r} is a category with the knots of a curve")

    def features(self, column: Column) -> list[str]:
        """Names of the features, without the indicator of missing values."""
        return [f"{column.name}={value}" for value in column.categories[1:]]

    def numbers(self, cells: pd.Series, column: Column, decimal: str) -> np.ndarray:
        """The position among the categories, -inf of a new one; where all of them are numbers, 1.0 is 1.

        Case and outer blanks do not matter, unless two categories differ by nothing else.
        """
        positions = {category: float(number) for number, category in enumerate(column.categories)}
        alike = {folded(category): number for category, number in positions.items()}
        alike = alike if len(alike) == len(positions) else {}
        as_written = np.isnan(as_numbers(pd.Series(column.categories, dtype=object), decimal)).any()

        def position(text: str | None) -> float:
            if text is None:
                return np.nan
            text = text if as_written or text in positions else whole_number(text, decimal)
            return positions.get(text, alike.get(folded(text), -np.inf))

        return parsed_text(cells, lambda texts: np.array([position(text) for text in texts]))

    def fill(self, numbers: np.ndarray, column: Column) -> str:
        """What stands for a missing value, from the finite numbers of cells."""
        counts = np.bincount(numbers.astype(int), minlength=len(column.categories))
        return min(column.categories[number] for number in np.flatnonzero(counts == counts.max()))

    def filled(self, column: Column) -> float:
        """The number of `column.fill`."""
        return float(column.categories.index(str(column.fill)))

    def expand(self, numbers: np.ndarray, column: Column) -> np.ndarray:
        """(cells, features) from the numbers of cells."""
        coded = (numbers[:, None] == np.arange(1, len(column.categories))).astype(float)
        coded[~(numbers >= 0)] = np.nan
        return coded

    def words(self, column: Column) -> str:
        """What a column holds, in messages."""
        return f"categories such as {column.categories[0]!r}"

    def is_other(self, cells: pd.Series, column: Column, decimal: str) -> np.ndarray | None:
        """(cells,), which of them show that a column is of another kind; None if it may be of this one."""
        known = (self.numbers(cells, column, decimal) >= 0).any() or np.isnan(as_numbers(cells, decimal)).any()
        return None if known else np.ones(len(cells), bool)


def _about_numbers(name: str, found: "ColumnScan") -> list[str]:
    notes = []
    if found.dressed:
        shown = ", ".join(f"{text} = {_shown(text, found.decimal)}" for _, text in sorted(found.dressed.items()))
        mixed = " Different currencies are not converted." if len(found.dressed.keys() - {""}) > 1 else ""
        notes.append(f"{name} was read with thousands separators or currency signs, as in {shown}.{mixed}")
    if infinite := found.infinite["number"]:
        notes.append(f"{name} has {infinite} infinite values, which count as missing.")
    return notes


def _shown(text: str, decimal: str) -> str:
    """The number of a text as it was understood."""
    return f"{as_numbers(pd.Series([text]), decimal)[0]:.15g}"


def _about_dates(name: str, found: "ColumnScan") -> list[str]:
    return [f"{name} holds dates and counts in days; --exclude {name} leaves it out."]


ColumnType = ScalarType | CategoryType
NUMBER = ScalarType("number", "numbers", all_numbers, _about_numbers)
COLUMN_TYPES: dict[str, ColumnType] = {
    "number": NUMBER,
    "date": ScalarType("date", "dates such as 2020-01-31", lambda cells, decimal: as_days(cells), _about_dates, True),
    "category": CategoryType(),
}
"""Name -> type; a column is of the first type that nearly all its cells are of, or else one of categories."""


def encode_column(cells: pd.Series, column: Column, decimal: str = ".") -> EncodedColumn:
    """The features of one column.

    Example:
        >>> encoded = encode_column(pd.Series(["4", None]), Column("light", fill=2.5))
        >>> encoded.values.tolist(), encoded.missing.tolist()
        ([[4.0, 0.0], [2.5, 1.0]], [False, True])
    """
    kind = column.type
    numbers = kind.numbers(cells, column, decimal)
    missing, unknown = np.isnan(numbers), numbers == -np.inf
    if column.fill is None:
        return EncodedColumn(kind.expand(numbers, column), missing, unknown)
    numbers = np.where(missing, kind.filled(column), numbers)
    return EncodedColumn(np.column_stack([kind.expand(numbers, column), missing]), missing, unknown)


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
    parts = [column.values.T for column in encoded]  # one feature after the other, as they are summed
    stacked = np.concatenate(parts) if parts else np.empty((0, len(chunk)))
    return pd.DataFrame(stacked.T, index=chunk.index, columns=features_of(columns), copy=False)


def features_of(columns: Iterable[Column]) -> list[str]:
    """Names of the features of columns, in order."""
    return [feature for column in columns for feature in column.features]


def groups_of(columns: Iterable[Column]) -> list[str]:
    """For each feature, the column that it comes from: features of one column belong together.

    Example:
        >>> groups_of([Column("light", fill=2.5), Column("soil", "category", ("clay", "sand"))])
        ['light', 'light', 'soil']
    """
    return [column.name for column in columns for _ in column.features]


def check_features(columns: Iterable[Column], file: str) -> None:
    """Raise a ValueError if two columns have a feature of the same name."""
    for name, count in Counter(features_of(columns)).items():
        found = f"{name!r} from two columns of {file}: rename one"
        require(count == 1, "features must have different names", found)


def check_kind(cells: pd.Series, column: Column, decimal: str, file: str) -> None:
    """Raise a ValueError if a column is of another kind than the one that was fitted.

    Example:
        >>> check_kind(pd.Series(["high", "low"]), Column("light"), ".", "new.csv")
        Traceback (most recent call last):
        ValueError: column 'light' must hold numbers, as in the fit, got text such as 'high' in new.csv
    """
    present = cells[cells.notna().to_numpy()]
    other = column.type.is_other(present, column, decimal) if len(present) else None
    if other is not None:
        wrong = present[other]
        found = "values" if is_date(cells) else "numbers" if not np.isnan(as_numbers(wrong, decimal)).any() else "text"
        raise ValueError(other_kind(column, found, as_text(wrong[:1]).iloc[0], file))


def other_kind(column: Column, found: str, example: str, file: str) -> str:
    """The sentence about a column that holds something else than in the fit.

    Example:
        >>> other_kind(Column("light"), "text", "high", "new.csv")
        "column 'light' must hold numbers, as in the fit, got text such as 'high' in new.csv"
    """
    words = column.type.words(column)
    return f"column {column.name!r} must hold {words}, as in the fit, got {found} such as {example!r} in {file}"
