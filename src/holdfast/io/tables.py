"""Tables in files: read in chunks and encoded as numbers, in the same way for every file."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CHUNK_ROWS = 100_000
# A column of text with more different values is an identifier, not a category.
MOST_CATEGORIES = 50
# If more rows than this are lost to missing values, the rest is a different table.
LARGEST_LOSS = 0.5
# In fewer rows, whole numbers may rise from row to row by chance or by design.
FEWEST_NUMBERED = 20


def read_chunks(path: Path, rows: int = CHUNK_ROWS, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
    """The table in chunks of bounded size.

    Args:
        path: a file whose name ends in .csv, .parquet or .feather.
        rows: at most that many in a chunk (parquet and feather: their own chunks, if these are smaller).
        text: columns to be read as text. The type of the others is found chunk by chunk: a column of a .csv file with
            digits in one chunk and letters in the next has a different type in each.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "table.csv"
        >>> pd.DataFrame({"light": range(5)}).to_csv(path, index=False)
        >>> [len(chunk) for chunk in read_chunks(path, rows=2)]
        [2, 2, 1]
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise ValueError(f"data must be a file that ends in {', '.join(READERS)}, got {path.name}")
    if not path.exists():
        raise ValueError(f"data must be an existing file, got {path}")
    try:
        yield from READERS[path.suffix](path, rows, text)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as a table: {error}") from error


def _csv(path: Path, rows: int, text: Collection[str]) -> Iterator[pd.DataFrame]:
    # otherwise pandas would find different types for parts of a chunk
    with pd.read_csv(path, chunksize=rows, dtype=dict.fromkeys(text, str), low_memory=False) as reader:
        yield from reader


def _parquet(path: Path, rows: int, text: Collection[str]) -> Iterator[pd.DataFrame]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=rows):
            yield _from_arrow(batch, text)


def _feather(path: Path, rows: int, text: Collection[str]) -> Iterator[pd.DataFrame]:
    import pyarrow.ipc

    with pyarrow.memory_map(str(path)) as source:
        file = pyarrow.ipc.open_file(source)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            for begin in range(0, batch.num_rows, rows):
                yield _from_arrow(batch.slice(begin, rows), text)


READERS = {".csv": _csv, ".parquet": _parquet, ".feather": _feather}


def _from_arrow(batch: Any, text: Collection[str]) -> pd.DataFrame:
    import pyarrow

    frame = batch.to_pandas()
    for name in (name for name in text if name in batch.schema.names):
        column = batch.column(name)
        if pyarrow.types.is_integer(column.type):  # in pandas a missing value would make them 1.0 instead of 1
            column = column.cast(pyarrow.string())
        values = column.to_pandas().astype(object)
        frame[name] = values.where(values.isna(), values.astype(str)).to_numpy()
    return frame


@dataclass
class Column:
    """A column of features.

    Attributes:
        name: of the column.
        categories: the values of a column of categories, of which the first is the reference for the others; empty for
            numbers.

    Example, clay is the reference for the other soils:
        >>> Column("soil", ["clay", "sand", "silt"]).features, Column("light").features
        (['soil=sand', 'soil=silt'], ['light'])
    """

    name: str
    categories: list[str] = field(default_factory=list)

    @property
    def features(self) -> list[str]:
        """Names of the features that it is encoded as."""
        return [f"{self.name}={value}" for value in self.categories[1:]] if self.categories else [self.name]


@dataclass
class Survey:
    """The columns of a file, as a first look finds them.

    Attributes:
        columns: the features.
        target_values: different values of the target, at most three of them.
        target_numeric: whether the target holds numbers.
        rows: in the file.
        notes: what was done about columns, in sentences.
        missing: column -> rows without a value, for the columns in use that have such rows.
        text: columns to be read as text, in every chunk of the file.
    """

    columns: list[Column]
    target_values: list
    target_numeric: bool
    rows: int
    notes: list[str]
    missing: dict[str, int]
    text: frozenset[str]


