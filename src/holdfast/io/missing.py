"""Missing values: rows that are dropped, or cells that are imputed, with indicators."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.io.columns import Column, category_texts, check_features, encode_column
from holdfast.io.encoding import RowEncoding
from holdfast.io.labels import EnvironmentColumn, EnvironmentRule, bin_edges, check_dates
from holdfast.io.passes import Columns, Passes
from holdfast.io.sampling import RowSample, sample_rows
from holdfast.io.survey import Survey
from holdfast.io.values import as_days, as_numbers, as_text

# Rows are dropped if no more than this share of them is lost.
LARGEST_LOSS = 0.05
# Medians and quantiles are exact up to this number of rows; beyond it, those of so many rows, drawn at random.
MOST_SAMPLED = 1 << 20


class _Values(NamedTuple):
    """What one pass finds for bins and periods: of the columns that environments are made of.

    Attributes:
        sample: (rows, columns with bins).
        dated: column with periods -> whether it has dates.
        examples: column with periods -> its first value.
    """

    sample: RowSample
    dated: dict[str, bool]
    examples: dict[str, str]

    def merge(self, after: "_Values") -> "_Values":
        dated = {name: found or after.dated[name] for name, found in self.dated.items()}
        return _Values(self.sample.merge(after.sample), dated, after.examples | self.examples)


class _Statistics(NamedTuple):
    """What one pass finds for imputation: of the rows that have a target and an environment.

    Attributes:
        rows: how many.
        incomplete: with a missing value in one of the columns.
        missing: column -> rows without a value.
        sample: (rows, columns of numbers), NaN for missing values.
        categories: column of categories -> how often each occurs.
    """

    rows: int
    incomplete: int
    missing: Counter[str]
    sample: RowSample
    categories: dict[str, Counter[str]]

    def merge(self, after: "_Statistics") -> "_Statistics":
        return _Statistics(
            self.rows + after.rows,
            self.incomplete + after.incomplete,
            self.missing + after.missing,
            self.sample.merge(after.sample),
            {name: counts + after.categories[name] for name, counts in self.categories.items()},
        )


def with_bins(found: Survey, passes: Passes | None = None, progress: Progress | None = None) -> Survey:
    """The survey with the edges of the bins that its environments are made of; checks that periods are of dates.

    Args:
        found: the survey.
        passes: by which the table is read; None: by this process.
        progress: called with (done, total).
    """
    rule, passes = found.environment, passes or Passes()
    if rule is None or all(column.plain for column in rule.columns):
        return found
    reading = Columns(rule.names, found.text, found.chunk_rows)
    collect = partial(_values, columns=rule.columns, decimal=found.table.decimal)
    seen = passes.reduce(found.table, reading, collect, _Values.merge, progress)
    if seen is None:
        return found
    binned = [column for column in rule.columns if column.bins is not None]
    for column in rule.columns:
        if column.name in seen.examples and not seen.dated[column.name]:
            check_dates(pd.Series([seen.examples[column.name]], dtype=object), column)
    numbers = seen.sample.arrays[0]
    edges = {column.name: bin_edges(numbers[:, number], column) for number, column in enumerate(binned)}
    return replace(found, environment=EnvironmentRule(rule.columns, edges))


def _values(chunk: pd.DataFrame, columns: Sequence[EnvironmentColumn], decimal: str) -> _Values:
    binned = [as_numbers(chunk[column.name], decimal) for column in columns if column.bins is not None]
    dated, examples = {}, {}
    for column in columns:
        if column.period is not None:
            values = chunk[column.name]
            dated[column.name] = bool((~np.isnan(as_days(values))).any())
            if values.notna().any():
                examples[column.name] = str(as_text(values.dropna()[:1]).iloc[0])
    numbers = np.column_stack([*binned, np.empty((len(chunk), 0))])
    return _Values(sample_rows(chunk.index.to_numpy(), [numbers], MOST_SAMPLED), dated, examples)


def plan_missing(found: Survey, passes: Passes | None = None, progress: Progress | None = None) -> Survey:
    r"""Decide what happens to rows with missing values: the survey, its columns filled where cells are imputed.

    With "auto", rows are dropped if at most 5 % of those with a target and an environment are lost. Otherwise a number
    becomes the median of its column, a category the most frequent one, and each such column gets an indicator.

    Args:
        found: the survey.
        passes: by which the table is read; None: by this process.
        progress: called with (done, total).

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
    collect = partial(_labelled_statistics, encoding=found.encoding, columns=lacking)
    seen = (passes or Passes()).reduce(found.table, found.reading, collect, _Statistics.merge, progress)
    if seen is None:
        return found
    if rule == "auto" and seen.incomplete <= LARGEST_LOSS * seen.rows:
        return found
    columns = list(_filled(found.columns, seen, lacking))
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
    seen = _statistics(rows.reset_index(drop=True), lacking, decimal)
    return list(_filled(columns, seen, lacking))


