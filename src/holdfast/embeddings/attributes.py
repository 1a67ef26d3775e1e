"""Scores become attributes: the best cut in two, groups of values, and the rotation in which scores show them."""

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from holdfast.core.validation import require

# The share of the variance that the best cut explains: 2/pi = 0.64 of a normal law, 0.75 of a uniform one, 1 of two
# values. A score above this is two groups, below it is continuous.
TWO_GROUPS = 0.75
# A continuous score becomes so many groups of equally many rows.
CONTINUOUS_GROUPS = 4
# Angles that are tried for each pair of scores: a grid of 1 degree.
ANGLES = np.deg2rad(np.arange(90))
# Sweeps over all pairs; rotations of a few scores settle after two or three.
SWEEPS = 10
# Rows that decide on a rotation; its error is far below a degree.
ROTATION_ROWS = 20_000


class Cut(NamedTuple):
    """The cut of numbers into two groups that leaves the least variance within them.

    Attributes:
        threshold: halfway between the groups.
        explained: the share of the variance that lies between the groups.

    Example:
        >>> two_means(np.array([0.0, 0.1, 5.0, 5.1, 5.2])).threshold
        2.55
    """

    threshold: float
    explained: float

    @property
    def is_binary(self) -> bool:
        """Whether the numbers fall into two groups, more clearly than a uniform law."""
        return self.explained > TWO_GROUPS


def two_means(values: np.ndarray) -> Cut:
    """Two-means in one dimension, exactly: of all cuts of the sorted numbers the best, by their running sums.

        between = (S_k - k S_n / n)^2 / (k (n - k) / n)    for the first k of n numbers, S_k their sum

    Args:
        values: (rows,), at least one.

    Example, of a normal law the best cut explains 2 / pi:
        >>> round(two_means(np.random.default_rng(0).standard_normal(100_000)).explained, 2)
        0.64
    """
    ordered = np.sort(np.asarray(values, float))
    ordered, middle = ordered - ordered.mean(), float(np.mean(values))
    rows = len(ordered)
    total = float(ordered @ ordered)
    if rows < 2 or total <= 0:
        return Cut(middle, 0.0)
    first = np.arange(1, rows)
    between = np.cumsum(ordered)[:-1] ** 2 * rows / (first * (rows - first))
    between[np.diff(ordered) <= 0] = -1.0  # equal numbers are not cut apart
    best = int(np.argmax(between))
    return Cut(middle + float(ordered[best] + ordered[best + 1]) / 2, float(between[best]) / total)


def group_scores(scores: np.ndarray, groups: int | None = None) -> np.ndarray:
    """(rows,): the group of each score, from 0 up: two by the best cut, or of equally many rows.

    Args:
        scores: (rows,).
        groups: how many; None: 2 if the best cut explains more than of a uniform law, otherwise 4.

    Example:
        >>> group_scores(np.array([0.0, 0.1, 5.0, 5.1])).tolist()
        [0, 0, 1, 1]
        >>> group_scores(np.arange(8.0), 4).tolist()
        [0, 0, 1, 1, 2, 2, 3, 3]
    """
    cut = two_means(scores)
    if groups is None:
        groups = 2 if cut.is_binary else CONTINUOUS_GROUPS
    require(groups >= 2, "groups must be a whole number of at least 2", repr(groups))
    edges = [cut.threshold] if groups == 2 else np.quantile(scores, np.arange(1, groups) / groups)
    return np.searchsorted(edges, scores, side="right" if groups > 2 else "left")


def bimodal_rotation(scores: np.ndarray) -> np.ndarray:
    """(scores, scores): the rotation in which scores show attributes with two values, rather than mixtures of them.

    Directions that vary are known up to a rotation. Mixtures of attributes are closer to a normal distribution than the
    attributes are, so it is the rotation of scores farthest from normal, pair by pair, as measured by

        skewness^2 / 12 + (excess kurtosis)^2 / 48.

    Both are needed: the skewness of two values is zero if they are equally frequent, and the excess kurtosis is zero if
    one has a share of 21 %.

    Args:
        scores: (rows, scores).

    Reference: P. Comon, Signal Processing 36 (1994), independent components by a sweep over pairs; M. C. Jones,
        R. Sibson, J. R. Statist. Soc. A 150 (1987), the measure, an approximation of negentropy.

    Example, two coins seen at an angle of 30 degrees:
        >>> random = np.random.default_rng(0)
        >>> coins = random.choice([-1.0, 1.0], (5000, 2))
        >>> turn = np.array([[np.cos(np.pi / 6), -np.sin(np.pi / 6)], [np.sin(np.pi / 6), np.cos(np.pi / 6)]])
        >>> found = turn @ bimodal_rotation(coins @ turn)
        >>> bool(np.allclose(np.sort(abs(found).ravel()), [0, 0, 1, 1], atol=0.03))
        True
    """
    scores = np.asarray(scores, float)
    if len(scores) > ROTATION_ROWS:  # at random: rows may come in a periodic order
        scores = np.random.default_rng(0).choice(scores, ROTATION_ROWS, replace=False)
    scores = scores - scores.mean(0)
    rotation = np.eye(scores.shape[1])
    for _ in range(SWEEPS):
        turned = False
        for one, other in combinations(range(len(rotation)), 2):
            x, y = scores @ rotation[:, one], scores @ rotation[:, other]
            cosines, sines = np.cos(ANGLES), np.sin(ANGLES)
            best = int(np.argmax(_non_normality(x, y, cosines, sines) + _non_normality(y, x, cosines, -sines)))
            if best:
                turned = True
                pair = np.array([[cosines[best], -sines[best]], [sines[best], cosines[best]]])
                rotation[:, [one, other]] = rotation[:, [one, other]] @ pair
        if not turned:
            break
    return rotation


def _non_normality(x: np.ndarray, y: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
    """(angles,): skewness^2 / 12 + (excess kurtosis)^2 / 48 of s = x cos + y sin, from the moments of x and y."""
    second, third, fourth = (
        np.array([comb(order, power) * np.mean(x ** (order - power) * y**power) for power in range(order + 1)])
        @ np.array([cosines ** (order - power) * sines**power for power in range(order + 1)])
        for order in (2, 3, 4)
    )
    second = np.maximum(second, 1e-300)
    return third**2 / second**3 / 12 + (fourth / second**2 - 3) ** 2 / 48
