"""Text files in batches of strings: by Arrow, and by pandas where Arrow is too strict."""

import gzip
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from holdfast.tables.dialect import TextDialect
from holdfast.tables.remote import DataFile

# What stands for a missing value, as pandas reads it.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
]
# Bytes of text that Arrow reads at once: larger blocks do not fit into the cache of a core, and take three times as long,
# unless a single line is longer.
BLOCK_BYTES = 1 << 20


class IrregularTextError(ValueError):
    """A text file that Arrow would read otherwise than pandas.

    Example:
        >>> raise IrregularTextError("a cell begins with a blank")
        Traceback (most recent call last):
        holdfast.tables.strings.IrregularTextError: a cell begins with a blank
    """


def text_batches(
    path: DataFile, names: Sequence[str], columns: Sequence[str], dialect: TextDialect, rows: int
) -> Iterator[tuple[Any, float]]:
    """Batches of bounded size with all cells as strings, each with the share of the file that has been read then.

    Arrow is several times as fast as pandas, but refuses rows that are shorter than the header, reads UTF-8 alone, and
    keeps blanks after separators. Where it gives up, pandas begins anew, and what was read before is skipped.

    Args:
        path: the file.
        names: of all its columns: rows that are too long would not be noticed if some were left out.
        columns: to be read.
        dialect: how it is written.
        rows: at most that many in a batch.
    """
    import pyarrow

    done, size = 0, max(path.stat().st_size, 1)
    with path.open("rb") as file:
        if dialect.encoding in ("utf-8", "utf-8-sig") and dialect.separator.isascii():
            try:
                for batch in _arrow_batches(_unpacked(path, file), names, columns, dialect, rows):
                    yield batch, file.tell() / size  # of a compressed file, in compressed bytes
                    done += batch.num_rows
                return
            except (pyarrow.ArrowInvalid, IrregularTextError):
                file.seek(0)
        read = 0
        for chunk in _pandas_chunks(_unpacked(path, file), names, dialect, rows):
            fresh = chunk[list(columns)].iloc[max(done - read, 0) :]
            read += len(chunk)
            if len(fresh):
                yield pyarrow.Table.from_pandas(fresh, preserve_index=False), file.tell() / size


def _unpacked(path: DataFile, file: Any) -> Any:
    return gzip.GzipFile(fileobj=file) if path.name.lower().endswith(".gz") else file


def _arrow_batches(
    file: Any, names: Sequence[str], columns: Sequence[str], dialect: TextDialect, rows: int
) -> Iterator[Any]:
    import pyarrow
    from pyarrow import csv

    reader = csv.open_csv(
        pyarrow.PythonFile(_Regular(file, dialect.separator), "r"),
        csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
        csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            include_columns=columns,
            null_values=MISSING,
            strings_can_be_null=True,
        ),
    )
    waiting: list[Any] = []
    first = 1  # row of data: the one before it has the names
    for batch in chain(reader, [None]):
        if batch is None or (waiting and sum(one.num_rows for one in waiting) + batch.num_rows > rows):
            table = pyarrow.Table.from_batches(waiting, reader.schema)
            for begin in range(first, table.num_rows, rows):
                yield table.slice(begin, rows)
            first, waiting = 0, []
        waiting.append(batch)


class _Regular(io.RawIOBase):
    """The bytes of a file, as long as Arrow and pandas agree about them."""

    def __init__(self, file: Any, separator: str):
        self._file, self._last, self._quotes = file, b"\n", 0
        self._starts = [] if separator == " " else [*f"{separator}\n\r".encode()]

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._quotes += block.count(b'"')
        seen = np.frombuffer(self._last + block, np.uint8)
        blanks = np.flatnonzero(seen[1:] == ord(" "))
        if np.isin(seen[blanks], self._starts).any() or b"\0" in block or (not block and self._quotes % 2):
            raise IrregularTextError("a cell begins with a blank, has a zero byte, or a quote without an end")
        self._last = block[-1:]
        return block


def _pandas_chunks(file: Any, names: Sequence[str], dialect: TextDialect, rows: int) -> Iterator[pd.DataFrame]:
    reader: Any = pd.read_csv(
        file,
        sep=dialect.separator,
        encoding=dialect.encoding,
        header=0,
        names=list(names),
        index_col=False,
        dtype=str,
        keep_default_na=False,
        na_values=MISSING,
        skipinitialspace=dialect.separator != " ",
        chunksize=rows,
    )
    with reader:
        yield from reader
