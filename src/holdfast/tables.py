"""Tables in files: read in chunks, and turned into numbers in a way that can be repeated on new files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

READERS = (".csv", ".parquet", ".feather")
CHUNK_ROWS = 100_000
# A column of text with more different values is an identifier, not a category.
MOST_CATEGORIES = 50
# Losing more of the rows to missing values changes what the table is about.
LARGEST_LOSS = 0.5


def read_chunks(path: Path, rows: int = CHUNK_ROWS) -> Iterator[pd.DataFrame]:
    """The table in pieces of bounded size.

    Args:
        path: a file whose name ends in .csv, .parquet or .feather.
        rows: at most that many in a piece (parquet and feather: their own pieces, if these are smaller).
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise ValueError(f"data must be a file that ends in {', '.join(READERS)}, got {path.name}")
    if not path.exists():
        raise ValueError(f"data must be an existing file, got {path}")
    try:
        yield from {".csv": _csv, ".parquet": _parquet, ".feather": _feather}[path.suffix](path, rows)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as a table: {error}") from error


def _csv(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    with pd.read_csv(path, chunksize=rows) as reader:
        yield from reader


def _parquet(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=rows):
            yield batch.to_pandas()


def _feather(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    import pyarrow.ipc

    with pyarrow.memory_map(str(path)) as source:
        file = pyarrow.ipc.open_file(source)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            for begin in range(0, batch.num_rows, rows):
                yield batch.slice(begin, rows).to_pandas()


@dataclass
class Column:
    """What a feature column holds.

    Attributes:
        name: of the column.
        categories: the values of a column of categories, the first of them the one that the others are compared with;
            empty for numbers.
    """

    name: str
    categories: list[str] = field(default_factory=list)

    @property
    def features(self) -> list[str]:
        """Names of the features that it becomes."""
        return [f"{self.name}={value}" for value in self.categories[1:]] if self.categories else [self.name]


@dataclass
class Survey:
    """What a first look at a file found.

    Attributes:
        columns: the features.
        target_values: different values of the target, at most three of them.
        target_numeric: whether the target holds numbers.
        rows: in the file.
        notes: what was done about columns, in sentences.
        missing: rows in which each column has no value, where there are any.
    """

    columns: list[Column]
    target_values: list
    target_numeric: bool
    rows: int
    notes: list[str]
    missing: dict[str, int]


def survey(path: Path, target: str, environment: str | None, exclude: Sequence[str] = ()) -> Survey:
    """Look through a file and decide what its columns are.

    Args:
        path: the file.
        target: name of the column to predict.
        environment: name of the column with the environments; None: there is none.
        exclude: names of columns to leave out.
    """
    kinds: dict[str, set[str]] = {}
    values: dict[str, dict[str, int]] = {}
    missing: dict[str, int] = {}
    seen: set = set()
    target_numeric, rows = True, 0
    for chunk in read_chunks(path):
        if rows == 0:
            _check_names(list(chunk.columns), target, environment, exclude)
        rows += len(chunk)
        target_numeric &= _kind(chunk[target]) == "number"
        if len(seen) < 3:
            seen |= set(chunk[target].dropna().unique()[:3].tolist())
        for name in chunk.columns:
            if absent := int(chunk[name].isna().sum()):
                missing[name] = missing.get(name, 0) + absent
            if name in (target, environment, *exclude):
                continue
            kinds.setdefault(name, set()).add(_kind(chunk[name]))
            if _kind(chunk[name]) == "category":
                counts = values.setdefault(name, {})
                for value, count in chunk[name].dropna().astype(str).value_counts().items():
                    counts[str(value)] = counts.get(str(value), 0) + int(count)
    if rows == 0:
        raise ValueError(f"data must have at least one row, got {Path(path).name} with none")
    columns, notes = [], []
    for name, found in kinds.items():
        if "date" in found:
            notes.append(f"{name} holds dates and was left out; turn it into a number if it should count.")
        elif "category" in found and len(values[name]) > MOST_CATEGORIES:
            notes.append(f"{name} has {len(values[name])} different values and was left out as an identifier.")
        elif "category" in found:
            # compared with the most frequent value; sorted otherwise, so that the order of rows does not matter
            ordered = sorted(values[name], key=lambda value: (-values[name][value], value))
            columns.append(Column(name, ordered[:1] + sorted(ordered[1:])))
        elif found == {"empty"}:
            notes.append(f"{name} is empty and was left out.")
        else:
            columns.append(Column(name))
    if not columns:
        reasons = " ".join(notes)
        raise ValueError(f"data must have at least one column that can be a feature, got none. {reasons}".strip())
    return Survey(columns, sorted(seen, key=str), target_numeric, rows, notes, missing)


def encode(chunk: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The features of a chunk as numbers; a missing value, or a category that was not there before, is NaN."""
    parts: dict[str, Any] = {}
    for column in columns:
        if column.name not in chunk:
            raise ValueError(f"data must have the column {column.name!r} that the model was fitted with")
        values = chunk[column.name]
        if not column.categories:
            parts[column.name] = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
            continue
        texts = pd.Index(values.where(values.isna(), values.astype(str)))
        places = pd.Index(column.categories).get_indexer(texts)
        for number, feature in enumerate(column.features, start=1):
            parts[feature] = np.where(places < 0, np.nan, places == number)
    return pd.DataFrame(parts, index=chunk.index)


def complete_rows(
    path: Path, found: Survey, target: str, environment: str | None
) -> Iterator[tuple[pd.DataFrame, pd.Series, pd.Series | None]]:
    """(features, target, environments) of the rows without missing values, chunk by chunk."""
    for chunk in read_chunks(path):
        features = encode(chunk, found.columns)
        there = features.notna().all(axis=1) & chunk[target].notna()
        if environment is not None:
            there &= chunk[environment].notna()
        if there.any():
            labels = None if environment is None else chunk.loc[there, environment]
            yield features[there], chunk.loc[there, target], labels


def check_loss(found: Survey, kept: int) -> list[str]:
    """A sentence about rows with missing values; refuses if they are most of the table."""
    lost = found.rows - kept
    if lost == 0:
        return []
    worst = sorted(found.missing.items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({count})" for name, count in worst)
    if lost > LARGEST_LOSS * found.rows:
        raise ValueError(
            f"data must have at least {1 - LARGEST_LOSS:.0%} of its rows complete, got {kept} of {found.rows}; "
            f"missing are "
            f"{most}: fill them in, or leave columns out with --exclude"
        )
    return [f"{lost} of {found.rows} rows were left out because values are missing: {most}."]


def _kind(values: pd.Series) -> str:
    if values.isna().all():
        return "empty"
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return "number"
    return "date" if pd.api.types.is_datetime64_any_dtype(values) else "category"


def _check_names(names: list[str], target: str, environment: str | None, exclude: Sequence[str]) -> None:
    for argument, name in (("target", target), ("environment", environment), *(("exclude", name) for name in exclude)):
        if name is not None and name not in names:
            raise ValueError(f"{argument} must be one of the columns {', '.join(map(str, names))}, got {name!r}")
    if target == environment:
        raise ValueError(f"environment must be another column than target, got {target!r} for both")
