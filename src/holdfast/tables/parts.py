"""One file of a table, or some of its rows, in chunks."""

import contextlib
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.core.validation import one_line, require
from holdfast.tables.arrow import arrow_chunks, arrow_sizes
from holdfast.tables.dialect import TextDialect
from holdfast.tables.options import Columns
from holdfast.tables.remote import DataFile, RemoteFile

# Rows of a table that are read at once.
CHUNK_ROWS = 100_000
# Rows that a worker reads at once, about: enough that a part costs more than to hand it out.
PART_ROWS = 1 << 20
# Of so many rows at the beginning of a text file, that many different values make a column no category.
LOOKED_AT, MANY = 2_000, 1_000
# What pandas says about a row with more values than columns.
_TOO_LONG = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


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
            chunks = self._text_chunks(self.dialect, columns)
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

    def _text_chunks(self, dialect: TextDialect, columns: Columns) -> Iterator[tuple[dict[str, pd.Series], float]]:
        """The cells of a text file, as `arrow_chunks` finds those of others.

        What may be a category is text, and so 01 is not 1; of a column that begins with many different values pandas
        finds the type, chunk by chunk.
        """
        form: dict[str, Any] = {
            "sep": dialect.separator,
            "decimal": self.decimal,
            "encoding": dialect.encoding,
            "compression": "gzip" if self.suffix.endswith(".gz") else None,
            "header": 0,
            "names": list(self.columns),
            "index_col": False,
            "skipinitialspace": dialect.separator != " ",
            "low_memory": False,  # otherwise pandas would find different types for parts of a chunk
        }
        size = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            begin = pd.read_csv(file, dtype=str, nrows=LOOKED_AT, **form)
            as_found = {name for name in columns.names if name not in columns.text and begin[name].nunique() > MANY}
            # All columns are read, because pandas would not notice rows that are too long otherwise.
            types = {name: str for name in self.columns if name not in as_found}
            file.seek(0)
            with pd.read_csv(file, dtype=types, chunksize=columns.rows, **form) as reader:
                for chunk in reader:
                    # of a compressed file the compressed bytes; the reader is ahead by a buffer
                    yield {name: chunk[name] for name in columns.names}, file.tell() / size

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
