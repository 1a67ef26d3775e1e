"""What a fit needs of the rows of a table, added up over chunks: of a file, an iterable, or a Dask data frame."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from holdfast.estimators.class_moments import add_class_moments, collect_class_moments
from holdfast.estimators.contract import check_no_text, check_rows, response_name
from holdfast.estimators.grouping import Grouping, group_rows
from holdfast.estimators.moments import MomentSums, add_moments, collect_moments
from holdfast.estimators.screening import QUICK_ROWS
from holdfast.io.frames import TableFrames
from holdfast.io.passes import Columns, Passes
from holdfast.io.reading import CHUNK_ROWS
from holdfast.io.sampling import RowSample, sample_rows
from holdfast.io.scan import row_counts


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
    """

    sums: Any
    names: tuple[str, ...] | None
    response: str
    categories: tuple | None
    sample: RowSample

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
        estimator.n_features_in_ = self.sums.sums.shape[-1] - (2 if isinstance(self.sums, MomentSums) else 1)
        vars(estimator).pop("feature_names_in_", None)
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)


# (X, y, environments, positions of the rows) -> their sums; None of no rows
Collect = Callable[[Any, Any, Any, np.ndarray | None], ChunkSums | None]


def regression_sums(
    X: Any, y: Any, environments: Any = None, rows: np.ndarray | None = None, *, sampled: int = QUICK_ROWS
) -> ChunkSums | None:
    """The second moments of one chunk.

    Args:
        X: (rows, features).
        y: (rows,), numbers.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        sampled: rows in the sample.

    Example:
        >>> first, second = regression_sums([[1.0]], [2.0], ["b"]), regression_sums([[3.0]], [1.0], ["a"])
        >>> first.merge(second).ordered().labels
        ('a', 'b')
    """
    if len(X) == 0:
        return None
    checked = BaseEstimator()
    x, values = check_rows(checked, X, y, y_numeric=True, dtype=[np.float64, np.float32], ensure_min_samples=1)
    grouping = group_rows(environments, len(x))
    return _sums(collect_moments(x, values, grouping), checked, x, values, y, environments, grouping, rows, sampled)


def expanded_sums(
    X: Any,
    y: Any,
    environments: Any = None,
    rows: np.ndarray | None = None,
    *,
    expand: Callable[[np.ndarray], np.ndarray],
) -> ChunkSums | None:
    """The second moments of features that are made of the columns of one chunk.

    Args:
        X: (rows, columns).
        y: (rows,), numbers.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        expand: columns -> features.

    Example:
        >>> expanded_sums([[2.0], [3.0]], [1.0, 2.0], expand=np.square).sums.shift.tolist()
        [6.5, 1.5]
    """
    return None if len(X) == 0 else regression_sums(expand(np.asarray(X, float)), y, environments, rows, sampled=0)


def class_sums(
    X: Any, y: Any, environments: Any = None, rows: np.ndarray | None = None, *, numbers: bool = False
) -> ChunkSums | None:
    """The moments of the classes in one chunk.

    Args:
        X: (rows, features).
        y: (rows,), labels of the classes.
        environments: one label for each row; None: one environment.
        rows: their positions in the table, increasing; None: from 0.
        numbers: whether any numbers may be labels; scikit-learn takes whole numbers only.

    Example:
        >>> class_sums([[1.0], [2.0]], ["no", "yes"]).sums.classes
        ('no', 'yes')
    """
    if len(X) == 0:
        return None
    checked = BaseEstimator()
    x, values = check_rows(checked, X, y, dtype=np.float64, ensure_min_samples=1)
    if not numbers:
        check_classification_targets(values)
    grouping = group_rows(environments, len(x))
    return _sums(collect_class_moments(x, values, grouping), checked, x, values, y, environments, grouping, rows)


