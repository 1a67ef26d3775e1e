"""The second moments of each environment, all that least squares needs of a table, added up chunk by chunk."""

from typing import NamedTuple

import numpy as np

from holdfast.estimators.grouping import Grouping, group_rows
from holdfast.estimators.scaling import is_constant
from holdfast.losses.squared import SecondMoments

# Rows that are centred and multiplied at once: memory stays bounded, and the block is large enough for BLAS.
CHUNK_ROWS = 16_384


class MomentSums(NamedTuple):
    """Sums over the rows of each environment; sums of chunks add up to those of the whole table, however it is cut.

    With r = (1, x - shift_x, y - shift_y) for each row, sums[e] = sum over rows of weight * r r^T.

    Attributes:
        labels: the label of each environment, in the order of `sums`.
        shift: (features + 1,), subtracted before squaring, so that large means cost no digits.
        sums: (environments, features + 2, features + 2).
    """

    labels: tuple
    shift: np.ndarray
    sums: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """(environments,), the total weight of the rows."""
        return self.sums[:, 0, 0]


def collect_moments(
    x: np.ndarray, y: np.ndarray, grouping: Grouping | None = None, weights: np.ndarray | None = None
) -> MomentSums:
    """The moments of one chunk.

    Args:
        x: (rows, features).
        y: (rows,).
        grouping: environments of the rows; None: a single one.
        weights: how many rows each row stands for; None: one.
    """
    grouping = grouping or group_rows(None, len(x))
    shift = np.append(_rough_means(x), _rough_means(y[:, None]))
    size = x.shape[1] + 2
    sums = np.zeros((grouping.count, size, size))
    for begin in range(0, len(x), CHUNK_ROWS):
        block_rows = slice(begin, begin + CHUNK_ROWS)
        codes = grouping.codes[block_rows]
        order = np.argsort(codes, kind="stable")
        block = np.empty((len(order), size))
        block[:, 0] = 1.0
        block[:, 1:-1] = x[block_rows][order]
        block[:, -1] = y[block_rows][order]
        block[:, 1:] -= shift
        ends = np.searchsorted(codes[order], np.arange(grouping.count), side="right")
        weighted = block if weights is None else block * weights[block_rows][order, None]
        for number, (first, last) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
            if last > first:
                sums[number] += weighted[first:last].T @ block[first:last]
    return MomentSums(tuple(grouping.labels), shift, sums)


def add_moments(total: MomentSums, chunk: MomentSums) -> MomentSums:
    """The moments of two chunks together; environments are matched by their labels.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x, y = random.standard_normal((50, 3)), random.standard_normal(50)
        >>> whole = collect_moments(x, y)
        >>> parts = add_moments(collect_moments(x[:20], y[:20]), collect_moments(x[20:], y[20:]))
        >>> bool(np.allclose(standardized(whole).second, standardized(parts).second))
        True
    """
    if len(total.shift) != len(chunk.shift):
        raise ValueError(f"chunks must have {len(total.shift) - 1} features like the first, got {len(chunk.shift) - 1}")
    labels = list(dict.fromkeys([*total.labels, *chunk.labels]))
    sums = np.zeros((len(labels), *total.sums.shape[1:]))
    sums[: len(total.labels)] = total.sums
    for label, matrix in zip(chunk.labels, _moved(chunk, total.shift), strict=True):
        sums[labels.index(label)] += matrix
    return MomentSums(tuple(labels), total.shift, sums)


class StandardizedMoments(NamedTuple):
    """Means over the rows of each environment, about a common mean (or about its own).

    Attributes:
        counts: (environments,), rows.
        second: (environments, features, features), mean of z z^T, with z the centred and scaled features.
        cross: (environments, features), mean of z t, with t the centred and scaled response.
        square: (environments,), mean of t^2.
        means: (environments, features + 1), the means of z and t in each environment before any centring of its own.
        location: (features + 1,), the pooled means of x and y.
        scale: (features + 1,), their pooled standard deviations; 1 for what is constant.
        constant: (features,), which features are constant.
    """

    counts: np.ndarray
    second: np.ndarray
    cross: np.ndarray
    square: np.ndarray
    means: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    constant: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """(environments,), the shares of the rows."""
        return self.counts / self.counts.sum()

    @property
    def moments(self) -> SecondMoments:
        """All that the squared loss depends on."""
        return SecondMoments(self.second, self.cross, self.square)


def standardized(moments: MomentSums, *, within: bool = False) -> StandardizedMoments:
    """Standardise features and response by their pooled means and standard deviations.

    Args:
        moments: the sums.
        within: centre each environment about its own means, so that only effects are compared and not levels.
    """
    counts = moments.counts
    total = moments.sums.sum(0)
    mean = total[0, 1:] / counts.sum()
    means = moments.sums[:, 0, 1:] / counts[:, None]
    second = moments.sums[:, 1:, 1:] / counts[:, None, None]
    outer = means[:, :, None] * means[:, None, :]
    if within:
        about = second - outer
    else:
        cross = means[:, :, None] * mean
        about = second - cross - cross.swapaxes(1, 2) + np.outer(mean, mean)
    pooled = np.einsum("e,eii->i", counts / counts.sum(), about)
    flat = is_constant(pooled, moments.shift + mean)
    scale = np.sqrt(np.where(flat, 1.0, pooled))
    about = about / (scale[:, None] * scale)
    about[:, flat] = 0
    about[:, :, flat] = 0
    return StandardizedMoments(
        counts,
        about[:, :-1, :-1],
        about[:, :-1, -1],
        about[:, -1, -1],
        (means - mean) / scale,
        moments.shift + mean,
        scale,
        flat[:-1],
    )


def _rough_means(columns: np.ndarray) -> np.ndarray:
    """Roughly the means: those of the first rows will do."""
    return np.asarray(columns[:1000], float).mean(0)


def _moved(moments: MomentSums, shift: np.ndarray) -> np.ndarray:
    """The sums about another shift."""
    change = np.eye(len(shift) + 1)
    change[1:, 0] = moments.shift - shift
    return change @ moments.sums @ change.T
