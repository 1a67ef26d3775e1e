"""The rows of a table wherever they are (in memory, chunks or a Dask data frame) and what a fit needs of them: sums."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add, and_
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from holdfast.core.class_moments import ClassMoments, add_class_moments, collect_class_moments
from holdfast.core.grouping import group_rows
from holdfast.core.moments import MomentSums, add_moments, check_squares, collect_moments
from holdfast.estimators.array_rows import (
    CLASSES,
    NUMBERS,
    ArrayRows,
    check_no_dates,
    check_no_text,
    check_rows,
    checked_weights,
    described_names,
    feature_names,
    response_name,
    warn_of_small_weights,
    without_environments,
)
from holdfast.estimators.screening import QUICK_ROWS
from holdfast.tables.frames import TableFrames
from holdfast.tables.passes import Columns, Passes, RowSample, row_counts, sample_rows
from holdfast.tables.reading import CHUNK_ROWS

# A coefficient of a column of such numbers, or an effect on it, is too large for a number of the computer.
SMALLEST = 1e-290


class RowSums(NamedTuple):
    """Sums over some rows of a table, and a sample of these rows.

    The sums are the same, up to rounding, however the rows are cut. So is the sample if the `positions` of `sum_rows`
    are those in the table; those of `DaskRows` are not.

    Attributes:
        sums: of the rows, `MomentSums` or `ClassMoments`.
        names: of the features; None if they have none.
        response: its name.
        categories: the environments in their own order; None: they are sorted.
        sample: features, response, environments and weights of some rows.
        rows: how many there are, whatever their weights.
    """

    sums: Any
    names: tuple[str, ...] | None
    response: str
    categories: tuple | None
    sample: RowSample
    rows: int

    def merge(self, after: "RowSums") -> "RowSums":
        """With the rows after these; ValueError if they have other features."""
        if self.names != after.names and len(self.sums.shift) == len(after.sums.shift):
            expected, got = (described_names(names) for names in (self.names, after.names))
            raise ValueError(f"chunks must have the features {expected}, got {got}")
        own, other = self.categories, after.categories
        return self._replace(
            sums=(add_moments if isinstance(self.sums, MomentSums) else add_class_moments)(self.sums, after.sums),
            categories=None if own is None or other is None else tuple(dict.fromkeys([*own, *other])),
            sample=self.sample.merge(after.sample),
            rows=self.rows + after.rows,
        )

    @property
    def drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, response and environments of the sample: a row of weight 2 twice, as if it were in the table twice.

        Of other weights, as many rows as they add up to, equally far apart in their cumulative sum.
        """
        *arrays, weights = self.sample.arrays
        if not (weights == 1).all():
            count = int(np.clip(round(weights.sum()), len(weights), max(self.sample.most, len(weights))))
            steps = (np.arange(count) + 0.5) * (weights.sum() / count)
            chosen = np.minimum(np.searchsorted(np.cumsum(weights), steps), len(weights) - 1)
            arrays = [array[chosen] for array in arrays]
        x, y, labels = arrays
        return x, y, labels

    @property
    def features(self) -> list[str]:
        """The names of the features: x0, x1, ... if they have none."""
        return [f"x{number}" for number in range(self.sums.features)] if self.names is None else list(self.names)

    def ordered(self) -> "RowSums":
        """The same, with environments in the order that `group_rows` gives them."""
        labels: Any = pd.Series([*self.sums.labels], dtype=object)
        if self.categories is not None:
            labels = pd.Categorical(labels, categories=list(self.categories))
        order = np.argsort(group_rows(labels, len(labels)).codes)
        labels = tuple(self.sums.labels[number] for number in order)
        return self._replace(sums=self.sums._replace(labels=labels, sums=self.sums.sums[order]))

    def introduce(self, estimator: BaseEstimator) -> None:
        """Set what scikit-learn's checks would set: the number and the names of the features."""
        if (tiny := np.flatnonzero(self.sums.unit < SMALLEST)).size:
            name = [*self.features, self.response][tiny[0]]
            raise ValueError(
                f"X and y must hold numbers that differ by more than {SMALLEST:.0e} for coefficients to be finite, got "
                f"smaller ones only in the column {name!r}: multiply it"
            )
        estimator.n_features_in_ = self.sums.features
        vars(estimator).pop("feature_names_in_", None)
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)


# (X, y, environments, positions of the rows, weights) -> their sums; None of no rows, or none that counts
Collect = Callable[..., RowSums | None]


class Rows(Protocol):
    """The rows of a table, to be read once for each call."""

    @property
    def name(self) -> str:
        """What they are called in messages."""

    @property
    def passes(self) -> Passes:
        """How often the rows were read."""

    def sums(self, collect: Collect) -> RowSums:
        """The sums of all rows; ValueError if there are none that count.

        Args:
            collect: `sum_rows`, or part of it.
        """

    def all(self, statement: Callable[..., bool]) -> bool:
        """Whether a statement about (X, y, environments, positions, weights) is true of all rows that are read again.

        False if they cannot be read again.
        """

    def together(self) -> "ArrayRows | None":
        """All rows in one memory; None if they may not fit into it."""