def _labelled_statistics(chunk: pd.DataFrame, encoding: RowEncoding, columns: Sequence[Column]) -> _Statistics:
    return _statistics(encoding.labelled(chunk).cells, columns, encoding.decimal)


def _statistics(chunk: pd.DataFrame, columns: Sequence[Column], decimal: str) -> _Statistics:
    lost, missing = np.zeros(len(chunk), bool), Counter[str]()
    numbers: list[np.ndarray] = []
    categories: dict[str, Counter] = {}
    for column in columns:
        encoded = encode_column(chunk[column.name], msgspec.structs.replace(column, fill=None), decimal)
        missing[column.name] = int(encoded.missing.sum())
        lost |= encoded.missing
        if column.kind == "category":
            categories[column.name] = Counter(
                category_texts(chunk[column.name], column, decimal).value_counts().to_dict()
            )
        else:
            numbers.append(encoded.values[:, 0])
    values = np.column_stack([*numbers, np.empty((len(chunk), 0))])
    sample = sample_rows(chunk.index.to_numpy(), [values], MOST_SAMPLED)
    return _Statistics(len(chunk), int(lost.sum()), missing, sample, categories)


def _filled(columns: Sequence[Column], seen: _Statistics, lacking: Sequence[Column]) -> Iterator[Column]:
    """All columns, those of `seen` with what stands for missing values, unless they have no value at all."""
    numbers = [column.name for column in lacking if column.kind != "category"]
    medians = dict(zip(numbers, seen.sample.arrays[0].T, strict=True))
    names = {column.name for column in lacking if column.fill is not None or seen.missing[column.name]}
    for column in columns:
        if column.name not in names:
            yield column
        elif seen.missing[column.name] == seen.rows or np.isnan(medians.get(column.name, 0.0)).all():
            continue
        elif column.kind == "category":
            counts = seen.categories[column.name]
            yield msgspec.structs.replace(column, fill=min(counts, key=lambda value: (-counts[value], value)))
        else:
            yield msgspec.structs.replace(column, fill=float(np.nanmedian(medians[column.name])))


def about_dropped(found: Survey, complete: int, rows: int | None = None) -> list[str]:
    """A sentence about rows that were left out; ValueError if no row is left.

    Args:
        found: the survey.
        complete: how many of its rows were used.
        rows: how many there are; None: as the survey has counted them.
    """
    rows = found.rows if rows is None else rows
    lost = rows - complete
    if lost == 0:
        return []
    filled = {column.name for column in found.columns if column.fill is not None}
    counts = {name: count for name, count in found.missing.items() if name not in filled}
    worst = sorted(counts.items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({count})" for name, count in worst) or "values that could not be used"
    if complete == 0:
        raise ValueError(
            f"data must have complete rows, got {rows} rows of {found.table.name} with missing values in each: "
            f"{most}; --missing impute fills features, --exclude leaves columns out"
        )
    return [f"{lost} of {rows} rows were left out because values are missing: {most}."]
