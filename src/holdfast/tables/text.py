"""Text files: how one is written (encoding, separator, decimal sign), found from its first lines, and its chunks."""

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import pandas as pd

from holdfast.tables.options import Columns, FileOptions
from holdfast.tables.remote import DataFile
from holdfast.tables.values import without_currency

# Enough for some hundred lines, little enough to be read at once.
SAMPLE_BYTES = 1 << 16
SAMPLE_LINES = 200
# Lines that a sample has at least, unless one is longer than so many bytes: the first may have thousands of names.
FEWEST_LINES, LONGEST_LINE = 3, 1 << 24
# The later, the less likely inside of a cell: of two that split the lines equally well, the later one is it.
CANDIDATES = (",", "|", ";", "\t")
# Rows that a separator must split like the header, or it is none.
LEAST_AGREEMENT = 0.9
# Of so many rows at the beginning of a text file, that many different values make a column no category.
LOOKED_AT, MANY = 2_000, 1_000
# First bytes -> the encoding that they stand for.
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Bytes that are control characters in Latin-1 and not in the encoding of Windows, and those that are none of its own.
_WINDOWS, _NOT_WINDOWS = re.compile(rb"[\x80-\x9f]"), re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
# Numbers that can have a decimal comma only, or a decimal point only: 1,234 may be a thousand.
_COMMA = re.compile(
    r"[+-]?(?:\d{1,3}(?:[. '\u00a0\u202f\u2019]\d{3})+|\d+),(?:\d{1,2}|\d{4,})|[+-]?\d{4,},\d+|[+-]?0,\d+"
)
_POINT = re.compile(
    r"[+-]?(?:\d{1,3}(?:[, '\u00a0\u202f\u2019]\d{3})+|\d+)\.(?:\d{1,2}|\d{4,})|[+-]?\d{4,}\.\d+|[+-]?0\.\d+"
)


@dataclass(frozen=True)
class TextDialect:
    r"""How a text file is written.

    Attributes:
        separator: between columns.
        decimal: the decimal sign; None if no number of the first lines has one.
        encoding: of the characters.
        header: the names in the first line, as they are.
        notes: what was found and is not the rule, with the option that says otherwise.

    Example:
        >>> dialect = find_dialect(b"light;soil\n1,5;clay\n2,25;sand\n", "plants.csv")
        >>> dialect.separator, dialect.decimal, dialect.header
        (';', ',', ('light', 'soil'))
    """

    separator: str
    decimal: Literal[".", ","] | None
    encoding: str
    header: tuple[str, ...]
    notes: tuple[str, ...]


def first_lines(file: BinaryIO | gzip.GzipFile) -> bytes:
    r"""A sample for `find_dialect`: the first lines of a file.

    Example:
        >>> first_lines(io.BytesIO(b"light,soil\n1,clay\n"))
        b'light,soil\n1,clay\n'
    """
    sample = file.read(SAMPLE_BYTES)
    if len(sample) < SAMPLE_BYTES or len(sample.splitlines()) > FEWEST_LINES:
        return sample
    more = [file.readline(LONGEST_LINE) for _ in range(FEWEST_LINES)]
    return sample + b"".join(more) + (b"" if more[-1] else b"\n")  # at the end of the file no line is cut


def find_dialect(sample: bytes, name: str, options: FileOptions | None = None, usual: str = ",") -> TextDialect:
    """Find what the options leave open.

    Args:
        sample: the first bytes of the file, as of `first_lines`.
        name: of the file, for errors and notes.
        options: what is known.
        usual: the separator that the name of the file suggests.
    """
    options = options or FileOptions()
    notes = []
    marked = next((meant for mark, meant in _MARKS.items() if sample.startswith(mark)), None)
    encoding = options.encoding or marked or _encoding(sample)
    if marked is not None and not codecs.lookup(encoding).name.startswith(marked[:5]):
        raise ValueError(f"encoding must be {marked} for {name}, whose first bytes say so, got {encoding!r}")
    if options.encoding is None and encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"{name} was read with the encoding {encoding}; --encoding names another.")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)  # the last character may be cut
    except (UnicodeError, LookupError) as error:
        raise ValueError(f"{name} cannot be read with the encoding {encoding}; --encoding names another") from error
    text = text.removeprefix("\ufeff")  # a mark that the named encoding does not know of
    if "\0" in text:
        raise ValueError(f"{name} cannot be read as a table: it holds zero bytes and is no text in {encoding}")
    whole = len(sample) < SAMPLE_BYTES or sample.endswith(b"\n")
    if options.separator is not None:
        separator, rows = options.separator, _rows(text, options.separator, whole)
    else:
        found = {separator: _rows(text, separator, whole) for separator in CANDIDATES}
        ranks = {each: (*_agreement(rows), number) for number, (each, rows) in enumerate(found.items())}
        separator = max(ranks, key=lambda each: ranks[each])
        separator = separator if ranks[separator][0] else usual  # a single column has no separator
        rows = found[separator]
        if separator != usual:
            what = {"\t": "tabs"}.get(separator, repr(separator))
            notes.append(f"{name} was read with {what} between its columns; --separator names another.")
    if not rows or not (whole or len(text.splitlines()) > 1):
        reason = "its first line is too long" if text.strip() else "it is empty"
        raise ValueError(f"{name} cannot be read as a table: {reason}")
    decimal = options.decimal or _decimal(rows[1:], separator)
    if options.decimal is None and decimal == ",":
        notes.append(f"{name} was read with decimal commas, as in 1,5; --decimal . says otherwise.")
    return TextDialect(separator, decimal, encoding, tuple(rows[0]), tuple(notes))


