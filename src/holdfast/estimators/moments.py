"""The second moments of each environment, all that least squares needs of a table, added up chunk by chunk."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.estimators.grouping import Grouping, group_rows
from holdfast.estimators.scaling import is_constant

# Rows that are centred and multiplied at once: a block of a few dozen columns stays in the cache of a core, and the
# rows of one environment in it are enough for a product, of which there is one for each environment.
BLOCK_ROWS, BLOCK_ROWS_OF_ONE = 8_192, 16
# Columns whose spread is at least 2^-200, 1e-60, are in units whose squares lose no digits.
SMALL_EXPONENT = -200
# Rows that tell roughly where a column is and how far it spreads.
ROUGH_ROWS = 1_000
# Where columns have no units of their own: the squares of 10^8 such numbers can be added up.
LARGEST = 1e150
# Rounding leaves about 1e-15 of the mean square of a column as the variance of a constant one.
ROUNDING = 1e-13
# Directions with less than this share of the largest eigenvalue are collinear features, not measured ones.
NEGLIGIBLE = 1e-12


class MomentSums(NamedTuple):
    """Sums over the rows of each environment; sums of chunks add up to those of the whole table, however it is cut.

    With r = (1, (x - shift_x) / unit_x, (y - shift_y) / unit_y) for each row, sums[e] = sum of weight * r r^T.

    Attributes:
        labels: the label of each environment, in the order of `sums`.
        shift: (features + 1,), subtracted before squaring, so that large means cost no digits.
        unit: (features + 1,), 1, or powers of two near the spread of columns that are very small, so that squares do
            not vanish. Large columns have no units: what is too large would then depend on the rows that come first.
        sums: (environments, features + 2, features + 2).
    """

    labels: tuple
    shift: np.ndarray
    unit: np.ndarray
    sums: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """(environments,), the total weight of the rows."""
        return self.sums[:, 0, 0]


def collect_moments(
    x: np.ndarray,
    y: np.ndarray,
    grouping: Grouping | None = None,
    weights: np.ndarray | None = None,
    names: Sequence[str] | None = None,
) -> MomentSums:
    """The moments of one chunk; a ValueError names the column whose squares are too large to be added up.

    Args:
        x: (rows, features).
        y: (rows,).
        grouping: environments of the rows; None: a single one.
        weights: how many rows each row stands for; None: one.
        names: of the features; None: they have none.

    Example:
        >>> collect_moments(np.array([[0.0], [1e200]]), np.array([1.0, 2.0]), names=["light"])
        Traceback (most recent call last):
        ValueError: X must hold numbers whose squares can be added up, got 1e+200 in the column 'light'
    """
    grouping = grouping or group_rows(None, len(x))
    shift, unit = _rough_scale(x[:ROUGH_ROWS], y[:ROUGH_ROWS])
    sums = summed_products([x, y[:, None]], shift, grouping.codes, grouping.count, unit=unit, weights=weights)
    too_large = ~np.isfinite(np.einsum("eii->ei", sums)[:, 1:]).all(axis=0)
    if too_large[:-1].any():
        _refuse(x, too_large[:-1], names)
    if too_large[-1]:
        raise ValueError(f"y must hold numbers whose squares can be added up, got {y[np.abs(y).argmax()]:g}")
    return MomentSums(tuple(grouping.labels), shift, unit, sums)


def summed_products(
    parts: Sequence[np.ndarray],
    shift: np.ndarray,
    codes: np.ndarray,
    count: int,
    *,
    unit: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """(groups, columns + 1, columns + 1): the sums over the rows of each group of weight * r r^T, r = (1, x - shift).

    Args:
        parts: (rows, columns) each, of x.
        shift: (columns,) of all parts, roughly the means.
        codes: (rows,), the group of each row, from 0 to count - 1.
        count: number of groups.
        unit: (columns,), by which x - shift is divided; None: 1.
        weights: how many rows each row stands for; None: one.

    Example:
        >>> x = np.array([[1.0], [2.0], [4.0]])
        >>> summed_products([x], np.array([1.0]), np.array([1, 0, 1]), 2)[:, 1, 1].tolist()
        [1.0, 9.0]
    """
    total, size = len(codes), len(shift) + 1
    sums = np.zeros((count, size, size))
    rows = max(BLOCK_ROWS, BLOCK_ROWS_OF_ONE * count)
    if count <= np.iinfo(np.int16).max:
        codes = codes.astype(np.int16)  # small integers are sorted digit by digit, several times as fast
    # columns lie one after the other, so that each is centred in one go
    block = np.ones((size, min(rows, total)))
    for begin in range(0, total, rows):
        own = codes[begin : begin + rows]
        order = np.argsort(own, kind="stable")
        r, filled = block[:, : len(own)], 1
        with np.errstate(over="ignore", invalid="ignore"):  # `collect_moments` says what is too large
            for part in parts:
                end = filled + part.shape[1]
                taken = part[begin : begin + rows][order].T
                np.subtract(taken, shift[filled - 1 : end - 1, None], out=r[filled:end])
                filled = end
            if unit is not None and (unit != 1).any():
                r[1:] /= unit[:, None]
            weighted = r if weights is None else r * weights[begin : begin + rows][order]
            first = 0
            for number, last in enumerate(np.cumsum(np.bincount(own, minlength=count)).tolist()):
                if last > first:
                    sums[number] += weighted[:, first:last] @ r[:, first:last].T
                first = last
    return sums


def check_squares(x: np.ndarray, names: Sequence[str] | None = None) -> None:
    """Raise the error of `collect_moments` for rows that are not summed yet; x: (rows, features)."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    if (largest > LARGEST).any():
        _refuse(x, largest > LARGEST, names)