def sum_rows(
    X: Any,
    y: Any,
    environments: Any = None,
    positions: np.ndarray | None = None,
    weights: Any = None,
    *,
    classes: bool | Literal["any values"] = False,
    expand: Callable[[np.ndarray], np.ndarray] | None = None,
    sampled: int = QUICK_ROWS,
) -> RowSums | None:
    """The moments of some rows: of those that count, with a positive weight.

    Args:
        X: (rows, columns).
        y: (rows,), numbers, or the labels of classes.
        environments: one label for each row; None: one environment.
        positions: of the rows in the table, increasing; None: from 0.
        weights: how many rows each row stands for; None: one.
        classes: whether to sum each class by itself. scikit-learn takes no labels with decimals, "any values" does.
        expand: columns -> features; None: the columns are the features.
        sampled: rows in the sample.

    Example:
        >>> first, second = sum_rows([[1.0]], [2.0], ["b"]), sum_rows([[3.0]], [1.0], ["a"])
        >>> first.merge(second).ordered().sums.labels
        ('a', 'b')
        >>> sum_rows([[1.0], [2.0]], ["no", "yes"], classes=True).sums.classes
        ('no', 'yes')
    """
    if len(X) == 0:
        return None
    features = X if expand is None else expand(np.asarray(X, float))
    names = feature_names(features)
    x, values = check_rows(None, features, y, ensure_min_samples=1, **(CLASSES if classes else NUMBERS))
    grouping, positions = group_rows(environments, len(x)), np.arange(len(x)) if positions is None else positions
    if weights is not None:
        weights = checked_weights(weights, len(x))
        counted = weights > 0
        if not counted.any():
            return None
        x, values, positions, weights = (part[counted] for part in (x, values, positions, weights))
        grouping = grouping.where(counted)
    sums: MomentSums | ClassMoments
    if classes:
        if classes is True:
            check_classification_targets(values)
        check_squares(x, names)
        sums = collect_class_moments(x, values, grouping, weights)
    else:
        sums = collect_moments(x, values, grouping, weights, names)
    kind = getattr(environments, "dtype", None)
    labels = np.empty(grouping.count, object)
    labels[:] = list(grouping.labels)
    sample = sample_rows(
        positions, [x, values, grouping.codes, np.ones(len(x)) if weights is None else weights], sampled
    )
    return RowSums(
        sums,
        names,
        response_name(y),
        tuple(kind.categories) if isinstance(kind, pd.CategoricalDtype) else None,
        sample.map(lambda x, values, codes, weights: (x, values, labels[codes], weights)),
        len(values),
    )


def _of_all(total: RowSums | None, name: str, weighted: bool) -> RowSums:
    """The sums of a whole table; ValueError if no row counts, and a warning if weights make hardly any row."""
    if total is None:
        counts = " with a weight above zero" if weighted else ""
        raise ValueError(f"{name} must have at least one row{counts}, got none")
    if weighted:
        sums = total.sums
        warn_of_small_weights(float(sums.counts.sum()), total.rows, sums.features, len(sums.labels))
    return total.ordered()


