"""The complete rows of a surveyed table, summed in one pass: what a fit needs of files and data frames."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import and_
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.grouping import group_text
from holdfast.core.progress import Progress
from holdfast.estimators.chunks import ChunkSums, Collect, class_sums, regression_sums
from holdfast.tables.encoding import RowEncoding, class_labels
from holdfast.tables.faults import CellFaults
from holdfast.tables.missing import CountedRows, about_dropped
from holdfast.tables.passes import Passes
from holdfast.tables.survey import Survey

# More different values of a target are identifiers, not classes.
MOST_CLASSES = 50
# An environment with fewer rows measures no effect: it takes a slope, an intercept, and an error to judge the slope by.
FEWEST_ROWS = 3


def sum_rows(
    found: Survey,
    passes: Passes,
    collect: Collect = regression_sums,
    *,
    classes: bool = False,
    progress: Progress | None = None,
) -> tuple[ChunkSums, CountedRows]:
    """The moments of all complete rows, and how many these are; ValueError if there are none, or too few.

    Args:
        found: the survey.
        passes: by which the table is read.
        collect: of a regression, features -> sums.
        classes: whether the target holds classes.
        progress: called with (done, total).
    """
    step = _Summing(found.encoding, partial(class_sums, numbers=True) if classes else collect, classes)
    total = passes.reduce(found.table, found.reading, step.collect, step.merge, progress)
    if total is None:
        raise ValueError(f"data must have at least one row, got {found.table.name} with none")
    sums = total.sums
    sizes = np.zeros(1) if sums is None else sums.sums.counts.reshape(len(sums.sums.labels), -1).sum(1)
    rows = CountedRows(total.read, round(float(sizes.sum())), total.faults)
    about_dropped(found, rows)
    assert sums is not None  # or there would be no complete row
    check_sizes(found, sizes)
    if not classes:
        return sums, rows
    names = _class_names(sums.sums.classes)
    check_classes(len(names), rows.complete, found.target)
    return _renamed(sums, names), rows


def true_of_all(statement: Callable[[Any, Any], bool], found: Survey, passes: Passes, classes: Sequence[Any]) -> bool:
    """Whether a statement is true of the features and classes of all complete rows: another pass.

    Args:
        statement: (features, classes) -> whether it is true of these rows.
        found: the survey.
        passes: by which the table is read.
        classes: the labels that `sum_rows` has found.
    """
    collect = partial(_true_of_chunk, encoding=found.encoding, statement=statement, classes=np.array(classes))
    return bool(passes.reduce(found.table, found.reading, collect, and_))


def check_classes(count: int, rows: int, target: str) -> None:
    """Raise a ValueError if a target has too many different values for classes."""
    if count > MOST_CLASSES or 2 < count > rows / 2:
        raise ValueError(
            f"target must hold at most {MOST_CLASSES} classes, of two rows or more on average, got "
            f"{target!r} with {count} different values in {rows} rows"
        )


def check_sizes(found: Survey, sizes: np.ndarray) -> None:
    """Raise a ValueError if all environments are too small to measure an effect; sizes: (environments,)."""
    largest = round(float(sizes.max()))
    if found.environment is not None and len(sizes) > 1 and largest < FEWEST_ROWS:
        raise ValueError(
            f"environment must have at least {FEWEST_ROWS} rows in some environment, or no effect can be measured, "
            f"got {', '.join(map(repr, found.environment.names))} with {len(sizes)} environments of "
            f"{'one row each' if largest == 1 else f'at most {largest} rows'}"
        )


class _RowSums(NamedTuple):
    """What a chunk adds to a fit: its rows, the sums of the complete ones, None if there are none, and what else is."""

    read: int
    sums: ChunkSums | None
    faults: CellFaults


class _Summing(NamedTuple):
    """Chunk -> what it adds to a fit, and how that adds up."""

    encoding: RowEncoding
    sums: Collect
    classes: bool

    def collect(self, chunk: pd.DataFrame) -> _RowSums:
        (features, values, labels), faults = self.encoding.examined(chunk)
        environments = None if labels is None else group_text(labels)
        rows = features.index.to_numpy()
        if self.classes:
            self._check(values.nunique(), len(values))  # before there are moments of each of them
        return _RowSums(len(chunk), self.sums(features, values, environments, rows, None), faults)

    def merge(self, before: _RowSums, after: _RowSums) -> _RowSums:
        read, faults = before.read + after.read, before.faults.merge(after.faults)
        if before.sums is None or after.sums is None:
            return _RowSums(read, after.sums if before.sums is None else before.sums, faults)
        if self.classes:
            self._check(len({*before.sums.sums.classes, *after.sums.sums.classes}), read)
        return _RowSums(read, before.sums.merge(after.sums), faults)

    def _check(self, count: int, rows: int) -> None:
        if count > MOST_CLASSES:
            check_classes(count, rows, self.encoding.target)


def _class_names(classes: Sequence[Any]) -> dict[Any, Any]:
    """Values of the target -> labels of classes."""
    labels = class_labels(pd.Series(classes, dtype=object if isinstance(classes[0], str) else float))
    return dict(zip(classes, labels.tolist(), strict=True))


def _renamed(sums: ChunkSums, names: Mapping[Any, Any]) -> ChunkSums:
    """The same moments with the labels of the classes, sorted by them."""
    moments = sums.sums
    order = sorted(range(len(moments.classes)), key=lambda number: names[moments.classes[number]])
    classes = tuple(names[moments.classes[number]] for number in order)
    return sums._replace(
        sums=moments._replace(classes=classes, sums=moments.sums[:, order]),
        sample=sums.sample.map(lambda x, y, labels: (x, np.array([names[value] for value in y.tolist()]), labels)),
    )


def _true_of_chunk(
    chunk: pd.DataFrame, encoding: RowEncoding, statement: Callable[[Any, Any], bool], classes: np.ndarray
) -> bool:
    features, values, _ = encoding.complete(chunk)
    if classes.dtype.kind in "US" and encoding.target_numeric:  # numbers with decimals are classes by their text
        values = values.map(repr)
    return statement(features, values)
