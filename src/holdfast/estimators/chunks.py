"""What a fit needs of the rows of a table, added up over chunks: of a file, an iterable, or a Dask data frame."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from holdfast.core.class_moments import ClassMoments, add_class_moments, collect_class_moments
from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.moments import MomentSums, add_moments, check_squares, collect_moments
from holdfast.estimators.contract import (
    check_no_text,
    check_rows,
    checked_weights,
    response_name,
    warn_of_small_weights,
)
from holdfast.estimators.screening import QUICK_ROWS
from holdfast.tables.frames import TableFrames
from holdfast.tables.parts import CHUNK_ROWS
from holdfast.tables.passes import Columns, Passes
from holdfast.tables.sampling import RowSample, sample_rows
from holdfast.tables.scan import row_counts


class ChunkSums(NamedTuple):
    """Sums over the rows of some chunks, and a sample of these rows.

    The sums are the same, up to rounding, however the rows are cut. So is the sample if `rows` of `regression_sums` and
    `class_sums` are the positions in the table; those of `DaskRows` are not.

    Attributes:
        sums: of the rows, `MomentSums` or `ClassMoments`.
        names: of the features; None if they have none.
        response: its name.
        categories: the environments in their own order; None: they are sorted.
        sample: features, response and environments of some rows.
        rows: how many there are, whatever their weights.
    """

    sums: Any
    names: tuple[str, ...] | None
    response: str
    categories: tuple | None
    sample: RowSample
    rows: int

    def merge(self, after: "ChunkSums") -> "ChunkSums":
        """With the rows after these; ValueError if they have other features."""
        if self.names != after.names and len(self.sums.shift) == len(after.sums.shift):
            raise ValueError(f"chunks must have the features {_listed(self.names)}, got {_listed(after.names)}")
        own, other = self.categories, after.categories
        return ChunkSums(
            (add_moments if isinstance(self.sums, MomentSums) else add_class_moments)(self.sums, after.sums),
            self.names,
            self.response,
            None if own is None or other is None else tuple(dict.fromkeys([*own, *other])),
            self.sample.merge(after.sample),
            self.rows + after.rows,
        )

    def ordered(self) -> Any:
        """The sums, with environments in the order that `group_rows` gives them."""
        labels: Any = pd.Series([*self.sums.labels], dtype=object)
        if self.categories is not None:
            labels = pd.Categorical(labels, categories=list(self.categories))
        order = np.argsort(group_rows(labels, len(labels)).codes)
        return self.sums._replace(
            labels=tuple(self.sums.labels[number] for number in order), sums=self.sums.sums[order]
        )

    def introduce(self, estimator: BaseEstimator) -> None:
        """Set what scikit-learn's checks would set: the number and the names of the features."""
        estimator.n_features_in_ = self._features
        vars(estimator).pop("feature_names_in_", None)
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)

    def warn_of_weights(self) -> None:
        """Warn if the weights of all rows are so small that they stand for hardly any."""
        weight = float(self.sums.counts.sum())
        warn_of_small_weights(weight, self.rows, self._features, len(self.sums.labels))

    @property
    def _features(self) -> int:
        return self.sums.features


# (X, y, environments, positions of the rows, weights) -> their sums; None of no rows, or none that counts
Collect = Callable[[Any, Any, Any, np.ndarray | None, Any], ChunkSums | None]


def regression_sums(
    X: Any,
    y: Any,
    environments: Any = None,
    rows: np.ndarray | None = None,
    weights: Any = None,
    *,
    sampled: int = QUICK_ROWS,
) -> ChunkSums | None:
    """The second moments of one chunk.

    Args:
        X: (rows, features).
        y: (rows,), numbers.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        weights: how many rows each row stands for; None: one.
        sampled: rows in the sample.

    Example:
        >>> first, second = regression_sums([[1.0]], [2.0], ["b"]), regression_sums([[3.0]], [1.0], ["a"])
        >>> first.merge(second).ordered().labels
        ('a', 'b')
    """
    checks = {"y_numeric": True, "dtype": [np.float64, np.float32]}
    return _chunk_sums(collect_moments, X, y, environments, rows, weights, sampled, checks)


