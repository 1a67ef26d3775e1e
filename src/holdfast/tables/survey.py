"""What the columns of a table are: features, target, environments, or nothing that can be used."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.core.validation import require
from holdfast.tables.columns import COLUMN_TYPES, NUMBER, Column, check_features
from holdfast.tables.encoding import RowEncoding
from holdfast.tables.labels import EnvironmentRule, parse_environment, without_dates
from holdfast.tables.models import TableModel, check_present
from holdfast.tables.options import KNOWN_BY_MODELS, Columns, ReadingOptions, listed, named_columns
from holdfast.tables.passes import Passes, Table
from holdfast.tables.reading import CHUNK_ROWS, check_usable
from holdfast.tables.scan import ColumnScan, TableScan, scan_chunk
from holdfast.tables.values import as_numbers


@dataclass(frozen=True)
class Survey:
    """A table whose columns are understood.

    Attributes:
        table: the files or the data frame.
        target: name of the column to predict.
        environment: how rows get their environments.
        columns: the features.
        target_values: different values of the target in order, at most three of them; None: more than a thousand.
        target_numeric: whether the target holds numbers.
        rows: in the table.
        notes: what was done about columns, in sentences.
        missing: column -> rows without a usable value, for the columns in use that have such rows.
        text: columns to be read as text, in every chunk.
        options: how the table is read.
        chunk_rows: rows in a chunk.
        known_task: what is fitted, where a schema says so.
    """

    table: Table
    target: str
    environment: EnvironmentRule
    columns: tuple[Column, ...]
    target_values: tuple | None
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
        weights = [] if self.options.weights is None else [self.options.weights]
        return [self.target, *weights, *self.environment.names, *(column.name for column in self.columns)]

    @property
    def reading(self) -> Columns:
        """What a pass for the fit reads."""
        return Columns(self.used, self.text, self.chunk_rows)

    @property
    def encoding(self) -> RowEncoding:
        """How its rows become features."""
        return RowEncoding(
            self.target, self.target_numeric, self.environment, self.columns, self.table.decimal, self.options.weights
        )


def survey(
    table: Table,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    *,
    passes: Passes | None = None,
    chunk_rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
) -> Survey:
    r"""Look through a table and decide what its columns are: one pass.

    Args:
        table: the files or the data frame.
        target: name of the column to predict.
        environment: what the environments are, see `environment_labels`; None: there is one.
        options: which columns are what.
        passes: by which the table is read; None: by this process.
        chunk_rows: rows in a chunk.
        progress: called with (done, total).

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.reading import open_table
        >>> path = Path(tempfile.mkdtemp()) / "plants.csv"
        >>> _ = path.write_text("light,soil,place,yield\n1,clay,hill,2\n2,sand,shore,3\n3,clay,hill,4\n")
        >>> [column.features for column in survey(open_table(path), "yield", "place").columns]
        [['light'], ['soil=sand']]
    """
    options, passes = options or ReadingOptions(), passes or Passes()
    roles = _roles(table, target, environment, options)
    scanned = [name for name in table.columns if name not in roles.ignored]
    reading, collect = Columns(scanned, roles.text, chunk_rows), partial(scan_chunk, decimal=table.decimal)
    seen = passes.reduce(table, reading, collect, TableScan.merge, progress)
    if seen is None or not (rows := sum(seen.lengths.values())):
        raise ValueError(f"data must have at least one row, got {table.name} with none")
    found = seen.columns
    for period in roles.rule.columns:
        if period.period is not None and found[period.name].present and not found[period.name].fitting["date"]:
            raise ValueError(without_dates(period, min(found[period.name].values or found[period.name].stray["date"])))
    numeric = target in roles.numeric or (found[target].kind == "number" and target not in roles.categories)
    inputs = [name for name in scanned if name not in {target, options.weights} | roles.environments]
    described = [_column(name, found[name], roles) for name in inputs]
    columns = [column for column, _ in described if column is not None]
    notes = [*table.notes, *(note for _, said in described for note in said)]
    usable = {name: found[name].present for name in (target, *roles.environments)}
    usable |= {column.name: column.type.usable(found[column.name]) for column in columns}
    for name in ([target] if numeric else []) + ([] if options.weights is None else [options.weights]):
        notes += NUMBER.about_stray(name, found[name])
        usable[name] = NUMBER.usable(found[name])
    missing = {name: rows - usable[name] for name in scanned if usable.get(name, rows) < rows}
    if not columns:
        reasons = " ".join(notes)
        raise ValueError(f"data must have at least one column that can be a feature, got none. {reasons}".strip())
    check_features(columns, table.name)
    numbered = frozenset(name for name in roles.environments if found[name].holds_numbers)
    if environment is None:
        notes.append(_without_environment(columns))
    return Survey(
        table.counted(seen.lengths),
        target,
        replace(roles.rule, numbered=numbered),
        tuple(columns),
        _few_values(found[target], numeric),
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
    table: Table,
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
        >>> [column.features for column in survey_as(model, open_table(path), "yield").columns]
        [['soil=sand']]
    """
    options = options or ReadingOptions()
    options.refuse(KNOWN_BY_MODELS, "with a schema, which says what the columns are")
    roles = _roles(table, target, environment, replace(options, exclude=tuple({*table.unusable} - {target})))
    require(target == model.target, f"target must be {model.target!r} with this schema", repr(target))
    names = [column.name for column in model.columns]
    check_present(names, table.columns, table.name)
    check_usable(names, table)
    contract = "environment must be made of columns that are no features of the schema"
    for name in names:
        require(name not in roles.environments, contract, repr(name))
        require(name != options.weights, "weights must be a column that is no feature of the schema", repr(name))
    numeric = model.task == "regression" or not np.isnan(as_numbers(pd.Series(model.classes, dtype=object))).any()
    text = roles.text | {column.name for column in model.columns if column.type.reads_text}
    rule = replace(roles.rule, numbered=roles.environments)
    # what a column is does not depend on whether its effect is a curve, which is for the rows of this table to say
    columns = tuple(msgspec.structs.replace(column, knots=()) for column in model.columns)
    return Survey(table, target, rule, columns, (), numeric, 0, table.notes, {}, text, options, chunk_rows, model.task)


