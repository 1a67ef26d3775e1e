"""What the columns of a table are: features, target, environments, or nothing that can be used."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.tables.columns import Column, check_features, features_of, groups_of
from holdfast.tables.encoding import EncodedRows, RowEncoding
from holdfast.tables.faults import CellFaults
from holdfast.tables.labels import EnvironmentColumn, EnvironmentRule, parse_environment, without_dates
from holdfast.tables.models import TableModel, lacking_columns
from holdfast.tables.options import ReadingOptions, listed, named_columns
from holdfast.tables.passes import ChunkedRows, Columns, Passes
from holdfast.tables.reading import CHUNK_ROWS
from holdfast.tables.scan import MOST_COUNTED, ColumnScan, scan
from holdfast.tables.values import as_numbers, as_text, whole_numbers

# A column of text with more different values is an identifier, not a category, unless the user says that it is one.
MOST_CATEGORIES = 50
# In fewer rows, whole numbers may rise from row to row by chance or by design.
FEWEST_NUMBERED = 20


@dataclass(frozen=True)
class Survey:
    """A table whose columns are understood.

    Attributes:
        table: the files or the data frame.
        target: name of the column to predict.
        environment: how rows get their environments; None: there is one.
        columns: the features.
        target_values: different values of the target, at most three of them.
        target_numeric: whether the target holds numbers.
        rows: in the table.
        notes: what was done about columns, in sentences.
        missing: column -> rows without a usable value, for the columns in use that have such rows.
        text: columns to be read as text, in every chunk.
        options: how the table is read.
        chunk_rows: rows in a chunk.
        known_task: what is fitted, where a schema says so.
    """

    table: ChunkedRows
    target: str
    environment: EnvironmentRule | None
    columns: tuple[Column, ...]
    target_values: tuple
    target_numeric: bool
    rows: int
    notes: tuple[str, ...]
    missing: dict[str, int]
    text: frozenset[str]
    options: ReadingOptions
    chunk_rows: int = CHUNK_ROWS
    known_task: Literal["regression", "classification"] | None = None

    @property
    def used(self) -> list[str]:
        """Names of the columns that a fit reads."""
        environments = [] if self.environment is None else self.environment.names
        return [self.target, *environments, *(column.name for column in self.columns)]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return features_of(self.columns)

    @property
    def groups(self) -> list[str]:
        """For each feature, the column that it comes from."""
        return groups_of(self.columns)

    @property
    def reading(self) -> Columns:
        """What a pass for the fit reads."""
        return Columns(self.used, self.text, self.chunk_rows)

    @property
    def encoding(self) -> RowEncoding:
        """How its rows become features."""
        return RowEncoding(self.target, self.target_numeric, self.environment, self.columns, self.table.decimal)

    def complete(self, progress: Progress | None = None, *, encoded: bool = True) -> Iterator[EncodedRows]:
        """The rows without missing values, chunk by chunk, with their features or, not encoded, with their cells."""
        for _, rows, _ in self.examined(progress, encoded=encoded):
            if len(rows.values):
                yield rows

    def examined(
        self, progress: Progress | None = None, *, encoded: bool = True
    ) -> Iterator[tuple[int, EncodedRows, CellFaults]]:
        """Of each chunk the number of its rows, those without missing values, and why the others cannot be used."""
        for chunk in self.table.chunks(self.chunk_rows, self.text, self.used, progress):
            yield len(chunk), *self.encoding.examined(chunk, encoded=encoded)


def survey(
    table: ChunkedRows,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    *,
    passes: Passes | None = None,
    chunk_rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
) -> Survey:
    r"""Look through a table and decide what its columns are: one pass, and a second if chunks disagree.

    Args:
        table: the files or the data frame.
        target: name of the column to predict.
        environment: what the environments are, see `environment_labels`; None: there is one.
        options: which columns are what.
        passes: by which the table is read; None: by this process.
        chunk_rows: rows in a chunk.
        progress: called with (bytes read, bytes in all), for both passes.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.reading import open_table
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light,soil,place,yield\n1,clay,hill,2\n2,sand,shore,3\n3,clay,hill,4\n")
        >>> survey(open_table(path), "yield", "place").features
        ['light', 'soil=sand']
    """
    options, passes = options or ReadingOptions(), passes or Passes()
    roles = _roles(table, target, environment, options)
    scanned = [name for name in table.columns if name not in roles.ignored]
    first, second = stages(progress, [1, 1])
    periods = [] if roles.rule is None else [column for column in roles.rule.columns if column.period is not None]
    noted = {target, *(column.name for column in periods)}
    scanning = scan(table, scanned, roles.text, chunk_rows, passes, noted=noted, progress=first)
    found, rows = scanning.columns, scanning.rows
    if rows == 0:
        raise ValueError(f"data must have at least one row, got {table.name} with none")
    # Categories that look like numbers in some chunk are read again as text: there, 01 is not 1.
    again = {name for name in scanned if name not in roles.numeric and found[name].kind == "category"}
    if any(found[name].by_type for name in again):
        roles = replace(roles, text=roles.text | again)
        scanning = scan(table, scanned, roles.text, chunk_rows, passes, noted=noted, progress=second)
        found = scanning.columns
    for period in periods:
        _check_dates(period, found[period.name])
    numeric = target in roles.numeric or (found[target].kind == "number" and target not in roles.categories)
    columns, notes, missing = [], list(table.notes), {}
    for name in scanned:
        if name == target or name in roles.environments:
            absent = found[name].missing
            if name == target and numeric:
                absent = found[name].rows - found[name].numbers + found[name].infinite
        else:
            column, said = _column(name, found[name], roles, table.decimal)
            notes += said
            if column is None:
                continue
            columns.append(column)
            absent = _unusable(found[name], column)
        if absent:
            missing[name] = absent
    if numeric:
        notes += _about_target(target, found[target])
    if not columns:
        reasons = " ".join(notes)
        raise ValueError(f"data must have at least one column that can be a feature, got none. {reasons}".strip())
    check_features(columns, table.name)
    numbered = frozenset(name for name in roles.environments if found[name].holds_numbers)
    if environment is None:
        notes.append(_without_environment(columns))
    return Survey(
        table.counted(scanning.lengths),
        target,
        None if roles.rule is None else replace(roles.rule, numbered=numbered),
        tuple(columns),
        found[target].seen_numbers if numeric else found[target].seen_texts,
        numeric,
        rows,
        tuple(notes),
        missing,
        roles.text,
        options,
        chunk_rows,
    )


def survey_as(
    model: TableModel,
    table: ChunkedRows,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    *,
    chunk_rows: int = CHUNK_ROWS,
) -> Survey:
    r"""The columns of a table are those of a model that was fitted before, so that nothing has to be read to know them.

    Rows with a category that the model does not know are left out. 1.0 is the environment 1, even in a column that has
    text as well. What stands for missing values is what the model
    has. The rows of a Dask data frame are not counted first: edges of bins, of more than a million rows, depend on its
    partitions.

    Args:
        model: the one with the columns.
        table: the files or the data frame; its rows are not known yet, and count as 0.
        target: name of the column to predict, that of the model.
        environment: what the environments are, see `environment_labels`; None: there is one.
        options: how the table is read; the model says which columns are what.
        chunk_rows: rows in a chunk.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.reading import open_table
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light,soil,yield\n1,clay,2\n")
        >>> columns = (Column("soil", "category", ("clay", "sand")),)
        >>> model = TableModel(
        ...     task="regression", target="yield", columns=columns, coefficients=((2.0,),), intercepts=(1.0,)
        ... )
        >>> survey_as(model, open_table(path), "yield").features
        ['soil=sand']
    """
    options = options or ReadingOptions()
    options.refuse(("categories", "numeric", "exclude", "missing"), "with a schema, which says what the columns are")
    roles = _roles(table, target, environment, replace(options, exclude=tuple({*table.unusable} - {target})))
    if target != model.target:
        raise ValueError(f"target must be {model.target!r} with this schema, got {target!r}")
    names = [column.name for column in model.columns]
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise ValueError(lacking_columns(lacking, table.name))
    for name in [*roles.environments, *names]:
        if name in table.unusable:
            raise ValueError(_several_values(name, table))
    for name in roles.environments & set(names):
        raise ValueError(f"environment must be made of columns that are no features of the schema, got {name!r}")
    numeric = model.task == "regression" or not np.isnan(as_numbers(pd.Series(model.classes, dtype=object))).any()
    text = roles.text | {column.name for column in model.columns if column.kind == "category"}
    rule = None if roles.rule is None else replace(roles.rule, numbered=roles.environments)
    # what a column is does not depend on whether its effect is a curve, which is for the rows of this table to say
    columns = tuple(msgspec.structs.replace(column, knots=()) for column in model.columns)
    return Survey(table, target, rule, columns, (), numeric, 0, table.notes, {}, text, options, chunk_rows, model.task)


@dataclass(frozen=True)
class _Roles:
    """Which columns the user has named, and for what."""

    rule: EnvironmentRule | None
    environments: frozenset[str]
    categories: frozenset[str]
    numeric: frozenset[str]
    ignored: frozenset[str]
    text: frozenset[str]


def _roles(table: ChunkedRows, target: str, environment: str | None, options: ReadingOptions) -> _Roles:
    names = table.columns
    for argument, name in (("target", target), ("id", options.id)):
        if name is not None and name not in names:
            raise ValueError(f"{argument} must be one of the columns {listed(names)}, got {name!r}")
    named = {
        argument: frozenset(named_columns(getattr(options, argument), names, argument))
        for argument in ("categories", "numeric", "exclude")
    }
    rule = None if environment is None else EnvironmentRule(parse_environment(environment, names))
    environments = frozenset() if rule is None else frozenset(rule.names)
    if target in environments:
        raise ValueError(f"environment must be another column than target, got {target!r} for both")
    if target == options.id:
        raise ValueError(f"id must be another column than target, got {target!r} for both")
    if target in named["exclude"]:
        raise ValueError(f"exclude must not name the target, got {target!r}")
    for one, other in (("categories", "numeric"), ("categories", "exclude"), ("numeric", "exclude")):
        for name in sorted(named[one] & named[other]):
            raise ValueError(f"{one} and {other} must name different columns, got {name!r} in both")
    ignored = named["exclude"] - environments
    if options.id is not None and options.id not in environments:
        ignored |= {options.id}
    for name in table.unusable:
        if name not in ignored:
            hint = "" if name == target or name in environments else "; --exclude leaves it out"
            raise ValueError(_several_values(name, table) + hint)
    plain = frozenset() if rule is None else frozenset(column.name for column in rule.columns if column.plain)
    return _Roles(rule, environments, named["categories"], named["numeric"], ignored, named["categories"] | plain)


def _several_values(name: str, table: ChunkedRows) -> str:
    what = table.unusable[name]
    return f"columns must hold one value in each row, got {name!r} of {table.name}, which holds {what}"


def _column(name: str, found: ColumnScan, roles: _Roles, decimal: str) -> tuple[Column | None, list[str]]:
    """The column as a feature, or None, and notes about it."""
    kind = found.kind
    if name in roles.numeric:
        if found.numbers - found.infinite <= 0:
            raise ValueError(f"numeric must name columns of numbers, got {name!r}, which holds none")
        kind = "number"
    elif name in roles.categories and kind != "empty":
        kind = "category"
    if kind == "empty":
        return None, [f"{name} is empty and was left out."]
    if kind == "category":
        return _category(name, found, decimal, named=name in roles.categories)
    notes = []
    if kind == "date":
        notes.append(f"{name} holds dates and counts in days; --exclude {name} leaves it out.")
        stray = found.present - found.dates
    else:
        if found.rise is not None and found.rows >= FEWEST_NUMBERED and name not in roles.numeric:
            return None, [
                f"{name} rises from row to row in whole numbers and was left out as a row number; --numeric {name} "
                "makes it count."
            ]
        stray = found.present - found.numbers
        if found.thousands is not None:
            notes.append(f"{name} was read with thousands separators, as in {found.thousands}.")
        if found.infinite:
            notes.append(f"{name} has {found.infinite} infinite values, which count as missing.")
    if stray:
        notes.append(
            f"{name} has text such as {found.stray[kind]!r} in {stray} of {found.rows} rows, which counts as missing."
        )
    return Column(name, "date" if kind == "date" else "number"), notes


def _category(name: str, found: ColumnScan, decimal: str, *, named: bool) -> tuple[Column | None, list[str]]:
    mixed = 0 < found.numbers < found.present
    hint = f"; --numeric {name} reads its text as missing values" if mixed else ""
    mixture = ", text as well as numbers," if mixed else ""
    if found.values is None or (len(found.values) > MOST_CATEGORIES and not named):
        count = f"over {MOST_COUNTED}" if found.values is None else str(len(found.values))
        if named:
            raise ValueError(f"categories must name columns with at most {MOST_COUNTED} different values, got {name!r}")
        also = hint or f"; --categories {name} makes it count" if found.values is not None else hint
        return None, [
            f"{name} has {count} different values{mixture or ','} more than the {MOST_CATEGORIES} that categories may "
            f"have, and was left out as an identifier{also}."
        ]
    values = _categories(found.values, decimal) if found.holds_numbers else found.values
    if len(values) == 1:
        return None, [f"{name} is {next(iter(values))!r} in every row and was left out."]
    # Compared with the most frequent value; sorted otherwise, so that the order of rows does not matter.
    ordered = sorted(values, key=lambda value: (-values[value], value))
    notes = [f"{name} holds text as well as numbers, and all its values were taken as categories{hint}."]
    return Column(name, "category", (ordered[0], *sorted(ordered[1:]))), notes if mixed and not named else []


def _categories(values: Mapping[str, int], decimal: str) -> Counter[str]:
    """How often each number occurs: 1 and 1.0 are one category."""
    counts = Counter[str]()
    texts = pd.Series([*values], dtype=object)
    for text, number in zip(whole_numbers(texts, decimal), texts, strict=True):
        counts[text] += values[number]
    return counts


def _unusable(found: ColumnScan, column: Column) -> int:
    """Rows of a column whose cells give no feature."""
    usable = {
        "number": found.numbers - found.infinite,
        "date": found.dates,
        "category": found.present,
    }[column.kind]
    return found.rows - usable


def _check_dates(column: EnvironmentColumn, found: ColumnScan) -> None:
    if found.present and not found.dates:
        numbers = as_text(pd.Series([*found.seen_numbers])).tolist()
        raise ValueError(without_dates(column, next(iter([*numbers, *found.stray.values()]), "inf")))


def _about_target(target: str, found: ColumnScan) -> list[str]:
    stray = found.present - found.numbers
    if stray == 0:
        return []
    text = found.stray["number"]
    return [f"{target} has text such as {text!r} in {stray} of {found.rows} rows, which counts as missing."]


def _without_environment(columns: Collection[Column]) -> str:
    """What can and cannot be said about a table without environments."""
    candidates = [column.name for column in columns if column.kind in ("category", "date")][:5]
    ways = f", such as {' or '.join(candidates)}" if candidates else ""
    return (
        "No environment was named: a fit to all rows can be said to predict well on rows like these, but not which "
        "effects hold elsewhere. --environment takes a column that says where or when a row was recorded"
        f"{ways}, bins of a number (age:bins=4) or periods of a date (date:year)."
    )