def expanded_sums(
    X: Any,
    y: Any,
    environments: Any = None,
    rows: np.ndarray | None = None,
    weights: Any = None,
    *,
    expand: Callable[[np.ndarray], np.ndarray],
) -> ChunkSums | None:
    """The second moments of features that are made of the columns of one chunk.

    Args:
        X: (rows, columns).
        y: (rows,), numbers.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        weights: how many rows each row stands for; None: one.
        expand: columns -> features.

    Example:
        >>> expanded_sums([[2.0], [3.0]], [1.0, 2.0], expand=np.square).sums.shift.tolist()
        [6.5, 1.5]
    """
    if len(X) == 0:
        return None
    return regression_sums(expand(np.asarray(X, float)), y, environments, rows, weights, sampled=0)


def class_sums(
    X: Any,
    y: Any,
    environments: Any = None,
    rows: np.ndarray | None = None,
    weights: Any = None,
    *,
    numbers: bool = False,
) -> ChunkSums | None:
    """The moments of the classes in one chunk.

    Args:
        X: (rows, features).
        y: (rows,), labels of the classes.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        weights: how many rows each row stands for; None: one.
        numbers: whether any numbers may be labels; scikit-learn takes whole numbers only.

    Example:
        >>> class_sums([[1.0], [2.0]], ["no", "yes"]).sums.classes
        ('no', 'yes')
    """

    def collect(x: np.ndarray, labels: np.ndarray, grouping: Grouping, weights: Any, names: Any) -> ClassMoments:
        if not numbers:
            check_classification_targets(labels)
        check_squares(x, names)
        return collect_class_moments(x, labels, grouping, weights)

    return _chunk_sums(collect, X, y, environments, rows, weights, QUICK_ROWS, {"dtype": np.float64})


def _chunk_sums(
    collect: Callable[..., Any],
    X: Any,
    y: Any,
    environments: Any,
    rows: np.ndarray | None,
    weights: Any,
    sampled: int,
    checks: Mapping[str, Any],
) -> ChunkSums | None:
    """The sums of the rows that count: those of positive weight."""
    if len(X) == 0:
        return None
    names = _names(X)
    x, values = check_rows(None, X, y, ensure_min_samples=1, **checks)
    grouping, rows = group_rows(environments, len(x)), np.arange(len(x)) if rows is None else rows
    if weights is not None:
        weights = checked_weights(weights, len(x))
        counted = weights > 0
        if not counted.any():
            return None
        x, values, grouping, rows, weights = (
            x[counted],
            values[counted],
            grouping.where(counted),
            rows[counted],
            weights[counted],
        )
    kind = getattr(environments, "dtype", None)
    labels = np.empty(grouping.count, object)
    labels[:] = list(grouping.labels)
    sample = sample_rows(rows, [x, values, grouping.codes], sampled)
    return ChunkSums(
        collect(x, values, grouping, weights, names),
        names,
        response_name(y),
        tuple(kind.categories) if isinstance(kind, pd.CategoricalDtype) else None,
        sample.map(lambda x, values, codes: (x, values, labels[codes])),
        len(values),
    )


def _names(X: Any) -> tuple[str, ...] | None:
    """The names of the features that scikit-learn would know: the columns of a data frame, if they are text."""
    columns = X.columns if isinstance(X, pd.DataFrame) else getattr(X, "column_names", getattr(X, "columns", ()))
    text = {isinstance(name, str) for name in columns}
    if len(text) > 1:
        raise TypeError(f"X must have columns whose names are all text, or none of them, got {_listed(tuple(columns))}")
    return tuple(columns) if text == {True} else None


def _listed(names: tuple[str, ...] | None) -> str:
    return "without names" if names is None else ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def sums_of_chunks(chunks: Iterable[tuple], collect: Collect, *, weighted: bool = True) -> ChunkSums:
    """The sums of all chunks of an iterable, which is read once.

    Args:
        chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight).
        collect: `regression_sums` or `class_sums`.
        weighted: whether chunks may have weights.
    """
    total: ChunkSums | None = None
    begin = 0
    given: dict[str, bool] = {}
    for X, y, environments, weights in _entries(chunks, weighted):
        for name, entry in (("environments", environments), ("weights", weights)):
            if given.setdefault(name, entry is not None) != (entry is not None):
                raise ValueError(f"chunks must all have {name}, or none of them, got some with and some without")
        rows = np.arange(begin, begin + len(X))
        begin += len(X)
        found = collect(X, y, environments, rows, weights)
        total = found if total is None else total if found is None else total.merge(found)
    if total is None:
        what = "with rows of positive weight" if given.get("weights") else "with rows"
        raise ValueError(f"chunks must hold at least one chunk {what}, got none")
    if given["weights"]:
        total.warn_of_weights()
    return total


