"""Tables in files: one or several, of any of the known formats, read in chunks; measurements of matrices in a file."""

import atexit
import contextlib
import functools
import gzip
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TextIO

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.core.validation import one_line, require
from holdfast.core.writing import STANDARD_STREAM
from holdfast.tables.arrow import arrow_chunks, arrow_columns, arrow_sizes
from holdfast.tables.options import Columns, FileOptions
from holdfast.tables.remote import DataFile, RemoteFile, data_file, matching_files
from holdfast.tables.text import TextDialect, find_dialect, first_lines, text_chunks

# Rows of a table that are read at once.
CHUNK_ROWS = 100_000
# Rows that a worker reads at once, about: enough that a part costs more than to hand it out.
PART_ROWS = 1 << 20
# What pandas says about a row with more values than columns.
_TOO_LONG = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
# A row is numbered by its part of the table (a file, a partition) and its position there: with so many rows at most.
PART_SPAN = 1 << 40
# Arrays of measurements, and suffix of their files -> what it stands for.
MEASURED = ("X", "y", "environment")
MEASUREMENT_SUFFIXES = {".npz": "an .npz file", ".zarr": "a .zarr folder"}
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
class FilePart:
    """A file of a table, or some of its row groups.

    Attributes:
        path: where the file is.
        name: what it is called in messages.
        suffix: one of `SUFFIXES`.
        columns: all that it has, in order.
        unusable: columns that hold no single values -> what they hold instead.
        dialect: of a text file.
        decimal: the decimal sign of numbers that are written as text.
        first_row: the position of the first row in the table.
        groups: the first row group (of parquet) or record batch (of feather), and the one after the last; None: all.
    """

    path: DataFile
    name: str
    suffix: str
    columns: tuple[str, ...]
    unusable: dict[str, str]
    dialect: TextDialect | None = None
    decimal: Literal[".", ","] = "."
    first_row: int = 0
    groups: tuple[int, int] | None = None

    def read(self, columns: Columns) -> Iterator[tuple[pd.DataFrame, float]]:
        """Chunks of bounded size, each with the share of the part that has been read then.

        The index of a chunk has the positions of its rows in the table.

        Args:
            columns: to be read.
        """
        if not self.path.exists():
            raise ValueError(
                f"data must be readable by every worker under the same path, got {str(self.path)!r}, which a worker "
                "does not find: put it on a file system that all of them share, or into an object store (s3://...)"
            )
        if self.dialect is None:
            chunks = arrow_chunks(self.path, columns, self.groups)
        else:
            chunks = text_chunks(self.path, self.dialect, self.decimal, self.columns, columns)
        position = self.first_row
        while True:
            with own_words(self.name):
                if (found := next(chunks, None)) is None:
                    return
            cells, share = found
            # arrays, because pandas would compare the indices of columns
            arrays = {name: column.values for name, column in cells.items()}
            index = pd.RangeIndex(position, position + len(next(iter(arrays.values()))))
            position = index.stop
            yield pd.DataFrame(arrays, index, copy=False), share

    def split(self) -> Iterator["FilePart"]:
        """Parts of about a million rows; a text file cannot be split, since a line may begin inside quotes.

        Nor can a feather file elsewhere: all of it would have to come here to count the rows of its parts.
        """
        whole = replace(self, path=self.path.resolve())  # workers stand in another folder
        if self.dialect is not None or (isinstance(self.path, RemoteFile) and self.suffix == ".feather"):
            yield whole
            return
        with own_words(self.name):
            sizes = arrow_sizes(self.path)
        begin = count = done = 0
        for number, size in enumerate(sizes, 1):
            count += size
            if count >= PART_ROWS or number == len(sizes):
                yield replace(whole, first_row=self.first_row + done, groups=(begin, number))
                begin, done, count = number, done + count, 0


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
        return self.read(Columns(wanted, text, rows), progress) if wanted else iter(())

    def read(self, columns: Columns, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Some columns in chunks of bounded size."""
        self._check_same(columns.names)
        return chunks_of(self.files, [file.path.stat().st_size for file in self.files], columns, progress)

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


def open_table(data: TableData, options: FileOptions | None = None) -> TableFiles:
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
    options = options or FileOptions()
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


def _open(path: DataFile, options: FileOptions) -> FilePart:
    name = path.name
    if path == STANDARD_STREAM:
        path, name = _spool(sys.stdin), STANDARD_INPUT
    suffix = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), "")
    require(suffix != "", f"data must be a file that ends in {', '.join(SUFFIXES)}", repr(str(path)))
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


def chunks_of(
    parts: Iterable[Any], sizes: Sequence[int], columns: Columns, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    """The chunks of all parts, one after the other.

    Args:
        parts: `FilePart` or `FramePart`.
        sizes: of the parts, by which progress is reported.
        columns: to be read.
        progress: called with (done, total).
    """
    for part, size, report in zip(parts, sizes, stages(progress, sizes), strict=True):
        for chunk, share in part.read(columns):
            yield chunk
            report(int(share * size), size)


def check_usable(names: Collection[str], table: Any, hint: str = "") -> None:
    """Raise a ValueError if one of these columns of a table, in files or a frame, holds no single values."""
    for name, what in table.unusable.items():
        found = f"{name!r} of {table.name}, which holds {what}{hint}"
        require(name not in names, "columns must hold one value in each row", found)


@contextlib.contextmanager
def own_words(name: str) -> Iterator[None]:
    """Errors of the packages that read files, as one sentence with the name of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # pandas would cut rows that are too long
            yield
    except pd.errors.ParserWarning as error:
        raise ValueError(f"{name} cannot be read as a table: it has rows with more values than columns") from error
    except UnicodeError as error:
        raise ValueError(
            f"{name} cannot be read as a table: bytes do not fit its encoding ({_reason(error)}); --encoding names "
            "another, such as latin-1"
        ) from error
    except Exception as error:  # whatever pandas, pyarrow and gzip raise about a file, it cannot be read
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if (found := _TOO_LONG.search(str(error))) is not None:
        columns, line, values = found.groups()
        return f"line {line} has {values} values, more than the {columns} columns"
    return one_line(error)


def read_measurements(path: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """X (n, d, d), y (n,) and environment (n,) from an .npz file or a .zarr folder.

    The X of a zarr folder stays in the folder; slices of it are read when they are used.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "measurements.npz"
        >>> np.savez(path, X=np.zeros((3, 2, 2)), y=np.zeros(3), environment=np.array([0, 0, 1]))
        >>> [part.shape for part in read_measurements(path)]
        [(3, 2, 2), (3,), (3,)]
    """
    contract = f"data must be {' or '.join(MEASUREMENT_SUFFIXES.values())} with {', '.join(MEASURED)}"
    require(path.suffix in MEASUREMENT_SUFFIXES, contract, repr(str(path)))
    require(path.exists(), "data must exist", repr(str(path)))
    try:
        if path.suffix == ".npz":
            arrays: Any = np.load(path, allow_pickle=False)  # pickle would run code from the file
        else:
            import zarr

            arrays = zarr.open_group(path, mode="r")
    except (OSError, ValueError) as error:
        form = MEASUREMENT_SUFFIXES[path.suffix]
        raise ValueError(f"data must be {form} that can be read, got {str(path)!r}: {error}") from error
    missing = [name for name in MEASURED if name not in arrays]
    require(not missing, f"data must hold {', '.join(MEASURED)}", f"{str(path)!r} without {', '.join(missing)}")
    return arrays["X"], np.asarray(arrays["y"]), np.asarray(arrays["environment"])
