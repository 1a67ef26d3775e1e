"""The complete rows of a surveyed table, in files or a data frame, as rows that can be summed."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import and_
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.grouping import group_text
from holdfast.core.progress import Progress
from holdfast.estimators.rows import Collect, RowSums
from holdfast.tables.encoding import RowEncoding, class_labels
from holdfast.tables.faults import CellFaults
from holdfast.tables.missing import CountedRows, about_dropped
from holdfast.tables.passes import Passes
from holdfast.tables.survey import Survey

# More different values of a target are identifiers, not classes.
MOST_CLASSES = 50
# An environment with fewer rows measures no effect: it takes a slope, an intercept, and an error to judge the slope by.
FEWEST_ROWS = 3


class SurveyedRows:
    """The complete rows of a surveyed table.

    Args:
        found: the survey.
        passes: by which the table is read.
        classes: whether the target holds classes.
        progress: of each time the rows are summed, called with (done, total).

    Attributes:
        used: how many rows are complete, once they were summed.
    """

    used: CountedRows

    def __init__(self, found: Survey, passes: Passes, classes: bool, progress: Sequence[Progress]):
        self.found, self.passes, self.classes = found, passes, classes
        self._names: dict[Any, Any] = {}
        self._progress: Iterator[Progress] = iter(progress)

    def sums(self, collect: Collect) -> RowSums:
        """The sums of all complete rows; ValueError if there are none, or too few."""
        found = self.found
        collect = partial(collect, classes="any values") if self.classes else collect
        step = _Summing(found.encoding, collect, self.classes)
        total = self.passes.reduce(found.table, found.reading, step.collect, step.merge, next(self._progress))
        if total is None:
            raise ValueError(f"data must have at least one row, got {found.table.name} with none")
        sums = total.sums
        self.used = CountedRows(total.read, 0 if sums is None else sums.rows, total.faults)
        about_dropped(found, self.used)
        assert sums is not None  # or there would be no complete row
        check_sizes(found, sums.sums.counts.reshape(len(sums.sums.labels), -1).sum(1))
        if self.classes:
            self._names = _class_names(sums.sums.classes)
            check_classes(len(self._names), sums.rows, found.target)
            sums = _renamed(sums, self._names)
        return sums.ordered()

    def all(self, statement: Callable[..., bool]) -> bool:
        """Whether a statement is true of the features and classes of all complete rows."""
        found = self.found
        collect = partial(_true_of_chunk, encoding=found.encoding, statement=statement, names=self._names)
        return bool(self.passes.reduce(found.table, found.reading, collect, and_))


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


class _FoundRows(NamedTuple):
    """What a chunk adds to a fit: its rows, the sums of the complete ones, None if there are none, and what else is."""

    read: int
    sums: RowSums | None
    faults: CellFaults


class _Summing(NamedTuple):
    """Chunk -> what it adds to a fit, and how that adds up."""

    encoding: RowEncoding
    sums: Collect
    classes: bool

    def collect(self, chunk: pd.DataFrame) -> _FoundRows:
        (features, values, labels), faults = self.encoding.examined(chunk)
        environments = None if labels is None else group_text(labels)
        if self.classes:
            self._check(values.nunique(), len(values))  # before there are moments of each of them
        return _FoundRows(
            len(chunk), self.sums(features, values, environments, features.index.to_numpy(), None), faults
        )

    def merge(self, before: _FoundRows, after: _FoundRows) -> _FoundRows:
        read, faults = before.read + after.read, before.faults.merge(after.faults)
        if before.sums is None or after.sums is None:
            return _FoundRows(read, after.sums if before.sums is None else before.sums, faults)
        if self.classes:
            self._check(len({*before.sums.sums.classes, *after.sums.sums.classes}), read)
        return _FoundRows(read, before.sums.merge(after.sums), faults)

    def _check(self, count: int, rows: int) -> None:
        if count > MOST_CLASSES:
            check_classes(count, rows, self.encoding.target)


def _class_names(classes: Sequence[Any]) -> dict[Any, Any]:
    """Values of the target -> labels of classes."""
    labels = class_labels(pd.Series(classes, dtype=object if isinstance(classes[0], str) else float))
    return dict(zip(classes, labels.tolist(), strict=True))


def _renamed(sums: RowSums, names: dict[Any, Any]) -> RowSums:
    """The same moments with the labels of the classes, sorted by them."""
    moments = sums.sums
    order = sorted(range(len(moments.classes)), key=lambda number: names[moments.classes[number]])
    classes = tuple(names[moments.classes[number]] for number in order)
    return sums._replace(
        sums=moments._replace(classes=classes, sums=moments.sums[:, order]),
        sample=sums.sample.map(lambda x, y, labels: (x, np.array([names[value] for value in y.tolist()]), labels)),
    )


def _true_of_chunk(
    chunk: pd.DataFrame, encoding: RowEncoding, statement: Callable[..., bool], names: dict[Any, Any]
) -> bool:
    features, values, _ = encoding.complete(chunk)
    return statement(features, values.map(names))