@dataclass
class _Scan:
    """The findings of one pass over a file; each dictionary has an entry for each column.

    Attributes:
        rows: in the file.
        kinds: the kinds that the chunks of a column have, see `_kind`.
        values: how often each text occurs.
        missing: rows without a value.
        target_values: different values of the target, at least three of them if it has that many.
        last: the last value of each column of whole numbers that have been rising from row to row so far.
    """

    rows: int = 0
    kinds: dict[str, set[str]] = field(default_factory=dict)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    target_values: set = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> set[str]:
        """Columns with a chunk that holds text, or other values that are not numbers."""
        return {name for name, kinds in self.kinds.items() if kinds & {"category", "mixture"}}

    @property
    def undecided(self) -> set[str]:
        """Columns of text that were not read as text in every chunk."""
        return {name for name in self.text if self.kinds[name] - {"empty"} != {"category"}}


def survey(
    path: Path,
    target: str,
    environment: str | None,
    exclude: Sequence[str] = (),
    *,
    chunk_rows: int = CHUNK_ROWS,
) -> Survey:
    """Look through a file and decide what its columns are: one pass, and a second if chunks disagree.

    Args:
        path: the file.
        target: name of the column to predict.
        environment: name of the column with the environments, which are read as text even if they look like numbers;
            None: there is no such column.
        exclude: names of columns to leave out.
        chunk_rows: rows in a chunk.
    """
    named = set() if environment is None else {environment}
    seen = _scan(path, target, environment, exclude, chunk_rows, named)
    numbers_and_text = {name for name in seen.undecided if "number" in seen.kinds[name]}
    if seen.undecided:
        # a column with text in one chunk is text in every chunk, even where it holds digits
        seen = _scan(path, target, environment, exclude, chunk_rows, named | seen.text)
    if seen.rows == 0:
        raise ValueError(f"data must have at least one row, got {Path(path).name} with none")
    columns, notes = [], []
    for name, found in seen.kinds.items():
        if name in (target, environment):
            continue
        mixed = ", text as well as numbers," if name in numbers_and_text else ""
        if "date" in found:
            notes.append(f"{name} holds dates and was left out; turn it into a number if it should count.")
        elif "category" in found and len(seen.values[name]) > MOST_CATEGORIES:
            count = len(seen.values[name])
            notes.append(f"{name} has {count} different values{mixed} and was left out as an identifier.")
        elif "category" in found:
            # compared with the most frequent value; sorted otherwise, so that the order of rows does not matter
            ordered = sorted(seen.values[name], key=lambda value: (-seen.values[name][value], value))
            columns.append(Column(name, ordered[:1] + sorted(ordered[1:])))
            if mixed:
                notes.append(f"{name} holds text as well as numbers, and all its values were taken as categories.")
        elif found == {"empty"}:
            notes.append(f"{name} is empty and was left out.")
        elif name in seen.last and seen.rows >= FEWEST_NUMBERED:
            notes.append(
                f"{name} rises from row to row in whole numbers and was left out as a row number; written as 1.0, 2.0, "
                "... it would count."
            )
        else:
            columns.append(Column(name))
    if not columns:
        reasons = " ".join(notes)
        raise ValueError(f"data must have at least one column that can be a feature, got none. {reasons}".strip())
    used = {target, environment, *(column.name for column in columns)}
    missing = {name: count for name, count in seen.missing.items() if name in used}
    numeric = seen.kinds[target] - {"empty"} == {"number"}
    text = frozenset(named | seen.text)
    return Survey(columns, sorted(seen.target_values, key=str), numeric, seen.rows, notes, missing, text)


