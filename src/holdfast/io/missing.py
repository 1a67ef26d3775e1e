"""Missing values: rows that are dropped, or cells that are imputed, with indicators."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.io.columns import Column, check_features, encode_column
from holdfast.io.labels import EnvironmentRule, bin_edges, check_dates
from holdfast.io.survey import Survey
from holdfast.io.values import as_days, as_numbers, as_text

# Rows are dropped if no more than this share of them is lost.
LARGEST_LOSS = 0.05
# Medians and quantiles are exact up to this number of values; beyond it, those of every second, fourth, ... row.
MOST_SAMPLED = 1 << 20


class EvenSample:
    """Values at even distances in a stream, at most `limit` of them.

    Example, every second of six values:
        >>> sample = EvenSample(limit=4)
        >>> for chunk in ([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]):
        ...     sample.add(np.array(chunk))
        >>> sample.values.tolist()
        [0.0, 2.0, 4.0]
    """

    def __init__(self, limit: int = MOST_SAMPLED):
        self._limit, self._stride, self._seen = limit, 1, 0
        self._parts: list[np.ndarray] = []

    @property
    def values(self) -> np.ndarray:
        """The sample, in the order of the stream."""
        return np.concatenate([np.empty(0), *self._parts])

    def add(self, values: np.ndarray) -> None:
        """See the next values of the stream."""
        self._parts.append(values[-self._seen % self._stride :: self._stride])
        self._seen += len(values)
        while sum(map(len, self._parts)) > self._limit:
            self._parts = [self.values[::2]]
            self._stride *= 2


@dataclass
class _Statistics:
    """What one pass finds for imputation and bins: of the rows that have a target and an environment."""

    rows: int = 0
    incomplete: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, EvenSample] = field(default_factory=dict)
    categories: dict[str, Counter[str]] = field(default_factory=dict)


def with_bins(found: Survey, progress: Progress | None = None) -> Survey:
    """The survey with the edges of the bins that its environments are made of; checks that periods are of dates.

    Args:
        found: the survey.
        progress: called with (bytes read, bytes in all).
    """
    if found.environment is None or all(column.plain for column in found.environment.columns):
        return found
    samples = {column.name: EvenSample() for column in found.environment.columns if column.bins is not None}
    dated = {column.name: False for column in found.environment.columns if column.period is not None}
    examples: dict[str, pd.Series] = {}
    for chunk in found.table.chunks(found.chunk_rows, found.text, found.environment.names, progress):
        for name, sample in samples.items():
            numbers = as_numbers(chunk[name], found.table.decimal)
            sample.add(numbers[~np.isnan(numbers)])
        for name, seen in dated.items():
            if not seen and chunk[name].notna().any():
                examples[name] = chunk[name]
                dated[name] = bool(~np.isnan(as_days(chunk[name])).all())
    for column in found.environment.columns:
        if column.name in examples and not dated[column.name]:
            check_dates(examples[column.name], column)
    edges = {
        column.name: bin_edges(samples[column.name].values, column)
        for column in found.environment.columns
        if column.bins is not None
    }
    return replace(found, environment=EnvironmentRule(found.environment.columns, edges))


def plan_missing(found: Survey, progress: Progress | None = None) -> Survey:
    r"""Decide what happens to rows with missing values: the survey, its columns filled where cells are imputed.

    With "auto", rows are dropped if at most 5 % of those with a target and an environment are lost. Otherwise a number
    becomes the median of its column, a category the most frequent one, and each such column gets an indicator.

    Args:
        found: the survey.
        progress: called with (bytes read, bytes in all).

    Example, the median of 1 and 3 stands for the missing value:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.io.reading import open_table
        >>> from holdfast.io.survey import survey
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light,yield\n1,2\n3,3\n,4\n")
        >>> plan_missing(survey(open_table(path), "yield")).columns[0].fill
        2.0
    """
    incomplete = {column.name: found.missing[column.name] for column in found.columns if column.name in found.missing}
    rule = found.options.missing
    if not incomplete or rule == "drop":
        return found
    labelled = found.rows - sum(count for name, count in found.missing.items() if name not in incomplete)
    if rule == "auto" and sum(incomplete.values()) <= LARGEST_LOSS * labelled:
        return found
    lacking = [column for column in found.columns if column.name in incomplete]
    chunks = (chunk for chunk, _, _ in found.labelled(progress))
    seen = _statistics(chunks, lacking, found.table.decimal)
    if rule == "auto" and seen.incomplete <= LARGEST_LOSS * seen.rows:
        return found
    columns = list(_filled(found.columns, seen, [name for name, count in seen.missing.items() if count]))
    dropped = [column.name for column in found.columns if column.name not in {each.name for each in columns}]
    notes = [f"{name} is empty wherever the target is known, and was left out." for name in dropped]
    if not columns:
        raise ValueError(f"data must have at least one column that can be a feature, got none. {' '.join(notes)}")
    filled = ", ".join(f"{column.name} ({seen.missing[column.name]})" for column in columns if column.fill is not None)
    if filled:
        notes.append(
            f"{seen.incomplete} of {seen.rows} rows miss values of {filled}: medians and most frequent categories "
            "stand for them, and indicators are features of their own; --missing drop leaves the rows out instead."
        )
    check_features(columns, found.table.name)
    return replace(found, columns=tuple(columns), notes=(*found.notes, *notes))


def refilled(columns: Sequence[Column], rows: pd.DataFrame, decimal: str) -> list[Column]:
    """The columns, with what stands for missing values found anew from some rows; none of a column without values.

    Args:
        columns: of a survey; those that are filled stay filled, the others are left as they are.
        rows: cells of these columns.
        decimal: the decimal sign of numbers that are written as text.

    Example:
        >>> refilled([Column("light", fill=9.0)], pd.DataFrame({"light": [1.0, 2.0, np.nan]}), ".")[0].fill
        1.5
    """
    lacking = [column for column in columns if column.fill is not None]
    seen = _statistics([rows], lacking, decimal)
    return list(_filled(columns, seen, [column.name for column in lacking]))


def _statistics(chunks: Iterable[pd.DataFrame], columns: Sequence[Column], decimal: str) -> _Statistics:
    seen = _Statistics(
        numbers={column.name: EvenSample() for column in columns if column.kind != "category"},
        categories={column.name: Counter() for column in columns if column.kind == "category"},
    )
    for chunk in chunks:
        lost = np.zeros(len(chunk), bool)
        for column in columns:
            encoded = encode_column(chunk[column.name], column, decimal)
            seen.missing[column.name] += int(encoded.missing.sum())
            lost |= encoded.missing
            if column.kind == "category":
                seen.categories[column.name].update(as_text(chunk[column.name]).dropna())
            else:
                seen.numbers[column.name].add(encoded.values[~encoded.missing, 0])
        seen.rows += len(chunk)
        seen.incomplete += int(lost.sum())
    return seen


def _filled(columns: Sequence[Column], seen: _Statistics, names: Collection[str]) -> Iterator[Column]:
    """All columns, those of these names with what stands for missing values, unless they have no value at all."""
    for column in columns:
        if column.name not in names:
            yield column
        elif seen.missing[column.name] == seen.rows:
            continue
        elif column.kind == "category":
            counts = seen.categories[column.name]
            yield msgspec.structs.replace(column, fill=min(counts, key=lambda value: (-counts[value], value)))
        else:
            yield msgspec.structs.replace(column, fill=float(np.median(seen.numbers[column.name].values)))


def about_dropped(found: Survey, complete: int) -> list[str]:
    """A sentence about rows that were left out; ValueError if no row is left.

    Args:
        found: the survey.
        complete: how many of its rows were used.
    """
    lost = found.rows - complete
    if lost == 0:
        return []
    filled = {column.name for column in found.columns if column.fill is not None}
    counts = {name: count for name, count in found.missing.items() if name not in filled}
    worst = sorted(counts.items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({count})" for name, count in worst) or "values that could not be used"
    if complete == 0:
        raise ValueError(
            f"data must have complete rows, got {found.rows} rows of {found.table.name} with missing values in each: "
            f"{most}; --missing impute fills features, --exclude leaves columns out"
        )
    return [f"{lost} of {found.rows} rows were left out because values are missing: {most}."]
