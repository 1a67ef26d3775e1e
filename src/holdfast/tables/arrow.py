"""Parquet and feather files in chunks: columns as numbers, dates or text, whatever their types are."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.tables.remote import DataFile
from holdfast.tables.values import as_text


def arrow_columns(path: DataFile) -> tuple[list[str], dict[str, str]]:
    """The names of the columns, and those without single values -> what they hold instead.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "plants.parquet"
        >>> pd.DataFrame({"light": [1.0], "colours": [["red", "blue"]]}).to_parquet(path)
        >>> arrow_columns(path)
        (['light', 'colours'], {'colours': 'lists'})
    """
    import pyarrow.ipc
    import pyarrow.parquet

    with _opened(path) as file:
        schema = pyarrow.parquet.read_schema(file) if _is_parquet(path) else pyarrow.ipc.open_file(file).schema
    return schema.names, {field.name: what for field in schema if (what := _unusable(field.type))}


def arrow_chunks(
    path: DataFile, rows: int, text: Collection[str], columns: Sequence[str], groups: tuple[int, int] | None = None
) -> Iterator[tuple[pd.DataFrame, float]]:
    """The rows in chunks of bounded size, each with the share of the file that has been read then.

    An index that pandas has written is a column like the others.

    Args:
        path: a .parquet or .feather file.
        rows: at most that many in a chunk.
        text: columns to be read as text.
        columns: to be read.
        groups: the first row group (of parquet) or record batch (of feather), and the one after the last; None: all.
    """
    for batch, share in _batches(path, rows, columns, groups):
        yield pd.DataFrame({name: _plain(batch.column(name), name in text) for name in columns}), share


def _is_parquet(path: DataFile) -> bool:
    return path.name.lower().endswith(".parquet")


@contextmanager
def _opened(path: DataFile) -> Iterator[Any]:
    """What pyarrow reads: bytes from elsewhere, or a file of this machine, mapped into memory."""
    import pyarrow

    with pyarrow.memory_map(str(path)) if isinstance(path, Path) else path.open("rb") as file:
        yield file


def arrow_sizes(path: DataFile) -> list[int]:
    """Rows in each row group of a .parquet file, or in each record batch of a .feather file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "plants.parquet"
        >>> pd.DataFrame({"light": range(5)}).to_parquet(path, row_group_size=3)
        >>> arrow_sizes(path)
        [3, 2]
    """
    import pyarrow.ipc
    import pyarrow.parquet

    with _opened(path) as file:
        if _is_parquet(path):
            metadata = pyarrow.parquet.read_metadata(file)
            return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        batches = pyarrow.ipc.open_file(file)
        return [batches.get_batch(number).num_rows for number in range(batches.num_record_batches)]


def _batches(
    path: DataFile, rows: int, columns: Sequence[str], groups: tuple[int, int] | None
) -> Iterator[tuple[Any, float]]:
    """Parts of the rows, each with the share that has been read then."""
    import pyarrow.ipc
    import pyarrow.parquet

    if _is_parquet(path):
        with _opened(path) as opened, pyarrow.parquet.ParquetFile(opened) as file:
            numbers = list(range(*(groups or (0, file.metadata.num_row_groups))))
            total, done = sum(file.metadata.row_group(number).num_rows for number in numbers), 0
            for batch in file.iter_batches(batch_size=rows, columns=list(columns), row_groups=numbers):
                done += batch.num_rows
                yield batch, done / max(total, 1)
        return
    with _opened(path) as opened:
        file = pyarrow.ipc.open_file(opened)
        every = range(*(groups or (0, file.num_record_batches)))
        for done, number in enumerate(every):
            batch = file.get_batch(number)
            for begin in range(0, batch.num_rows, rows):
                part = batch.slice(begin, rows)
                yield part, (done + (begin + part.num_rows) / batch.num_rows) / len(every)


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


def _plain(column: Any, text: bool) -> pd.Series:
    import pyarrow
    from pyarrow import types

    if isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.storage
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        column.validate(full=True)  # bytes that are no text would be noticed only when they are used
    if types.is_null(kind) or types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(pyarrow.float64())
    elif types.is_date(kind) or types.is_timestamp(kind):
        zone = kind.tz if types.is_timestamp(kind) else None
        column = column.cast(pyarrow.timestamp("us", tz=zone), safe=False)
        if zone is not None:  # the same instants; zones that pandas does not know need not be looked up
            column = column.cast(pyarrow.timestamp("us"))
    elif types.is_duration(kind):
        return pd.Series(column.to_pandas() / pd.Timedelta(days=1))
    elif types.is_time(kind) or (types.is_integer(kind) and text):
        column = column.cast(pyarrow.string())  # in pandas, whole numbers with a missing value would become 1.0
    return as_text(column.to_pandas()) if text else column.to_pandas()
