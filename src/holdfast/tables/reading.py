"""Tables in files: one or several, of any of the known formats, read in chunks."""

import atexit
import functools
import gzip
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TextIO

import pandas as pd

from holdfast.core.progress import Progress
from holdfast.core.validation import require
from holdfast.core.writing import STANDARD_STREAM
from holdfast.tables.arrow import arrow_columns
from holdfast.tables.dialect import find_dialect, first_lines
from holdfast.tables.options import Columns, ReadingOptions
from holdfast.tables.parts import CHUNK_ROWS, FilePart, chunks_of, own_words
from holdfast.tables.remote import DataFile, data_file, matching_files
from holdfast.tables.sampling import PART_SPAN

STANDARD_INPUT = "standard input"
# Suffix -> the separator that it suggests.
TEXT_SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".feather")
_SPECIAL = set("*?[")
# What the first bytes of a stream say about its format; text otherwise.
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}

TableData = str | Path | Sequence[str | Path]
"""The files of a table: a path, a pattern such as `data/*.csv`, an address such as `s3://bucket/*.parquet`, "-" for
standard input, or several of them."""


@dataclass(frozen=True)
class TableFiles:
    """A table in files that have been looked at, ready to be read in chunks.

    Attributes:
        files: each of them.
        decimal: the decimal sign of numbers that are written as text.
        notes: how text files were read, if in an unusual way.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> for number in (1, 2):
        ...     pd.DataFrame({"light": range(3)}).to_csv(folder / f"{number}.csv", index=False)
        >>> files = open_table(folder / "*.csv")
        >>> files.columns, [len(chunk) for chunk in files.chunks(rows=2)]
        (['light'], [2, 1, 2, 1])
    """

    files: tuple[FilePart, ...]
    decimal: Literal[".", ","]
    notes: tuple[str, ...]
    on_dask: ClassVar = False

    @property
    def name(self) -> str:
        """What the table is called in messages."""
        more = len(self.files) - 1
        return self.files[0].name + (f" and {more} more" if more else "")

    @property
    def is_text(self) -> bool:
        """Whether there are text files among them, which take long to read."""
        return any(file.dialect is not None for file in self.files)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of any file, in the order of the first."""
        return list(dict.fromkeys(name for file in self.files for name in file.columns))

    @property
    def unusable(self) -> dict[str, str]:
        """Columns that hold no single values -> what they hold instead."""
        return {name: what for file in self.files for name, what in file.unusable.items()}

    def chunks(
        self,
        rows: int = CHUNK_ROWS,
        text: Collection[str] = (),
        columns: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pd.DataFrame]:
        """The rows in chunks of bounded size.

        Args:
            rows: at most that many in a chunk.
            text: columns to be read as text. A column of a text file is text anyway if its first 2,000 rows have at
                most a thousand different values; the type of the others is found chunk by chunk.
            columns: to be read; None: all that hold single values.
            progress: called with (bytes read, bytes in all).
        """
        unusable = self.unusable
        wanted = [name for name in self.columns if name not in unusable and (columns is None or name in columns)]
        if not wanted:
            return iter(())
        self._check_same(wanted)
        sizes = [file.path.stat().st_size for file in self.files]
        return chunks_of(self.files, sizes, Columns(wanted, text, rows), progress)

    def counted(self, lengths: Mapping[int, int]) -> "TableFiles":
        """The same: rows of files are numbered file by file, whatever reads them."""
        return self

    def parts(self, columns: Sequence[str]) -> list[FilePart]:
        """Files, or row groups of them, that workers can read side by side; ValueError for standard input."""
        if any(file.name == STANDARD_INPUT for file in self.files):
            raise ValueError("data must be files that workers can read, got '-', the standard input of this process")
        self._check_same(columns)
        return [part for file in self.files for part in file.split()]

    def part_name(self, number: int) -> str:
        """What a part is called in messages."""
        part = self.parts(())[number]
        groups = "" if part.groups is None else f", row groups {part.groups[0]} to {part.groups[1] - 1}"
        return part.name + groups

    def _check_same(self, columns: Sequence[str]) -> None:
        """Raise a ValueError if a file lacks one of the columns that are read; others may differ."""
        first, *others = self.files
        for other in others:
            lacking = [name for name in columns if name in first.columns and name not in other.columns]
            added = [name for name in columns if name not in first.columns and name in other.columns]
            changes = {verb: names for verb, names in (("lacks", lacking), ("adds", added)) if names}
            words = " and ".join(f"{verb} {', '.join(map(repr, names))}" for verb, names in changes.items())
            found = f"{other.name}, which {words} compared with {first.name}"
            require(not changes, "columns must be the same in all files", found)


def open_table(data: TableData, options: ReadingOptions | None = None) -> TableFiles:
    r"""Look at the files of a table: formats, headers, and how text files are written.

    Args:
        data: a path, a pattern such as `data/*.csv`, an address of fsspec such as `s3://bucket/*.parquet`, "-" for
            standard input, or several of them; the columns that are read agree.
        options: how text files are written, if that is known.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light;light\n1;2\n")
        >>> open_table(path)
        Traceback (most recent call last):
        ValueError: columns must have different names, got 'light' more than once in plants.csv
    """
    options = options or ReadingOptions()
    files = [_open(path, options) for path in _expand(data)]
    dialects = {file.name: file.dialect for file in files if file.dialect is not None}
    if not dialects:
        formats = ", ".join(sorted({file.suffix for file in files}))
        options.refuse(("separator", "decimal", "encoding"), f"for {formats}, which says itself how it is written")
    signs = {dialect.decimal for dialect in dialects.values()} - {None}
    found = f"decimal points and decimal commas in {', '.join(dialects)}"
    require(len(signs) < 2, "decimal must be the same in all files", found)
    notes = tuple(note for dialect in dialects.values() for note in dialect.notes)
    decimal: Literal[".", ","] = "," if signs == {","} else "."
    rows = (number * PART_SPAN for number in range(len(files)))
    placed = (replace(file, decimal=decimal, first_row=row) for file, row in zip(files, rows, strict=True))
    return TableFiles(tuple(placed), decimal, notes)


def _expand(data: TableData) -> list[DataFile]:
    """The files behind paths, addresses and patterns."""
    words = [data] if isinstance(data, str | Path) else list(data)
    require(len(words) > 0, "data must name at least one file", "none")
    files: list[DataFile] = []
    for word in map(str, words):
        file = data_file(word)
        named = _SPECIAL.isdisjoint(word) or (isinstance(file, Path) and file.exists())
        found = [file] if named else matching_files(word)
        require(len(found) > 0, "data must match at least one file", f"the pattern {word!r}, which matches none")
        files += found
    for file, count in Counter(files).items():
        require(count == 1, "data must name each file once", f"{str(file)!r} more than once")
    return files


def suffix_of(path: DataFile) -> str:
    """The known suffix of a name, in lower case.

    Example:
        >>> suffix_of(Path("PLANTS.CSV.GZ"))
        '.csv.gz'
    """
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"data must be a file that ends in {', '.join(SUFFIXES)}, got {str(path)!r}")


def _open(path: DataFile, options: ReadingOptions) -> FilePart:
    name = path.name
    if path == STANDARD_STREAM:
        path, name = _spool(sys.stdin), STANDARD_INPUT
    suffix = suffix_of(path)
    require(path.exists(), "data must be an existing file", repr(str(path)))
    require(path.is_file(), "data must be a file", f"{str(path)!r}, which is not one")
    if suffix not in TEXT_SUFFIXES:
        with own_words(name):
            names, unusable = arrow_columns(path)
        return FilePart(path, name, suffix, _check_names(names, name), unusable)
    with own_words(name), path.open("rb") as file:
        sample = first_lines(gzip.GzipFile(fileobj=file) if suffix.endswith(".gz") else file)
    dialect = find_dialect(sample, name, options, TEXT_SUFFIXES[suffix])
    named = (header.strip() or f"column {number}" for number, header in enumerate(dialect.header, 1))
    return FilePart(path, name, suffix, _check_names(list(named), name), {}, dialect)


@functools.cache
def _spool(standard_input: TextIO) -> Path:
    """Standard input in a temporary file, because a table is read more than once."""
    stream = standard_input.buffer
    begin = stream.read(8)
    suffix = next((suffix for mark, suffix in _BEGINNINGS.items() if begin.startswith(mark)), ".csv")
    with tempfile.NamedTemporaryFile(prefix="holdfast-", suffix=suffix, delete=False) as file:
        atexit.register(Path(file.name).unlink, missing_ok=True)
        file.write(begin)
        shutil.copyfileobj(stream, file)
    return Path(file.name)


def _check_names(names: Sequence[str], file: str) -> tuple[str, ...]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    found = f"{', '.join(map(repr, twice[:5]))} more than once in {file}"
    require(not twice, "columns must have different names", found)
    if not names:
        raise ValueError(f"{file} cannot be read as a table: it has no columns")
    return tuple(names)
