"""Tables in data frames: of pandas, or of Dask, whose partitions are read where they are."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.tables.options import Columns
from holdfast.tables.reading import PART_SPAN, chunks_of
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
    """A function of the rows of a Dask data frame, computed partition by partition once its result is needed.

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


class FramePart(NamedTuple):
    """Rows of a data frame.

    Attributes:
        frame: the rows.
        first_row: the position of the first one in the table.

    Example:
        >>> part = FramePart(pd.DataFrame({"light": [1.5, 2.5, 3.5]}), 10)
        >>> [chunk.index.tolist() for chunk, share in part.read(Columns(["light"], (), 2))]
        [[10, 11], [12]]
    """

    frame: pd.DataFrame
    first_row: int

    def read(self, columns: Columns) -> Iterator[tuple[pd.DataFrame, float]]:
        """Chunks of bounded size, as of `FilePart`; an empty frame has none."""
        names, text, rows = columns
        # a choice of columns is a copy, rows are not
        frame = self.frame if list(self.frame.columns) == list(names) else self.frame[list(names)]
        for begin in range(0, len(frame), rows):
            chunk = frame.iloc[begin : begin + rows]
            chunk.index = pd.RangeIndex(self.first_row + begin, self.first_row + begin + len(chunk))
            texts = {name: as_text(chunk[name]) for name in names if name in text}
            yield chunk.assign(**texts) if texts else chunk, (begin + len(chunk)) / len(frame)


@dataclass(frozen=True)
class TableFrames:
    """A table in a data frame, ready to be read in chunks; what `TableFiles` is for files.

    Attributes:
        frame: of pandas or of Dask.
        lengths: partition -> its rows, once they are known.
        name, decimal, unusable, notes: as of `TableFiles`.

    Example:
        >>> table = TableFrames(pd.DataFrame({"light": range(3)}))
        >>> table.columns, [len(chunk) for chunk in table.read(Columns(["light"], (), 2))]
        (['light'], [2, 1])
    """

    frame: Any
    lengths: Mapping[int, int] = field(default_factory=dict)
    name: str = "the data frame"
    decimal: Literal["."] = "."
    unusable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = list(self.frame.columns)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"columns must have different names, each a text, got {names}")

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    @property
    def on_dask(self) -> bool:
        """Whether this is a Dask data frame."""
        return is_dask_frame(self.frame)

    def counted(self, lengths: Mapping[int, int]) -> "TableFrames":
        """The same table, with positions of rows that do not depend on partitions, given partition -> its rows."""
        return replace(self, lengths=lengths)

    def read(self, columns: Columns, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Some columns of a frame of pandas in chunks, as of `TableFiles`."""
        return chunks_of([FramePart(self.frame, 0)], [len(self.frame)], columns, progress)

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """One for each partition, with these columns; of pandas, one."""
        if not self.on_dask:
            return [FramePart(self.frame, 0)]
        import dask

        numbers = range(self.frame.npartitions)
        sizes = [self.lengths.get(number, 0) if self.lengths else PART_SPAN for number in numbers]
        part, frames = dask.delayed(FramePart, pure=False), self.frame[list(columns)].to_delayed()
        return [part(frame, row) for frame, row in zip(frames, [0, *accumulate(sizes)], strict=False)]

    def part_name(self, number: int) -> str:
        """What a part is called in messages."""
        return f"partition {number} of {self.name}"
