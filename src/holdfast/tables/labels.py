"""Environments from columns: several of them, bins of a number, periods of a date."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from holdfast.core.validation import require
from holdfast.tables.options import listed
from holdfast.tables.values import as_dates, as_numbers, as_text, coded_text, whole_numbers

# Period of a date -> how it is written. The first week of a year is the one with its first Thursday, as in ISO 8601.
PERIODS = {"year": "%Y", "quarter": "%Y-Q%q", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}
MOST_BINS = 100
# Of bins that are not known yet: rows that have a number are told from those that have none.
_NO_EDGES = np.zeros(1)


@dataclass(frozen=True)
class EnvironmentColumn:
    """A column that environments are made of.

    Attributes:
        name: of the column.
        bins: number of bins with about equally many rows; None: each value is an environment.
        period: of a date, one of `PERIODS`; None: each value is an environment.
    """

    name: str
    bins: int | None = None
    period: str | None = None

    @property
    def plain(self) -> bool:
        """Whether each value is an environment."""
        return self.bins is None and self.period is None


def parse_environment(specification: str, columns: Sequence[str]) -> tuple[EnvironmentColumn, ...]:
    """The columns that a specification of environments names.

    Args:
        specification: names of columns with commas between them, each with `:bins=4` or `:year` if it is wanted.
        columns: of the table. A name with a comma or a colon in it is found among them first.

    Example:
        >>> [part.name for part in parse_environment("region,age:bins=4", ["region", "age"])]
        ['region', 'age']
        >>> parse_environment("date:decade", ["date"])
        Traceback (most recent call last):
        ValueError: environment must be a column, column:bins=NUMBER or column:PERIOD with a period among year, \