def _refuse(x: np.ndarray, columns: np.ndarray, names: Sequence[str] | None) -> None:
    """Name the column, among these, with the largest number."""
    row, place = np.unravel_index(np.where(columns, np.abs(x), 0).argmax(), x.shape)
    name = f"x{place}" if names is None else names[int(place)]
    raise ValueError(f"X must hold numbers whose squares can be added up, got {x[row, place]:g} in the column {name!r}")


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
    # about the common mean, in the larger unit: chunks that lie far apart lose no digits, whichever comes first
    rows = np.array([moments.counts.sum() for moments in (total, chunk)])
    locations = [
        moments.shift + moments.unit * moments.sums[:, 0, 1:].sum(0) / max(count, np.finfo(float).tiny)
        for moments, count in zip((total, chunk), rows, strict=True)
    ]
    first, second = rows / max(rows.sum(), np.finfo(float).tiny)
    shift, unit = first * locations[0] + second * locations[1], np.maximum(total.unit, chunk.unit)
    labels = list(dict.fromkeys([*total.labels, *chunk.labels]))
    positions = {label: number for number, label in enumerate(labels)}
    sums = np.zeros((len(labels), *total.sums.shape[1:]))
    for moments in (total, chunk):
        moved = moved_sums(moments.sums, (moments.shift - shift) / unit, moments.unit / unit)
        sums[[positions[label] for label in moments.labels]] += moved
    return MomentSums(tuple(labels), shift, unit, sums)


