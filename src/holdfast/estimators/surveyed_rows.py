"""The complete rows of a surveyed table, in files or a data frame, as rows that can be summed."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import add, and_
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.grouping import group_text
from holdfast.core.progress import Progress
from holdfast.estimators.array_rows import ArrayRows, array_rows
from holdfast.estimators.rows import Collect, RowSums
from holdfast.tables.encoding import EncodedRows, RowEncoding, class_labels
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
        name: what they are called in messages.
    """

    used: CountedRows
    name = "a table that Dask reads"

    def __init__(self, found: Survey, passes: Passes, classes: bool, progress: Sequence[Progress]):
        self.found, self.passes, self.classes = found, passes, classes
        self._names: dict[Any, Any] = {}
        self._progress: Iterator[Progress] = iter(progress)

    def sums(self, collect: Collect) -> RowSums:
        """The sums of all complete rows; ValueError if there are none, or too few."""
        target = self.found.target if self.classes else None
        collect = partial(collect, classes="any values") if self.classes else collect
        sums = self._read(partial(_summed, collect=collect, target=target), partial(_joined, target=target))
        check_sizes(self.found, sums.sums.counts.reshape(len(sums.sums.labels), -1).sum(1))
        if self.classes:
            self._names = _class_names(sums.sums.classes)
            check_classes(len(self._names), sums.rows, self.found.target)
            sums = _renamed(sums, self._names)
        return sums.ordered()

    def together(self) -> ArrayRows | None:
        """All complete rows in one memory; None where the workers of Dask read them."""
        if self.passes.client is not None or self.found.table.on_dask:
            return None
        return array_rows(None, *self.encoded(), classes=self.classes)

    def encoded(self, *, encoded: bool = True) -> EncodedRows:
        """Features (or cells, not encoded), target, environments and weights of all complete rows at once."""
        cells, values, parts, weights = zip(*self._read(_listed, add, encoded=encoded), strict=True)
        response: pd.Series = pd.concat(values)
        if self.classes:
            response = class_labels(response)
            check_classes(response.nunique(), len(response), self.found.target)
        # as objects: their order as categories is that of the rows, and means nothing
        labels = None if parts[0] is None else pd.concat(parts).astype(object)
        if labels is not None:
            check_sizes(self.found, labels.value_counts().to_numpy())
        return EncodedRows(pd.concat(cells), response, labels, None if weights[0] is None else pd.concat(weights))

    def _read(self, take: Callable[[EncodedRows], Any], join: Callable[[Any, Any], Any], **options: bool) -> Any:
        """What is taken from the complete rows of all chunks, joined."""
        found, step = self.found, _Reading(self.found.encoding, take, join, **options)
        total = self.passes.reduce(found.table, found.reading, step.collect, step.merge, next(self._progress))
        if total is None:
            raise ValueError(f"data must have at least one row, got {found.table.name} with none")
        self.used = total.rows
        about_dropped(found, self.used)  # an error if there is no complete row
        if total.taken is None:
            raise ValueError(f"weights must be above zero in some row, got zeros only in {found.options.weights!r}")
        return total.taken

    def all(self, statement: Callable[..., bool]) -> bool:
        """Whether a statement is true of the features and classes of all complete rows."""
        found = self.found
        collect = partial(_true_of_chunk, encoding=found.encoding, statement=statement, names=self._names)
        return bool(self.passes.reduce(found.table, found.reading, collect, and_))


def check_classes(count: int, rows: int, target: str, *, all_rows: bool = True) -> None:
    """Raise a ValueError if a target has too many different values for classes, in all rows of a table or in some."""
    if count > MOST_CLASSES or (all_rows and 2 < count > rows / 2):
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
    """The rows of some chunks, and what is taken from the complete ones; None if there are none."""

    rows: CountedRows
    taken: Any


class _Reading(NamedTuple):
    """Chunk -> what is found in it, and how that is joined."""

    encoding: RowEncoding
    take: Callable[[EncodedRows], Any]
    join: Callable[[Any, Any], Any]
    encoded: bool = True

    def collect(self, chunk: pd.DataFrame) -> _FoundRows:
        complete, faults = self.encoding.examined(chunk, encoded=self.encoded)
        count = len(complete.values)
        return _FoundRows(CountedRows(len(chunk), count, faults), self.take(complete) if count else None)

    def merge(self, before: _FoundRows, after: _FoundRows) -> _FoundRows:
        (one, first), (other, second) = before, after
        rows = CountedRows(one.read + other.read, one.complete + other.complete, one.faults.merge(other.faults))
        return _FoundRows(rows, second if first is None else first if second is None else self.join(first, second))


def _listed(rows: EncodedRows) -> list[EncodedRows]:
    return [rows]


def _summed(rows: EncodedRows, collect: Collect, target: str | None) -> RowSums | None:
    features, values, labels, weights = rows
    if target is not None:  # before there are moments of each of them
        check_classes(values.nunique(), len(values), target, all_rows=False)
    environments = None if labels is None else group_text(labels)
    return collect(features, values, environments, features.index.to_numpy(), weights)


def _joined(before: RowSums, after: RowSums, target: str | None) -> RowSums:
    if target is not None:
        classes = {*before.sums.classes, *after.sums.classes}
        check_classes(len(classes), before.rows + after.rows, target, all_rows=False)
    return before.merge(after)


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
        sample=sums.sample.map(lambda x, y, *more: (x, np.array([names[value] for value in y.tolist()]), *more)),
    )


def _true_of_chunk(
    chunk: pd.DataFrame, encoding: RowEncoding, statement: Callable[..., bool], names: dict[Any, Any]
) -> bool:
    features, values, _, weights = encoding.complete(chunk)
    return statement(features, values.map(names), weights=weights)