def _encoding(sample: bytes) -> str:
    # Latin letters in UTF-16 have a zero in every second byte, in UTF-8 never.
    if len(sample) > 3 and sample[1::2].count(0) > len(sample) // 5:
        return "utf-16-le"
    if len(sample) > 3 and sample[::2].count(0) > len(sample) // 5:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        # where Windows has letters and signs, such as the euro, Latin-1 has control characters that nobody writes
        return "cp1252" if _WINDOWS.search(sample) and not _NOT_WINDOWS.search(sample) else "latin-1"
    return "utf-8"


def _rows(text: str, separator: str, whole: bool) -> list[list[str]]:
    """The first rows, blank lines left out; the last line of a sample may be cut, unless it is the whole file."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator != " "):
            if row:
                rows.append(row)
            if len(rows) > SAMPLE_LINES:
                break
    except csv.Error:  # such as a field without an end: the reader of the whole file will say so
        pass
    return rows if whole or len(rows) < 2 else rows[:-1]


def _agreement(rows: Sequence[Sequence[str]]) -> tuple[int, float]:
    """Number of columns if most rows have as many as the first, 0 otherwise or if there is one; share of such rows."""
    if not rows or len(rows[0]) == 1:
        return 0, 0.0
    share = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    return (len(rows[0]) if share >= LEAST_AGREEMENT else 1), share


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> Literal[".", ","] | None:
    fields = [without_currency(field.strip())[0] for row in rows for field in row]
    commas = sum(_COMMA.fullmatch(field) is not None for field in fields)
    points = sum(_POINT.fullmatch(field) is not None for field in fields)
    if commas == points:
        return None
    return "," if commas > points else "."


def text_chunks(
    path: DataFile, dialect: TextDialect, decimal: Literal[".", ","], names: Sequence[str], columns: Columns
) -> Iterator[tuple[dict[str, pd.Series], float]]:
    """The cells of some columns in chunks of bounded size, as of `arrow_chunks`.

    What may be a category is text, and so 01 is not 1; of a column that begins with many different values pandas finds
    the type, chunk by chunk.

    Args:
        path: a text file.
        dialect: how it is written.
        decimal: the decimal sign of its table.
        names: of all its columns.
        columns: to be read.
    """
    form: dict[str, Any] = {
        "sep": dialect.separator,
        "decimal": decimal,
        "encoding": dialect.encoding,
        "compression": "gzip" if path.name.lower().endswith(".gz") else None,
        "header": 0,
        "names": list(names),
        "index_col": False,
        "skipinitialspace": dialect.separator != " ",
        "low_memory": False,  # otherwise pandas would find different types for parts of a chunk
    }
    size = max(path.stat().st_size, 1)
    with path.open("rb") as file:
        begin = pd.read_csv(file, dtype=str, nrows=LOOKED_AT, **form)
        as_found = {name for name in columns.names if name not in columns.text and begin[name].nunique() > MANY}
        # All columns are read, because pandas would not notice rows that are too long otherwise.
        types = {name: str for name in names if name not in as_found}
        file.seek(0)
        with pd.read_csv(file, dtype=types, chunksize=columns.rows, **form) as reader:
            for chunk in reader:
                # of a compressed file the compressed bytes; the reader is ahead by a buffer
                yield {name: chunk[name] for name in columns.names}, file.tell() / size