def moved_sums(sums: np.ndarray, offset: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """The sums of r r^T, with r = (1, x), for r' = (1, ratio x + offset) instead.

    Args:
        sums: (..., features + 1, features + 1).
        offset: (features,).
        ratio: (features,).

    Example:
        >>> r, moved = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 5.0])
        >>> moved_sums(np.outer(r, r), np.array([0.5, -1.0]), np.array([1.0, 2.0])).tolist() == np.outer(
        ...     moved, moved
        ... ).tolist()
        True
    """
    found = np.empty_like(sums)
    count, first = sums[..., 0, 0], sums[..., 0, 1:] * ratio
    found[..., 0, 0] = count
    found[..., 0, 1:] = found[..., 1:, 0] = first + count[..., None] * offset
    mixed = found[..., 0, 1:, None] * offset  # (first + count offset) offset^T
    found[..., 1:, 1:] = sums[..., 1:, 1:] * (ratio[:, None] * ratio) + mixed + offset[:, None] * first[..., None, :]
    return found


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
        within: whether each environment is centred about its own means.
    """

    counts: np.ndarray
    second: np.ndarray
    cross: np.ndarray
    square: np.ndarray
    means: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    constant: np.ndarray
    within: bool

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
    weights = counts / counts.sum()
    pooled = np.einsum("e,eii->i", weights, about)
    location = moments.shift + mean * moments.unit
    # what is left of equal values when a large mean square is subtracted from them is rounding
    rounding = pooled <= ROUNDING * (weights @ means**2)
    deviation = np.sqrt(np.maximum(pooled, 0.0))
    flat = rounding | is_constant(deviation * moments.unit, location)
    scale = np.where(flat, 1.0, deviation)
    about = about / (scale[:, None] * scale)
    about[:, flat] = 0
    about[:, :, flat] = 0
    return StandardizedMoments(
        counts,
        about[:, :-1, :-1],
        about[:, :-1, -1],
        about[:, -1, -1],
        (means - mean) / scale,
        location,
        np.where(flat, 1.0, deviation * moments.unit),
        flat[:-1],
        within,
    )


def held_out_errors(moments: StandardizedMoments, columns: np.ndarray) -> np.ndarray:
    """(environments,): the mean squared error in each environment of least squares on the rows of all others.

    Both have an intercept, unless each environment is centred about its own means.

    Args:
        moments: of all environments, two at least.
        columns: the features that are fitted.

    Example, the slope is 1 in one environment and 3 in the other:
        >>> x, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([-1.0, 1.0, -3.0, 3.0])
        >>> known = standardized(collect_moments(x, y, group_rows([0, 0, 1, 1], 4)))
        >>> (held_out_errors(known, np.array([0])) * known.scale[-1] ** 2).round(3).tolist()
        [4.0, 4.0]
    """
    used = np.append(columns, -1)  # the response comes last
    counts = moments.counts[:, None, None]
    blocks = np.empty((len(counts), len(used) + 1, len(used) + 1))
    means = np.zeros((len(counts), len(used))) if moments.within else moments.means[:, used]
    blocks[:, 0, 0], blocks[:, 0, 1:], blocks[:, 1:, 0] = 1.0, means, means
    blocks[:, 1:-1, 1:-1] = moments.second[:, columns[:, None], columns]
    blocks[:, 1:-1, -1] = blocks[:, -1, 1:-1] = moments.cross[:, columns]
    blocks[:, -1, -1] = moments.square
    others = (counts * blocks).sum(0) - counts * blocks
    fitted = np.linalg.pinv(others[:, :-1, :-1], rcond=NEGLIGIBLE, hermitian=True) @ others[:, :-1, -1:]
    errors = np.concatenate([-fitted, np.ones((len(counts), 1, 1))], axis=1)
    return np.maximum((errors.swapaxes(1, 2) @ blocks @ errors)[:, 0, 0], 0.0)


def _rough_scale(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Roughly the means of the columns, and their units; those of the first rows will do."""
    rows = np.column_stack([x, y]).astype(float)
    shift = (rows / len(rows)).sum(0)  # no sum is larger than the largest number
    # where the first rows are equal, the size of the values tells the unit
    with np.errstate(over="ignore"):
        spread = np.abs(rows - shift).max(0)
    size = np.where(spread > 0, spread, np.abs(shift))
    exponent = np.frexp(np.where(size > 0, size, 1.0))[1]
    return shift, np.ldexp(1.0, np.where(exponent < SMALL_EXPONENT, exponent, 0))