@dataclass(frozen=True)
class ChunkRows:
    """Rows of an iterable of chunks.

    Attributes:
        chunks: (X, y), (X, y, environments) or (X, y, environments, sample_weight) each.
        passes: how often they were read.
        name: what they are called in messages.
    """

    chunks: Iterable[tuple]
    passes: Passes = field(default_factory=Passes)
    name = "chunks"

    def sums(self, collect: Collect) -> RowSums:
        """The sums of all rows."""
        self.passes.count += 1
        total: RowSums | None = None
        begin, given = 0, None
        for X, y, environments, weights in self._entries():
            has = {"environments": environments is not None, "weights": weights is not None}
            given = given or has
            for name in has:
                if has[name] != given[name]:
                    raise ValueError(f"chunks must all have {name}, or none of them, got some with and some without")
            found = collect(X, y, environments, np.arange(begin, begin + len(X)), weights)
            begin += len(X)
            total = found if total is None else total if found is None else total.merge(found)
        return _of_all(total, self.name, weighted=given is not None and given["weights"])

    def all(self, statement: Callable[..., bool]) -> bool:
        """Nothing is known about all rows, for chunks may be such that they can be read once."""
        return False

    def together(self) -> None:
        """Chunks are of a table that does not fit into memory."""

    def _entries(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """X, y, environments and weights of each chunk; ValueError for anything else than a chunk."""
        forms = "(X, y) or (X, y, environments) or (X, y, environments, sample_weight)"
        if not isinstance(self.chunks, Iterable):
            raise ValueError(f"chunks must be an iterable of {forms}, got {type(self.chunks).__name__}")
        for number, chunk in enumerate(self.chunks):
            several = isinstance(chunk, tuple | list)
            if not several or not 2 <= len(chunk) <= 4:
                what = f"{len(chunk)} entries" if several else type(chunk).__name__
                raise ValueError(f"chunks must each be {forms}, got {what} as chunk {number}")
            X, y, environments, weights = (*chunk, None, None)[:4]
            X, environments = without_environments(X, environments)
            yield X, y, environments, weights


@dataclass(frozen=True)
class DaskRows:
    """The rows of a Dask data frame, each partition computed where it is, once for each pass.

    How many rows come before a partition takes a pass of its own to know (`counted`); without it, rows are numbered by
    partition. Of more than 4,000 rows, which ones are sampled then depends on the partitions (the same partitions give
    the same sample). So may the hint at curves; the sums, and what is fitted to them, do not.

    Attributes:
        X: a Dask data frame.
        columns: argument -> a Dask column with the same partitions: y, and environments and sample_weight where given.
        lengths: partition -> its rows, once they are known.
        passes: by which they are read, and counted.
        name: what they are called in messages.
    """

    X: Any
    columns: Mapping[str, Any]
    lengths: Mapping[int, int] = field(default_factory=dict)
    passes: Passes = field(default_factory=Passes)
    name = "a Dask data frame"

    def __post_init__(self) -> None:
        import dask.dataframe as dd

        for name, column in self.columns.items():
            if not isinstance(column, dd.Series):
                raise ValueError(
                    f"{name} must be a column of Dask with the {self.X.npartitions} partitions of X, got "
                    f"{type(column).__name__}"
                )
            if column.npartitions != self.X.npartitions:
                raise ValueError(f"{name} must have the {self.X.npartitions} partitions of X, got {column.npartitions}")
        check_no_dates(self.X)
        check_no_text(self.X)

    def counted(self) -> "DaskRows":
        """The same rows, numbered as in one table: a pass over one column."""
        names = [str(name) for name in self.X.columns[:1]]
        frames = TableFrames(self.X[self.X.columns[:1].tolist()].rename(columns=str))
        lengths = self.passes.reduce(frames, Columns(names, (), CHUNK_ROWS), row_counts, add)
        return replace(self, lengths=lengths or {})

    def sums(self, collect: Collect) -> RowSums:
        """The sums of all rows."""
        total = _of_all(self._reduce(collect, RowSums.merge), "X", weighted="sample_weight" in self.columns)
        return total._replace(response=response_name(self.columns["y"]._meta))

    def all(self, statement: Callable[..., bool]) -> bool:
        """Whether a statement about (X, y, environments, positions, weights) is true of all rows."""
        return bool(self._reduce(statement, and_))

    def together(self) -> None:
        """Partitions stay where they are."""

    def _reduce(self, collect: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What is found in (X, y, environments, positions, weights) of all chunks, merged; None if there are none."""
        join = partial(_joined_columns, arguments=tuple(self.columns))
        meta = join(self.X._meta, *(column._meta for column in self.columns.values()))
        # partition by partition: rows that do not match are an error, and not to be moved to where they would
        joined = self.X.map_partitions(join, *self.columns.values(), meta=meta, align_dataframes=False)
        split = partial(_split_columns, collect=collect, features=list(self.X.columns))
        reading = Columns(list(meta.columns), (), CHUNK_ROWS)
        return self.passes.reduce(TableFrames(joined, self.lengths), reading, split, merge)


def _joined_columns(
    X: pd.DataFrame, *columns: pd.Series, arguments: Sequence[str], partition_info: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """The rows of a partition: features by their numbers, since names may be anything, then what goes with them."""
    for name, column in zip(arguments, columns, strict=True):
        where = f"partition {(partition_info or {}).get('number', 0)}"
        if len(column) != len(X):
            raise ValueError(f"{name} must have the rows of X, got {len(column)} rows in {where}, where X has {len(X)}")
        if not column.index.equals(X.index):
            raise ValueError(f"{name} must have the index of X, got another one in {where}, of {len(X)} rows each")
    features = X.set_axis([str(number) for number in range(X.shape[1])], axis="columns")
    return features.assign(**dict(zip(arguments, columns, strict=True)))


def _split_columns(chunk: pd.DataFrame, collect: Callable[..., Any], features: Sequence[Any]) -> Any:
    """Features come first: a range of columns is no copy."""
    X = chunk.iloc[:, : len(features)].set_axis(list(features), axis="columns")
    return collect(X, chunk["y"], chunk.get("environments"), chunk.index.to_numpy(), chunk.get("sample_weight"))


def dask_rows(X: Any, y: Any, environments: Any, sample_weight: Any = None) -> DaskRows:
    """The arguments of `fit` with a Dask data frame; ValueError if they do not belong together."""
    X, environments = without_environments(X, environments)
    given = {"environments": environments, "sample_weight": sample_weight}
    return DaskRows(X, {"y": y} | {name: column for name, column in given.items() if column is not None})
