"""Sums of products over the rows of each environment, all that least squares needs, and the units of a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.linear_algebra import Arrays

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
# A column whose standard deviation is below this share of its mean varies by no more than its last digits.
RESOLUTION = 8 * np.finfo(float).eps


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

    @property
    def features(self) -> int:
        """Their number."""
        return len(self.shift) - 1


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
                taken = np.take(part[begin : begin + rows].T, order, axis=1)
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
    largest = np.maximum(x.max(axis=0, initial=0.0), -x.min(axis=0, initial=0.0))
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
    labels = list(dict.fromkeys([*total.labels, *chunk.labels]))
    positions = {label: number for number, label in enumerate(labels)}
    cells = [[positions[label] for label in moments.labels] for moments in (total, chunk)]
    return MomentSums(tuple(labels), *joined_sums((total, chunk), cells, (len(labels),)))


def joined_sums(
    parts: Sequence[Any], cells: Sequence[Any], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift, unit and sums of several chunks together.

    Args:
        parts: the chunks, `MomentSums` or `ClassMoments`.
        cells: of each chunk, the indices of its groups in the result.
        shape: of the groups of the result.
    """
    first = parts[0]
    if odd := [part for part in parts if len(part.shift) != len(first.shift)]:
        raise ValueError(f"chunks must have {first.features} features like the first, got {odd[0].features}")
    # about the common mean, in the larger unit: chunks that lie far apart lose no digits, whichever comes first
    tiny = np.finfo(float).tiny
    groups = tuple(range(first.sums.ndim - 2))
    totals = [part.sums[..., 0, :].sum(groups) for part in parts]
    rows = np.array([total[0] for total in totals])
    locations = [
        part.shift + part.unit * total[1:] / max(total[0], tiny) for part, total in zip(parts, totals, strict=True)
    ]
    shares = rows / max(rows.sum(), tiny)
    shift = sum(share * location for share, location in zip(shares, locations, strict=True))
    unit = np.max([part.unit for part in parts], axis=0)
    sums = np.zeros((*shape, *first.sums.shape[-2:]))
    for part, own in zip(parts, cells, strict=True):
        sums[own] += moved_sums(part.sums, (part.shift - shift) / unit, part.unit / unit)
    return shift, unit, sums


def moved_sums(sums: np.ndarray, offset: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """The sums of r r^T, with r = (1, x), for r' = (1, ratio x + offset) instead.

    Args:
        sums: (..., features + 1, features + 1).
        offset: (features,).
        ratio: (features,).
    """
    found = np.empty_like(sums)
    count, first = sums[..., 0, 0], sums[..., 0, 1:] * ratio
    found[..., 0, 0] = count
    found[..., 0, 1:] = found[..., 1:, 0] = first + count[..., None] * offset
    mixed = found[..., 0, 1:, None] * offset  # (first + count offset) offset^T
    found[..., 1:, 1:] = sums[..., 1:, 1:] * (ratio[:, None] * ratio) + mixed + offset[:, None] * first[..., None, :]
    return found


class SecondMoments(NamedTuple):
    """All that the squared loss depends on, of each environment.

    Attributes:
        second: (environments, features, features), S_e, mean of x x^T.
        cross: (environments, features), c_e, mean of x y.
        square: (environments,), q_e, mean of y^2.

    Example, x = 1 and y = 2 in every row:
        >>> moments = SecondMoments(np.ones((1, 1, 1)), np.array([[2.0]]), np.array([4.0]))
        >>> np.linalg.solve(moments.second, moments.cross[..., None]).ravel().tolist()
        [2.0]
    """

    second: Arrays
    cross: Arrays
    square: Arrays


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

    @property
    def covariances(self) -> np.ndarray:
        """(environments, features + 1, features + 1), within each environment; the response comes last."""
        lower = np.column_stack([self.cross, self.square])[:, None]
        products = np.concatenate([np.concatenate([self.second, self.cross[:, :, None]], axis=2), lower], axis=1)
        return products if self.within else products - self.means[:, :, None] * self.means[:, None, :]

    def barring(self, columns: np.ndarray) -> "StandardizedMoments":
        """The moments of a table in which these features, (features,), are constant, so that nothing can use them."""
        second, means = self.second * ~(columns[:, None] | columns), self.means * np.append(~columns, True)
        return self._replace(second=second, cross=self.cross * ~columns, means=means)


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


def is_constant(deviation: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Which columns vary by no more than the last digits of their values.

    Args:
        deviation: standard deviations.
        mean: means, of the same columns.

    Example, a column around ten million that varies by 1 is not constant:
        >>> is_constant(np.array([1e-17, 1.0]), np.array([0.1, 1e7])).tolist()
        [True, False]
    """
    return deviation <= RESOLUTION * np.abs(mean)


class Scaling(NamedTuple):
    """The units of a table: z = (x - location) / scale.

    Attributes:
        location: (features,), means.
        scale: (features,), standard deviations; 1 for a constant column.
        constant: (features,), which columns are constant.
    """

    location: np.ndarray
    scale: np.ndarray
    constant: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:
        """(rows, features), z; exactly zero in constant columns."""
        return (x - self.location) / self.scale * ~self.constant

    def undo(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of x from those of z, (..., features), and the intercept that belongs to them, (...).

        Example:
            >>> Scaling(np.array([3.0]), np.array([2.0]), np.array([False])).undo(np.array([4.0]))
            (array([2.]), np.float64(-6.0))
        """
        own = coefficients / self.scale
        return own, -(own @ self.location)


def standard_units(x: np.ndarray, weights: np.ndarray | None = None) -> Scaling:
    """Mean 0 and variance 1 over all rows.

    Args:
        x: (rows, features).
        weights: how many rows each row stands for; None: one.

    Example:
        >>> standard_units(np.array([[1.0, 7.0], [3.0, 7.0]])).apply(np.array([[4.0, 7.0]])).tolist()
        [[2.0, 0.0]]
    """
    location = np.average(x, axis=0, weights=weights)
    deviation = np.sqrt(np.average((x - location) ** 2, axis=0, weights=weights))
    constant = is_constant(deviation, location)
    return Scaling(location, np.where(constant, 1.0, deviation), constant)


def own_units(features: int) -> Scaling:
    """Features as they are."""
    return Scaling(np.zeros(features), np.ones(features), np.zeros(features, bool))