@dataclass(frozen=True)
class _Roles:
    """Which columns the user has named, and for what."""

    rule: EnvironmentRule
    environments: frozenset[str]
    categories: frozenset[str]
    numeric: frozenset[str]
    ignored: frozenset[str]
    text: frozenset[str]


def _roles(table: Table, target: str, environment: str | None, options: ReadingOptions) -> _Roles:
    names = table.columns
    for argument, name in (("target", target), ("id", options.id), ("weights", options.weights)):
        require(name is None or name in names, f"{argument} must be one of the columns {listed(names)}", repr(name))
    named = {
        argument: frozenset(named_columns(getattr(options, argument), names, argument))
        for argument in ("categories", "numeric", "exclude")
    }
    rule = EnvironmentRule(() if environment is None else parse_environment(environment, names))
    environments = frozenset(rule.names)
    for argument, others in (("environment", environments), ("id", {options.id}), ("weights", {options.weights})):
        require(target not in others, f"{argument} must be another column than target", f"{target!r} for both")
    require(target not in named["exclude"], "exclude must not name the target", repr(target))
    for one, other in combinations(named, 2):
        for name in sorted(named[one] & named[other]):
            raise ValueError(f"{one} and {other} must name different columns, got {name!r} in both")
    found = f"{options.weights!r} for both"
    require(options.weights not in environments, "weights must be another column than environment", found)
    ignored = named["exclude"] - environments - {options.weights}
    if options.id is not None and options.id not in environments | {options.weights}:
        ignored |= {options.id}
    check_usable({target, *environments}, table)
    check_usable({*names} - ignored, table, "; --exclude leaves it out")
    text = named["categories"].union(column.name for column in rule.columns if column.plain)
    return _Roles(rule, environments, named["categories"], named["numeric"], ignored, text)


def _column(name: str, found: ColumnScan, roles: _Roles) -> tuple[Column | None, list[str]]:
    """The column as a feature, or None, and notes about it."""
    kind, named = found.kind, name in roles.numeric
    if named:
        require(NUMBER.usable(found) > 0, "numeric must name columns of numbers", f"{name!r}, which holds none")
        kind = "number"
    elif kind == "empty":
        return None, [f"{name} is empty and was left out."]
    elif named := name in roles.categories:
        kind = "category"
    return COLUMN_TYPES[kind].describe(name, found, named)


def _few_values(found: ColumnScan, numeric: bool) -> tuple | None:
    """The three smallest different values of a target; None if there are too many to be counted."""
    if found.values is None or not numeric:
        return None if found.values is None else tuple(sorted(found.values)[:3])
    numbers = as_numbers(pd.Series([*found.values], dtype=object), found.decimal)
    different = np.unique(numbers[np.isfinite(numbers)])[:3].tolist()
    return tuple(int(number) if f"{number:.0f}" in found.values else number for number in different)


def _without_environment(columns: Collection[Column]) -> str:
    """What can and cannot be said about a table without environments."""
    candidates = [column.name for column in columns if column.type.suggests_environments][:5]
    ways = f", such as {' or '.join(candidates)}" if candidates else ""
    return (
        "No environment was named: a fit to all rows can be said to predict well on rows like these, but not which "
        "effects hold elsewhere. --environment takes a column that says where or when a row was recorded"
        f"{ways}, bins of a number (age:bins=4) or periods of a date (date:year)."
    )
