"""A random sample of the rows of a table that is read in chunks: the same one, however the table is cut."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

# The seed of the number that each row gets.
SEED = 0
# A row is numbered by its part of the table (a file, a partition) and its position there: with so many rows at most.
PART_SPAN = 1 << 40


def row_numbers(rows: np.ndarray) -> np.ndarray:
    """A number between 0 and 1 for each row, of its position alone: what `default_rng(0).random` draws at it.

    Args:
        rows: (rows,), positions in increasing order.

    Example:
        >>> bool(row_numbers(np.array([3, 7]))[1] == np.random.default_rng(0).random(8)[7])
        True
    """
    if len(rows) == 0:
        return np.empty(0)
    begin = np.random.PCG64(SEED).advance(int(rows[0]))
    drawn = np.random.Generator(begin).random(int(rows[-1] - rows[0]) + 1)
    return drawn if len(drawn) == len(rows) else drawn[rows - rows[0]]


def smallest(numbers: np.ndarray, most: int) -> np.ndarray:
    """The positions of so many of the smallest numbers, in increasing order.

    Example:
        >>> smallest(np.array([0.3, 0.1, 0.2]), 2).tolist()
        [1, 2]
    """
    if len(numbers) <= most or most == 0:
        return np.arange(min(len(numbers), most))
    # numbers between 0 and 1: twice as many as are wanted lie below this level, and only these have to be compared
    likely = np.flatnonzero(numbers < 2 * most / len(numbers))
    if len(likely) < most:
        likely = np.arange(len(numbers))
    return np.sort(likely[np.argpartition(numbers[likely], most - 1)[:most]])


class RowSample(NamedTuple):
    """So many rows of a table, drawn at random: those whose `row_numbers` are the smallest.

    Samples of chunks add up to the sample of the table, and it does not matter how the table was cut. What is sampled
    are arrays with one entry for each row.

    Attributes:
        most: rows in the sample.
        pieces: (numbers, *arrays) of chunks, with the rows of the sample among them.

    Example:
        >>> parts = [np.arange(begin, begin + 30) for begin in (0, 30, 60)]
        >>> first, second, third = (sample_rows(part, [part], most=5) for part in parts)
        >>> one, other = first.merge(second).merge(third), first.merge(second.merge(third))
        >>> one.arrays[0].tolist() == other.arrays[0].tolist() == sample_rows(np.arange(90), [np.arange(90)], 5).arrays[
        ...     0
        ... ].tolist()
        True
    """

    most: int
    pieces: tuple[tuple[np.ndarray, ...], ...]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What was sampled, in the order of the table."""
        return self._cut().pieces[0][1:]

    def map(self, function: Callable[..., tuple[np.ndarray, ...]]) -> "RowSample":
        """The same rows with other arrays: function(*arrays)."""
        return RowSample(self.most, tuple((numbers, *function(*arrays)) for numbers, *arrays in self.pieces))

    def merge(self, other: "RowSample") -> "RowSample":
        """The sample of these rows and of the ones after them."""
        both = RowSample(self.most, (*self.pieces, *other.pieces))
        # cut now and then: cutting at every chunk would sort the sample as often
        return both._cut() if sum(len(piece[0]) for piece in both.pieces) > 2 * self.most else both

    def _cut(self) -> "RowSample":
        parts = [np.concatenate(part) for part in zip(*self.pieces, strict=True)]
        chosen = smallest(parts[0], self.most)
        return RowSample(self.most, (tuple(part[chosen] for part in parts),))


def sample_rows(rows: np.ndarray, arrays: Sequence[np.ndarray], most: int) -> RowSample:
    """The sample of one chunk.

    Args:
        rows: (rows,), their positions in the table, increasing.
        arrays: what is sampled, each with one entry for each row.
        most: rows in the sample.

    Example:
        >>> sample_rows(np.arange(3), [np.array([2.5, 3.5, 4.5])], most=5).arrays[0].tolist()
        [2.5, 3.5, 4.5]
    """
    numbers = row_numbers(rows)
    chosen = smallest(numbers, most)
    return RowSample(most, ((numbers[chosen], *(np.asarray(array)[chosen] for array in arrays)),))
