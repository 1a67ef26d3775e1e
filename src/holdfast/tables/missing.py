"""Missing values: rows that are dropped, or cells that are imputed, with indicators."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.tables.columns import Column, check_features
from holdfast.tables.encoding import CellFaults, RowEncoding
from holdfast.tables.labels import bin_edges, without_dates
from holdfast.tables.options import MOST_LISTED, Columns
from holdfast.tables.passes import Passes, RowSample, sample_rows
from holdfast.tables.survey import Survey
from holdfast.tables.values import as_numbers

# Rows are dropped if no more than this share of them is lost.
LARGEST_LOSS = 0.05
# Medians and quantiles are exact up to this number of rows; beyond it, those of so many rows, drawn at random.
MOST_SAMPLED = 1 << 20


class _Statistics(NamedTuple):
    """What one pass finds for imputation, of the rows that have a target and an environment, and for bins, of all.

    Attributes:
        rows: how many have a target and an environment.
        incomplete: with a missing value in one of the columns.
        missing: column -> rows without a value.
        sample: of each column, the numbers that stand for its cells; NaN for missing values.
        binned: of each column with bins, its numbers in all rows.
    """

    rows: int
    incomplete: int
    missing: Counter[str]
    sample: RowSample
    binned: RowSample

    def merge(self, after: "_Statistics") -> "_Statistics":
        return _Statistics(
            self.rows + after.rows,
            self.incomplete + after.incomplete,
            self.missing + after.missing,
            self.sample.merge(after.sample),
            self.binned.merge(after.binned),
        )


def complete_survey(found: Survey, passes: Passes | None = None, progress: Progress | None = None) -> Survey:
    r"""The survey with the edges of bins, and with what stands for missing values: one pass for both, if needed.

    With "auto", rows are dropped if at most 5 % of those with a target and an environment are lost. Otherwise a number
    becomes the median of its column, a category the most frequent one, and each such column gets an indicator.

    Args:
        found: the survey.
        passes: by which the table is read; None: by this process.
        progress: called with (done, total).

    Example, the median of 1 and 3 stands for the missing value:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.reading import open_table
        >>> from holdfast.tables.survey import survey
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light,yield\n1,2\n3,3\n,4\n")
        >>> complete_survey(survey(open_table(path), "yield")).columns[0].fill
        2.0
    """
    rule, lacking = found.environment, _lacking(found)
    binned = [each for each in rule.columns if each.bins is not None]
    if not binned and not lacking:
        return found
    names = [each.name for each in binned]
    reading = found.reading if lacking else Columns(names, found.text, found.chunk_rows)
    collect = partial(_collected, encoding=found.encoding, columns=lacking, binned=names)
    seen = (passes or Passes()).reduce(found.table, reading, collect, _Statistics.merge, progress)
    if seen is None:
        return found
    edges = {each.name: bin_edges(values, each) for each, values in zip(binned, seen.binned.arrays, strict=True)}
    found = replace(found, environment=replace(rule, edges=edges))
    return _imputed(found, seen, lacking) if lacking else found


def _lacking(found: Survey) -> list[Column]:
    """The columns whose missing values are imputed, as far as the survey can tell."""
    incomplete = {column.name: found.missing[column.name] for column in found.columns if column.name in found.missing}
    rule = found.options.missing
    labelled = found.rows - sum(count for name, count in found.missing.items() if name not in incomplete)
    if rule == "drop" or (rule == "auto" and sum(incomplete.values()) <= LARGEST_LOSS * labelled):
        return []
    return [column for column in found.columns if column.name in incomplete]


def _imputed(found: Survey, seen: _Statistics, lacking: Sequence[Column]) -> Survey:
    if found.options.missing == "auto" and seen.incomplete <= LARGEST_LOSS * seen.rows:
        return found
    sampled = zip(lacking, seen.sample.arrays, strict=True)
    columns = _filled(found.columns, {each.name: numbers for each, numbers in sampled if seen.missing[each.name]})
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
    filled = (column for column in columns if column.fill is not None)
    return _filled(columns, {each.name: each.type.numbers(rows[each.name], each, decimal) for each in filled})


def _collected(
    chunk: pd.DataFrame, encoding: RowEncoding, columns: Sequence[Column], binned: Sequence[str]
) -> _Statistics:
    cells, decimal = encoding.labelled(chunk)[0].cells if columns else chunk, encoding.decimal
    numbers = {column.name: column.type.numbers(cells[column.name], column, decimal) for column in columns}
    missing = {name: np.isnan(values) for name, values in numbers.items()}
    return _Statistics(
        len(cells),
        int(np.any([*missing.values()], axis=0).sum()),
        +Counter({name: int(where.sum()) for name, where in missing.items()}),
        sample_rows(cells.index.to_numpy(), [*numbers.values()], MOST_SAMPLED),
        sample_rows(chunk.index.to_numpy(), [as_numbers(chunk[name], decimal) for name in binned], MOST_SAMPLED),
    )


def _filled(columns: Sequence[Column], numbers: Mapping[str, np.ndarray]) -> list[Column]:
    """All columns, those that miss values with what stands for these; without those that have no value at all.

    Args:
        columns: of a table.
        numbers: column that misses values -> the numbers that stand for its cells.
    """
    found = []
    for column in columns:
        if (values := numbers.get(column.name)) is None:
            found.append(column)
        elif (known := values[np.isfinite(values)]).size:
            found.append(msgspec.structs.replace(column, fill=column.type.fill(known, column)))
    return found


class CountedRows(NamedTuple):
    """Rows of a table.

    Attributes:
        read: all of them.
        complete: those that have all values that are needed.
        faults: why the others cannot be used.
    """

    read: int
    complete: int
    faults: CellFaults


def about_dropped(found: Survey, rows: CountedRows) -> list[str]:
    """Sentences about rows that were left out; ValueError if no row is left, or a schema is that of other columns.

    Args:
        found: the survey.
        rows: how many of its rows were used.
    """
    faults, table, notes = rows.faults, found.table.name, list[str]()
    if found.known_task is not None:  # a survey would have looked at the columns
        for part in found.environment.columns:
            if part.period is not None and faults.stray[part.name] and faults.missing[part.name] == rows.read:
                raise ValueError(without_dates(part, faults.examples[part.name]))
        for column in found.columns:
            faults.check_kind(column, table)
        notes = faults.about_stray(rows.read)
    if rows.complete == rows.read:
        return notes
    reasons = "; ".join(faults.reasons()[:MOST_LISTED])
    if rows.complete == 0:
        mend = "; --missing impute fills features, --exclude leaves columns out" if found.known_task is None else ""
        raise ValueError(
            f"data must have complete rows, got {rows.read} rows of {table} and none of them: {reasons}{mend}"
        )
    return [*notes, f"{rows.read - rows.complete} of {rows.read} rows were left out: {reasons}."]