quarter, month, week, day, got 'date:decade'
    """
    if specification in columns:
        return (EnvironmentColumn(specification),)
    parts = tuple(_parse_part(part.strip(), columns) for part in specification.split(","))
    names = [part.name for part in parts]
    require(len(set(names)) == len(names), "environment must name each column once", repr(specification))
    return parts


def _parse_part(part: str, columns: Sequence[str]) -> EnvironmentColumn:
    if part in columns:
        return EnvironmentColumn(part)
    name, colon, rule = part.rpartition(":")
    known = bool(colon) and name in columns
    require(known, f"environment must be one of the columns {listed(columns)}", repr(name or part))
    if rule in PERIODS:
        return EnvironmentColumn(name, period=rule)
    number = rule.removeprefix("bins=")
    if number != rule:
        proper = number.isdecimal() and 2 <= int(number) <= MOST_BINS
        require(proper, f"environment must ask for 2 to {MOST_BINS} bins", repr(part))
        return EnvironmentColumn(name, bins=int(number))
    raise ValueError(
        "environment must be a column, column:bins=NUMBER or column:PERIOD with a period among "
        f"{', '.join(PERIODS)}, got {part!r}"
    )


@dataclass(frozen=True)
class EnvironmentRule:
    """How the rows of a table get their environments.

    Attributes:
        columns: that environments are made of; none: there is one environment.
        edges: column with bins -> the upper ends of all bins but the last, once they are known.
        numbered: columns of numbers, in which 1 and 1.0 are one environment, however they are written.

    Example:
        >>> rule = EnvironmentRule((EnvironmentColumn("plot"),), numbered=frozenset({"plot"}))
        >>> rule.joined(rule.parts(pd.DataFrame({"plot": ["1", "1.0", "2"]}))).tolist()
        ['1', '1', '2']
    """

    columns: tuple[EnvironmentColumn, ...]
    edges: Mapping[str, np.ndarray] = field(default_factory=dict)
    numbered: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]

    def parts(self, chunk: pd.DataFrame, decimal: str = ".") -> dict[str, pd.Series]:
        """Column -> its part of the label of each row, missing where a value is."""
        return {column.name: self._part(chunk[column.name], column, decimal) for column in self.columns}

    def joined(self, parts: Mapping[str, pd.Series]) -> Any:
        """The labels that parts make, each different one once, missing where a part is; None if there are no parts."""
        labels: Any = next(iter(parts.values()), None)
        for part in [*parts.values()][1:]:
            first, second = (each.cat.codes.to_numpy(np.intp) for each in (labels, part))
            many = max(len(part.cat.categories), 1)
            pairs, codes = np.unique(
                np.where((first < 0) | (second < 0), -1, first * many + second), return_inverse=True
            )
            words = [
                None if pair < 0 else f"{labels.cat.categories[pair // many]}, {part.cat.categories[pair % many]}"
                for pair in pairs.tolist()
            ]
            labels = coded_text(codes, words, part)
        return labels

    def _part(self, values: pd.Series, column: EnvironmentColumn, decimal: str) -> pd.Series:
        if column.bins is not None:
            edges = self.edges.get(column.name, _NO_EDGES)
            return _bin_labels(as_numbers(values, decimal), column.name, edges, values)
        if column.period is not None:
            return _period_labels(as_dates(values), column.period, values)
        return whole_numbers(values, decimal) if column.name in self.numbered else as_text(values)


def bin_edges(values: np.ndarray, column: EnvironmentColumn) -> np.ndarray:
    """The upper ends of all bins but the last: quantiles, each once.

    Example, half of the values are the same:
        >>> bin_edges(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0]), EnvironmentColumn("age", bins=3)).round(2).tolist()
        [0.0, 1.33]
    """
    known = values[~np.isnan(values)]
    edges = np.quantile(known, np.arange(1, column.bins or 1) / (column.bins or 1)) if len(known) else np.empty(0)
    edges = np.unique(edges[edges < known.max()]) if len(known) else edges
    if len(edges) == 0:
        what = "no numbers" if len(known) == 0 else f"hardly any number but {known.max():g}"
        raise ValueError(f"environment must be made of numbers that differ for bins, got {column.name!r} with {what}")
    return edges


def _bin_labels(numbers: np.ndarray, name: str, edges: np.ndarray, like: pd.Series) -> pd.Series:
    ends = [f"{edge:.6g}" for edge in edges]
    if len(set(ends)) < len(ends):
        ends = [repr(float(edge)) for edge in edges]
    between = [f"{low} < {name} <= {high}" for low, high in pairwise(ends)]
    words = [f"{name} <= {ends[0]}", *between, f"{name} > {ends[-1]}"]
    return coded_text(np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="left")), words, like)


def _period_labels(dates: np.ndarray, period: str, like: pd.Series) -> pd.Series:
    days, codes = np.unique(dates.astype("datetime64[D]"), return_inverse=True)
    column: Any = pd.Series(days)
    if period == "quarter":
        column = column.dt.to_period("D")  # quarters are a sign of pandas' periods only
    written = column.dt.strftime(PERIODS[period])
    words = [None if missing else word for word, missing in zip(written, np.isnat(days), strict=True)]
    return coded_text(codes, words, like)


def environment_labels(frame: pd.DataFrame, specification: str) -> pd.Series:
    """The environment of each row of a data frame, for `fit(..., environments=)`.

    Args:
        frame: the table.
        specification: one or several columns, with commas between them. `age:bins=4` makes bins of a number, with about
            equally many rows in each; `date:year`, `quarter`, `month`, `week` and `day` are periods of a date.

    Returns:
        Text labels with the index of the frame, None where a value is missing.

    Example:
        >>> frame = pd.DataFrame({"region": ["south", "south"], "date": ["2020-01-31", "2021-07-01"]})
        >>> environment_labels(frame, "region,date:year").tolist()
        ['south, 2020', 'south, 2021']
    """
    columns = parse_environment(specification, [str(name) for name in frame.columns])
    edges = {column.name: bin_edges(as_numbers(frame[column.name]), column) for column in columns if column.bins}
    for column in columns:
        present = frame[column.name].dropna()
        if column.period is not None and len(present) and np.isnat(as_dates(present)).all():
            raise ValueError(without_dates(column, as_text(present).iloc[0]))
    numbers = {column.name: as_numbers(frame[column.name].dropna()) for column in columns}
    numbered = frozenset(name for name, found in numbers.items() if not np.isnan(found).any())
    rule = EnvironmentRule(columns, edges, numbered)
    labels = rule.joined(rule.parts(frame)).astype(object).rename(specification)
    return labels.where(labels.notna(), None)


def without_dates(column: EnvironmentColumn, example: str) -> str:
    """The sentence about a column whose periods are asked for, but which holds no dates.

    Example:
        >>> without_dates(EnvironmentColumn("born", period="year"), "1970")
        "environment must be made of dates such as 2020-01-31 for the periods of 'born', got '1970'"
    """
    return f"environment must be made of dates such as 2020-01-31 for the periods of {column.name!r}, got {example!r}"