def _sums(
    sums: Any,
    checked: BaseEstimator,
    x: np.ndarray,
    values: np.ndarray,
    y: Any,
    environments: Any,
    grouping: Grouping,
    rows: np.ndarray | None,
    sampled: int = QUICK_ROWS,
) -> ChunkSums:
    names = getattr(checked, "feature_names_in_", None)
    kind = getattr(environments, "dtype", None)
    sample = sample_rows(np.arange(len(x)) if rows is None else rows, [x, values, grouping.codes], sampled)
    labels = np.empty(grouping.count, object)
    labels[:] = list(grouping.labels)
    return ChunkSums(
        sums,
        None if names is None else tuple(names),
        response_name(y),
        tuple(kind.categories) if isinstance(kind, pd.CategoricalDtype) else None,
        sample.map(lambda x, values, codes: (x, values, labels[codes])),
    )


def _listed(names: tuple[str, ...] | None) -> str:
    return "without names" if names is None else ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def sums_of_chunks(chunks: Iterable[tuple], collect: Collect) -> ChunkSums:
    """The sums of all chunks of an iterable, which is read once.

    Args:
        chunks: of (X, y) or (X, y, environments).
        collect: `regression_sums` or `class_sums`.
    """
    total: ChunkSums | None = None
    begin = 0
    labelled: bool | None = None
    for X, y, *rest in chunks:
        environments = rest[0] if rest else None
        if labelled not in (None, environments is not None):
            raise ValueError("chunks must all have environments, or none of them, got some with and some without")
        labelled = environments is not None
        rows = np.arange(begin, begin + len(X))
        begin += len(X)
        found = collect(X, y, environments, rows)
        total = found if total is None else total if found is None else total.merge(found)
    if total is None:
        raise ValueError("chunks must hold at least one chunk with rows, got none")
    return total


class DaskRows(NamedTuple):
    """The rows of a Dask data frame, each partition computed where it is, once for each pass.

    How many rows come before a partition takes a pass of its own to know (`counted`); without it, rows are numbered by
    partition. Of more than 4,000 rows, which ones are sampled then depends on the partitions (the same partitions give
    the same sample). So may the hint at curves; the sums, and what is fitted to them, do not.

    Attributes:
        X: a Dask data frame.
        y: a Dask column with the same partitions.
        environments: a Dask column with the same partitions; None: one environment.
        passes: by which they are read, and counted.
        lengths: partition -> its rows, once they are known.
    """

    X: Any
    y: Any
    environments: Any
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
        total = self.reduce(collect, ChunkSums.merge)
        if total is None:
            raise ValueError("X must have at least one row, got a Dask data frame without any")
        return total._replace(response=response_name(self.y._meta))

    def reduce(self, collect: Callable[[Any, Any, Any, np.ndarray], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What is found in the rows of all chunks, merged; None if there are no rows."""
        names = [str(name) for name in self.X.columns]
        response, place = (_unused(name, names) for name in ("response", "environment"))
        added = {response: self.y} | ({} if self.environments is None else {place: self.environments})
        joined = self.X.assign(**added)
        split = partial(_split_columns, collect=collect, names=names, columns=[*added])
        frames = TableFrames(joined, self.lengths)
        return self.passes.reduce(frames, Columns([*names, *added], (), CHUNK_ROWS), split, merge)


def dask_rows(X: Any, y: Any, environments: Any, sample_weight: Any) -> DaskRows:
    """The arguments of `fit` with a Dask data frame; ValueError if they do not belong together."""
    import dask.dataframe as dd

    if sample_weight is not None:
        raise ValueError("sample_weight must be None for a Dask data frame, got weights")
    for name, column in (("y", y), ("environments", environments)):
        if name == "environments" and column is None:
            continue
        if not isinstance(column, dd.Series) or column.npartitions != X.npartitions:
            raise ValueError(
                f"{name} must be a column of Dask with the {X.npartitions} partitions of X, got {type(column).__name__}"
            )
    check_no_text(X)
    return DaskRows(X, y, environments, Passes(), {})


def _unused(name: str, names: list[str]) -> str:
    return next(word for word in accumulate([name] * (len(names) + 1), "{}_{}".format) if word not in names)


def _split_columns(chunk: pd.DataFrame, collect: Callable[..., Any], names: list[str], columns: list[str]) -> Any:
    """Features come first: a range of columns is no copy."""
    response, *place = (chunk[name] for name in columns)
    return collect(chunk.iloc[:, : len(names)], response, place[0] if place else None, chunk.index.to_numpy())
