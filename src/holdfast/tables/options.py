"""How a table is read: options for `fit` and `advise`, those for `predict`, and the columns that one pass reads.

This module imports nothing heavy, so that the command line can show its help at once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from holdfast.core.validation import check_fields, require

MissingRule = Literal["auto", "drop", "impute"]
# Columns that a message names.
MOST_LISTED = 40
# What a model says about columns, and nobody else may.
KNOWN_BY_MODELS = ("categories", "numeric", "exclude", "missing")
# Words for separators that are hard to type in a shell.
SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class FileOptions:
    """How the files of a table are read: all that a prediction takes, since the model knows its columns.

    Example:
        >>> FileOptions(separator=",", decimal=",")
        Traceback (most recent call last):
        ValueError: decimal must be another character than separator, got ',' for both
    """

    separator: str | None = None
    """Of text files: the character between columns, or tab; found from the first lines if it is not given."""
    decimal: Literal[".", ","] | None = None
    """Of text files: the decimal point or comma; found from the first lines if it is not given."""
    encoding: str | None = None
    """Of text files: such as utf-8, latin-1 or utf-16; found from the first lines if it is not given."""
    id: str | None = None
    """Column that identifies rows: not a feature, but carried into predictions; a model remembers it."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self) if field.default == ()):
            words = getattr(self, name)
            columns = (words,) if isinstance(words, str) else words
            named = isinstance(columns, Sequence) and all(isinstance(column, str) for column in columns)
            require(named, f"{name} must be names of columns", repr(words))
            object.__setattr__(self, name, tuple(columns))
        for name in ("separator", "encoding", "id"):
            require(isinstance(getattr(self, name), str | None), f"{name} must be a text", repr(getattr(self, name)))
        if self.separator is not None:
            separator = SEPARATORS.get(self.separator, self.separator)
            usable = len(separator) == 1 and separator not in '"\n\r\0' and not separator.isalnum()
            require(usable, "separator must be one character, such as ';' or tab", repr(self.separator))
            object.__setattr__(self, "separator", separator)
        require(self.decimal in (None, ".", ","), "decimal must be '.' or ','", repr(self.decimal))
        both = self.decimal is not None and self.decimal == self.separator
        require(not both, "decimal must be another character than separator", f"{self.decimal!r} for both")
        if self.encoding is not None:
            try:
                " ".encode(self.encoding)  # of an empty text Python would not look
            except (LookupError, ValueError) as error:  # also of codecs between bytes, such as zip
                raise ValueError(
                    f"encoding must be known to Python, such as utf-8, latin-1 or utf-16, got {self.encoding!r}"
                ) from error
        check_fields(self)

    @property
    def given(self) -> list[str]:
        """The options that differ from their defaults."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]

    def refuse(self, names: tuple[str, ...], reason: str) -> None:
        """Raise a ValueError if one of these options is given, because it does not apply."""
        for name in names:
            require(name not in self.given, f"{name} must be left out {reason}", repr(getattr(self, name, None)))


@dataclass(frozen=True)
class ReadingOptions(FileOptions):
    """How a table is read, and what its columns are.

    A list of columns may be one word with commas, `a,b`, unless a column is called that.

    Example:
        >>> ReadingOptions(separator=";", decimal=",", exclude=("remark",)).given
        ['separator', 'decimal', 'exclude']
    """

    categories: tuple[str, ...] = ()
    """Columns of categories, even if they hold numbers."""
    numeric: tuple[str, ...] = ()
    """Columns of numbers; text in them counts as missing."""
    exclude: tuple[str, ...] = ()
    """Columns to leave out."""
    weights: str | None = None
    """Column that says how many rows each row stands for; it is no feature."""
    missing: MissingRule = "auto"
    """Rows with missing values: drop them, or impute the median or the most frequent value and add indicators; auto
    drops at most 5 % of the rows and imputes otherwise."""


class Columns(NamedTuple):
    """What is read of a table.

    Attributes:
        names: of the columns.
        text: those to be read as text.
        rows: at most that many in a chunk.
    """

    names: Sequence[str]
    text: Collection[str]
    rows: int

    def covers(self, other: "Columns") -> bool:
        """Whether the other ones are some of these columns, read in the same way."""
        return {*other.names} <= {*self.names} and (self.rows, {*self.text}) == (other.rows, {*other.text})


def listed(columns: Sequence[str]) -> str:
    r"""The names of columns for a message: not too many, and each on one line.

    Example:
        >>> listed(["light", "a tab" + chr(9)])
        "light, 'a tab\\t'"
    """
    names = [name if name.isprintable() else repr(name) for name in columns[:MOST_LISTED]]
    return ", ".join(names) + (f" and {len(columns) - MOST_LISTED} more" if len(columns) > MOST_LISTED else "")


def named_columns(words: tuple[str, ...], columns: list[str], argument: str) -> list[str]:
    """The columns that the words of an option name.

    Example:
        >>> named_columns(("a,b", "c,d"), ["a", "b", "c,d"], "exclude")
        ['a', 'b', 'c,d']
    """
    names = []
    for word in words:
        parts = [word] if word in columns else [part.strip() for part in word.split(",")]
        for part in parts:
            require(part in columns, f"{argument} must be one of the columns {listed(columns)}", repr(part))
        names += parts
    return list(dict.fromkeys(names))
