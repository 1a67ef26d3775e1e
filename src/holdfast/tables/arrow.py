"""Parquet and feather files in batches, and what columns of Arrow hold: numbers, dates or text."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.tables.options import Columns
from holdfast.tables.remote import DataFile
from holdfast.tables.values import coded_text


def arrow_columns(path: DataFile) -> tuple[list[str], dict[str, str]]:
    """The names of the columns, and those without single values -> what they hold instead.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "plants.parquet"
        >>> pd.DataFrame({"light": [1.0], "colours": [["red", "blue"]]}).to_parquet(path)
        >>> arrow_columns(path)
        (['light', 'colours'], {'colours': 'lists'})
    """
    with _opened(path) as file:
        schema = file.schema_arrow if _is_parquet(path) else file.schema
    return schema.names, {field.name: what for field in schema if (what := _unusable(field.type))}


def arrow_sizes(path: DataFile) -> list[int]:
    """Rows in each row group of a .parquet file, or in each record batch of a .feather file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "plants.parquet"
        >>> pd.DataFrame({"light": range(5)}).to_parquet(path, row_group_size=3)
        >>> arrow_sizes(path)
        [3, 2]
    """
    with _opened(path) as file:
        return _sizes(file, path)


def arrow_chunks(
    path: DataFile, columns: Columns, groups: tuple[int, int] | None = None
) -> Iterator[tuple[dict[str, pd.Series], float]]:
    """The cells of some columns in chunks of bounded size, each with the share of the rows that has been read then.

    An index that pandas has written is a column like the others.

    Args:
        path: a .parquet or .feather file.
        columns: to be read.
        groups: the first row group (of parquet) or record batch (of feather), and the one after the last; None: all.
    """
    names, text, rows = columns
    with _opened(path, names) as file:
        sizes = _sizes(file, path)
        first, end = groups or (0, len(sizes))
        total, numbers = sum(sizes[first:end]), list(range(first, end))
        if _is_parquet(path):
            batches = file.iter_batches(rows, numbers, columns=list(names))
        else:
            batches = _slices(file, numbers, rows)
        done = 0
        for batch in batches:
            done += batch.num_rows
            yield {name: plain_column(batch.column(name), name in text) for name in names}, done / max(total, 1)


def _sizes(file: Any, path: DataFile) -> list[int]:
    if _is_parquet(path):
        return [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    # mapped into memory, not read
    return [file.get_batch(number).num_rows for number in range(file.num_record_batches)]


def _slices(file: Any, numbers: Sequence[int], rows: int) -> Iterator[Any]:
    for number in numbers:
        batch = file.get_batch(number)
        yield from (batch.slice(begin, rows) for begin in range(0, batch.num_rows, rows))


@contextmanager
def _opened(path: DataFile, columns: Sequence[str] = ()) -> Iterator[Any]:
    """The reader of pyarrow, of bytes from elsewhere or a file of this machine, mapped into memory."""
    import pyarrow.ipc
    import pyarrow.parquet

    with pyarrow.memory_map(str(path)) if isinstance(path, Path) else path.open("rb") as file:
        if not _is_parquet(path):
            yield pyarrow.ipc.open_file(file)
            return
        # texts stay the codes that the file has; Arrow ignores names of columns of another type
        with pyarrow.parquet.ParquetFile(file, read_dictionary=list(columns)) as parquet:
            yield parquet


def _is_parquet(path: DataFile) -> bool:
    return path.name.lower().endswith(".parquet")


def _unusable(kind: Any) -> str | None:
    """What a column of this type holds if it holds no single values that we know; None otherwise."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _unusable(kind.value_type)
    if types.is_struct(kind) or types.is_map(kind):
        return "records"
    if types.is_nested(kind):
        return "lists"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "bytes"
    return None


def plain_column(column: Any, text: bool = False) -> pd.Series:
    """A column of Arrow as numbers, dates or text (a category), whatever its type is.

    Args:
        column: an array of Arrow.
        text: whether whole numbers are wanted as text: in pandas they would become 1.0 where a value is missing.

    Example:
        >>> import pyarrow
        >>> plain_column(pyarrow.array([1, None]), text=True).tolist(), plain_column(pyarrow.array([True])).tolist()
        (['1', nan], ['True'])
    """
    import pyarrow
    from pyarrow import types

    if isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.storage
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return _coded(column)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_null(kind) or types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(pyarrow.float64())
    elif types.is_date(kind) or types.is_timestamp(kind):
        # the same instants; zones that pandas does not know need not be looked up
        zone = kind.tz if types.is_timestamp(kind) else None
        column = column.cast(pyarrow.timestamp("us", tz=zone), safe=False).cast(pyarrow.timestamp("us"))
    elif types.is_duration(kind):
        return pd.Series(column.to_pandas() / pd.Timedelta(days=1))
    elif types.is_time(kind) or types.is_boolean(kind) or (types.is_integer(kind) and text):
        return _coded(column.cast(pyarrow.string()))
    return column.to_pandas()


def _coded(column: Any) -> pd.Series:
    """Strings of Arrow as a category."""
    import pyarrow

    column.validate(full=True)  # or bytes that are no text, and codes without one, are noticed later or never
    is_coded = pyarrow.types.is_dictionary(column.type)
    if is_coded and (len(column.dictionary) > len(column) or column.dictionary.null_count):
        column = column.dictionary_decode()
    coded = column.dictionary_encode()  # itself, if it is coded
    codes = coded.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return coded_text(codes.astype(np.intp, copy=False), coded.dictionary.to_pylist())