def _entries(chunks: Any, weighted: bool) -> Iterator[tuple[Any, Any, Any, Any]]:
    """X, y, environments and weights of each chunk; ValueError for anything else than a chunk."""
    forms = "(X, y) or (X, y, environments)" + (" or (X, y, environments, sample_weight)" if weighted else "")
    if not isinstance(chunks, Iterable):
        raise ValueError(f"chunks must be an iterable of {forms}, got {type(chunks).__name__}")
    for number, chunk in enumerate(chunks):
        several = isinstance(chunk, tuple | list)
        if not several or not 2 <= len(chunk) <= 3 + weighted:
            what = f"{len(chunk)} entries" if several else type(chunk).__name__
            raise ValueError(f"chunks must each be {forms}, got {what} as chunk {number}")
        X, y, environments, weights = (*chunk, None, None)[:4]
        yield X, y, environments, weights


class DaskRows(NamedTuple):
    """The rows of a Dask data frame, each partition computed where it is, once for each pass.

    How many rows come before a partition takes a pass of its own to know (`counted`); without it, rows are numbered by
    partition. Of more than 4,000 rows, which ones are sampled then depends on the partitions (the same partitions give
    the same sample). So may the hint at curves; the sums, and what is fitted to them, do not.

    Attributes:
        X: a Dask data frame.
        columns: argument -> a Dask column with the same partitions: y, and environments and sample_weight where given.
        passes: by which they are read, and counted.
        lengths: partition -> its rows, once they are known.
    """

    X: Any
    columns: Mapping[str, Any]
    passes: Passes
    lengths: Mapping[int, int]

    def counted(self) -> "DaskRows":
        """The same rows, numbered as in one table: a pass over one column."""
        names = [str(name) for name in self.X.columns[:1]]
        frames = TableFrames(self.X[self.X.columns[:1].tolist()].rename(columns=str))
        lengths = self.passes.reduce(frames, Columns(names, (), CHUNK_ROWS), row_counts, add)
        return self._replace(lengths=lengths or {})

    def sums(self, collect: Collect) -> ChunkSums:
        """The sums of all rows: one pass.

        Args:
            collect: `regression_sums` or `class_sums`.
        """
        weighted = "sample_weight" in self.columns
        total = self.reduce(collect, ChunkSums.merge)
        if total is None:
            what = "row of positive weight" if weighted else "row"
            raise ValueError(f"X must have at least one {what}, got a Dask data frame without any")
        if weighted:
            total.warn_of_weights()
        return total._replace(response=response_name(self.columns["y"]._meta))

    def reduce(self, collect: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What is found in the rows of all chunks, merged; None if there are no rows.

        Args:
            collect: (X, y, environments, positions of the rows, weights) -> what is found in these rows.
            merge: of two findings.
        """
        features = list(self.X.columns)
        join = partial(_joined_columns, arguments=tuple(self.columns))
        meta = join(self.X._meta, *(column._meta for column in self.columns.values()))
        # partition by partition: rows that do not match are an error, and not to be moved to where they would
        joined = self.X.map_partitions(join, *self.columns.values(), meta=meta, align_dataframes=False)
        split = partial(_split_columns, collect=collect, features=features)
        reading = Columns(list(meta.columns), (), CHUNK_ROWS)
        return self.passes.reduce(TableFrames(joined, self.lengths), reading, split, merge)


def dask_rows(X: Any, y: Any, environments: Any, sample_weight: Any = None) -> DaskRows:
    """The arguments of `fit` with a Dask data frame; ValueError if they do not belong together."""
    import dask.dataframe as dd

    given = {"environments": environments, "sample_weight": sample_weight}
    columns = {"y": y} | {name: column for name, column in given.items() if column is not None}
    for name, column in columns.items():
        if not isinstance(column, dd.Series):
            raise ValueError(
                f"{name} must be a column of Dask with the {X.npartitions} partitions of X, got {type(column).__name__}"
            )
        if column.npartitions != X.npartitions:
            raise ValueError(f"{name} must have the {X.npartitions} partitions of X, got {column.npartitions}")
    check_no_text(X)
    return DaskRows(X, columns, Passes(), {})


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
    weights = chunk.get("sample_weight")
    if weights is not None:
        checked_weights(weights, len(chunk))
        chunk, weights = chunk[weights > 0], weights[weights > 0]
    X = chunk.iloc[:, : len(features)].set_axis(list(features), axis="columns")
    return collect(X, chunk["y"], chunk.get("environments"), chunk.index.to_numpy(), weights)
