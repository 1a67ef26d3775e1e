"""Tables in data frames: of pandas, or of Dask, whose partitions are read where they are."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress, stages
from holdfast.tables.reading import CHUNK_ROWS
from holdfast.tables.sampling import PART_SPAN
from holdfast.tables.values import as_text

if TYPE_CHECKING:
    import dask.dataframe as dd


def is_dask_frame(data: Any) -> "TypeGuard[dd.DataFrame]":
    """Whether this is a data frame of Dask, which is not imported to find out.

    Example:
        >>> is_dask_frame(pd.DataFrame())
        False
    """
    if "dask.dataframe" not in sys.modules:
        return False
    import dask.dataframe as dd

    return isinstance(data, dd.DataFrame)


def map_rows(frame: "dd.DataFrame", function: Callable[[pd.DataFrame], np.ndarray], columns: Sequence[Any] = ()) -> Any:
    """A function of the rows of a Dask data frame, computed partition by partition once it is asked for.

    What is wrong with the columns of the frame is found at once, by two rows of its types.

    Args:
        frame: of Dask.
        function: rows -> an array with one entry, or one row of numbers, for each; never of no rows.
        columns: their names, if each gets a row of numbers.

    Returns:
        A column, or a data frame, of Dask.

    Example:
        >>> import dask.dataframe as dd
        >>> frame = dd.from_pandas(pd.DataFrame({"light": [1.0, 2.0, 3.0]}), npartitions=2)
        >>> map_rows(frame, lambda rows: 2 * rows["light"].to_numpy()).compute().tolist()
        [2.0, 4.0, 6.0]
    """
    tried: Any = frame._meta_nonempty
    found = function(tried)
    meta = pd.Series(found, tried.index) if found.ndim == 1 else pd.DataFrame(found, tried.index, list(columns))
    return frame.map_partitions(_mapped_rows, function, meta.iloc[:0], meta=meta.iloc[:0])


def _mapped_rows(rows: pd.DataFrame, function: Callable[[pd.DataFrame], np.ndarray], meta: Any) -> Any:
    if len(rows) == 0:
        return meta
    found = function(rows)
    if isinstance(meta, pd.Series):
        return pd.Series(found, rows.index, dtype=meta.dtype)
    return pd.DataFrame(found, rows.index, meta.columns)


class FramePart:
    """Rows of a data frame.

    Args:
        frame: the rows.
        first_row: the position of the first one in the table.

    Example:
        >>> part = FramePart(pd.DataFrame({"light": [1.5, 2.5, 3.5]}), 10)
        >>> [chunk.index.tolist() for chunk in part.chunks(2, (), ["light"])]
        [[10, 11], [12]]
    """

    def __init__(self, frame: pd.DataFrame, first_row: int):
        self.frame, self.first_row = frame, first_row

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"rows from {self.first_row} of the data frame"

    def chunks(self, rows: int, text: Collection[str], columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of at most so many rows, with some columns as text; an empty frame has none."""
        # a choice of columns is a copy, rows are not
        frame = self.frame if list(self.frame.columns) == list(columns) else self.frame[list(columns)]
        for begin in range(0, len(frame), rows):
            chunk = frame.iloc[begin : begin + rows]
            chunk.index = pd.RangeIndex(self.first_row + begin, self.first_row + begin + len(chunk))
            texts = {name: as_text(chunk[name]) for name in columns if name in text}
            yield chunk.assign(**texts) if texts else chunk


@dataclass(frozen=True)
class TableFrames:
    """A table in a data frame, ready to be read in chunks; what `TableFiles` is for files.

    Attributes:
        frame: of pandas or of Dask.
        lengths: partition -> its rows, once they are known.

    Example:
        >>> table = TableFrames(pd.DataFrame({"light": range(3)}))
        >>> table.columns, [len(chunk) for chunk in table.chunks(rows=2)]
        (['light'], [2, 1])
    """

    frame: Any
    lengths: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = list(self.frame.columns)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"columns must have different names, each a text, got {names}")

    @property
    def name(self) -> str:
        """What the table is called in messages."""
        return "the data frame"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    @property
    def unusable(self) -> dict[str, str]:
        """None: cells of a data frame are numbers, dates, or what is written as text."""
        return {}

    @property
    def decimal(self) -> Literal["."]:
        """The decimal sign of numbers that are written as text."""
        return "."

    @property
    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def on_dask(self) -> bool:
        """Whether this is a Dask data frame."""
        return is_dask_frame(self.frame)

    def counted(self, lengths: Mapping[int, int]) -> "TableFrames":
        """The same table, whose rows have positions that do not depend on partitions: their lengths are known.

        Args:
            lengths: partition -> its rows; partitions without rows need not be there.
        """
        return replace(self, lengths=lengths)

    def chunks(
        self,
        rows: int = CHUNK_ROWS,
        text: Collection[str] = (),
        columns: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pd.DataFrame]:
        """The rows in chunks of bounded size, as of `TableFiles`; partitions of Dask come here one after the other."""
        wanted = [name for name in self.columns if columns is None or name in columns]
        parts = self.parts(wanted)
        for part, report in zip(parts, stages(progress, [1] * len(parts)), strict=True):
            yield from (part.compute() if self.on_dask else part).chunks(rows, text, wanted)
            report(1, 1)

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """One for each partition, with these columns; of pandas, one."""
        if not self.on_dask:
            return [FramePart(self.frame, 0)]
        import dask

        part = dask.delayed(FramePart, pure=False)
        frames = self.frame[list(columns)].to_delayed()
        return [part(frame, row) for frame, row in zip(frames, self._first_rows(), strict=True)]

    def _first_rows(self) -> list[int]:
        numbers = range(self.frame.npartitions)
        if not self.lengths:
            return [number * PART_SPAN for number in numbers]
        return [0, *accumulate(self.lengths.get(number, 0) for number in numbers)][:-1]