def _scan(
    path: Path, target: str, environment: str | None, exclude: Sequence[str], chunk_rows: int, text: set[str]
) -> _Scan:
    seen = _Scan()
    for chunk in read_chunks(path, chunk_rows, text):
        if seen.rows == 0:
            _check_names(list(chunk.columns), target, environment, exclude)
        first = seen.rows == 0
        seen.rows += len(chunk)
        if len(seen.target_values) < 3:
            seen.target_values |= set(chunk[target].dropna().unique()[:3].tolist())
        for name in chunk.columns:
            if name in exclude:
                continue
            if absent := int(chunk[name].isna().sum()):
                seen.missing[name] += absent
            if first or name in seen.last:
                _track_rising(chunk[name], name, seen.last)
            kind = _kind(chunk[name])
            seen.kinds.setdefault(name, set()).add(kind)
            if kind == "category" and name not in (target, environment):
                counts = chunk[name].dropna().astype(str).value_counts()
                seen.values.setdefault(name, Counter()).update({str(key): int(n) for key, n in counts.items()})
    return seen


def _track_rising(values: pd.Series, name: str, last: dict[str, int]) -> None:
    """Note the last value of a column whose whole numbers rise through this chunk too; drop the column otherwise."""
    if len(values) == 0:
        return
    before = last.pop(name, None)
    if pd.api.types.is_integer_dtype(values) and not values.isna().any():
        numbers = values.to_numpy()
        if (numbers[1:] > numbers[:-1]).all() and (before is None or numbers[0] > before):
            last[name] = int(numbers[-1])


def encode(chunk: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The features of a chunk as numbers; a missing value or an unknown category is NaN."""
    parts: dict[str, Any] = {}
    for column in columns:
        if column.name not in chunk:
            raise ValueError(f"data must have the column {column.name!r} that the model was fitted with")
        values = chunk[column.name]
        if not column.categories:
            parts[column.name] = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
            continue
        texts = pd.Index(values.where(values.isna(), values.astype(str)))
        positions = pd.Index(column.categories).get_indexer(texts)
        for number, feature in enumerate(column.features, start=1):
            parts[feature] = np.where(positions < 0, np.nan, positions == number)
    return pd.DataFrame(parts, index=chunk.index)


def complete_rows(
    path: Path, found: Survey, target: str, environment: str | None, *, chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[pd.DataFrame, pd.Series, pd.Series | None]]:
    """(features, target, environments) of the rows without missing values, chunk by chunk."""
    for chunk in read_chunks(path, chunk_rows, found.text):
        features = encode(chunk, found.columns)
        complete = features.notna().all(axis=1) & chunk[target].notna()
        if environment is not None:
            complete &= chunk[environment].notna()
        if complete.any():
            labels = None if environment is None else chunk.loc[complete, environment]
            yield features[complete], chunk.loc[complete, target], labels


def check_loss(found: Survey, complete: int) -> list[str]:
    """A sentence about rows with missing values; ValueError if they are most of the table.

    Args:
        found: the survey of the file.
        complete: how many of its rows have no missing value.
    """
    lost = found.rows - complete
    if lost == 0:
        return []
    worst = sorted(found.missing.items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({count})" for name, count in worst) or "their categories are unknown"
    if lost > LARGEST_LOSS * found.rows:
        raise ValueError(
            f"data must have at least {1 - LARGEST_LOSS:.0%} of its rows complete, got {complete} of {found.rows}; "
            f"missing are {most}: fill them in, or leave columns out with --exclude"
        )
    return [f"{lost} of {found.rows} rows were left out because values are missing: {most}."]


def _kind(values: pd.Series) -> str:
    """The kind of a chunk of a column: empty, number, date, category (text) or a mixture, such as True and no value."""
    if values.isna().all():
        return "empty"
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Series(values.cat.categories)
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    return {"string": "category", "date": "date", "datetime": "date"}.get(inferred, "mixture")


def _check_names(names: list[str], target: str, environment: str | None, exclude: Sequence[str]) -> None:
    for argument, name in (("target", target), ("environment", environment), *(("exclude", name) for name in exclude)):
        if name is not None and name not in names:
            raise ValueError(f"{argument} must be one of the columns {', '.join(map(str, names))}, got {name!r}")
    if target == environment:
        raise ValueError(f"environment must be another column than target, got {target!r} for both")
