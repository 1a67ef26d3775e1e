"""Scores become attributes: the best cut in two, groups of rows, and the rotation in which scores show attributes."""

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
# Rows that decide on a rotation and on groups; the error of an angle is far below a degree.
DECIDING_ROWS = 20_000
# Groups to begin with, before those that are not apart are joined.
MOST_GROUPS = 32
# The squared distance between two groups, in units of the variance within them: above that of two halves of a uniform
# law, which explain 0.75 of its variance, by so many standard errors.
APART, ERRORS = 12.0, 2.0
# No group has fewer rows than this, nor than this share of all rows.
SMALLEST_GROUP, SMALLEST_SHARE = 30, 0.01
# Added to the variances within groups, in units of those of the scores: groups may have no spread.
NO_SPREAD = 1e-12


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


class ScoreGroups(NamedTuple):
    """Groups of rows with similar scores: the nearest centre, cut further along scores that are continuous.

    Attributes:
        units: (scores, scores); scores @ units have the covariance 1 within groups.
        centres: (centres, scores), in these units.
        cuts: of each continuous score, its number and the thresholds in each of the groups before.
        values: (groups, attributes), of each group: if the groups are all combinations of values of single scores, a
            column for each of these, otherwise one column.

    Example: see `joint_groups`.

        >>> ScoreGroups(np.eye(1), np.array([[0.0], [4.0]]), [], np.array([[0], [1]])).of(np.array([[1.0], [3.0]]))
        array([0, 1])
    """

    units: np.ndarray
    centres: np.ndarray
    cuts: list[tuple[int, list[np.ndarray]]]
    values: np.ndarray

    def of(self, scores: np.ndarray) -> np.ndarray:
        """(rows,): the group of each row of scores, from 0 up."""
        # |s - c|^2 without |s|^2, which is the same for all centres
        labels = np.argmin((self.centres**2).sum(1) - 2 * (scores @ self.units) @ self.centres.T, axis=1)
        for score, edges in self.cuts:
            labels = _cut_groups(labels, scores[:, score], edges)
        return labels


def joint_groups(scores: np.ndarray) -> ScoreGroups:
    """Cluster all scores together: k-means in units of their spread within groups, with as many groups as are apart.

    It begins with many groups and joins the two that are least apart, until all pairs satisfy, by two standard errors,

        |m_a - m_b|^2 > 12 (v_a + v_b) / 2,    v: variances along the line between the centres m.

    The two halves of a uniform law have exactly 12 and those of a normal or an exponential one less, so these stay
    together; and sizes do not matter, so that rare values are groups as well. Along scores in which no groups are
    apart, the continuous ones, each group is cut into 4 of equally many rows. No group has fewer than 30 rows or 1 % of
    them (of 20,000 rows at random, which decide if there are more).

    Args:
        scores: (rows, scores), in the rotation of `bimodal_rotation`.

    Reference: K. M. Ashman, C. M. Bird, S. E. Zepf, Astron. J. 108 (1994), the distance in units of the spread.

    Example, three colours in two scores:
        >>> random = np.random.default_rng(0)
        >>> colour = random.integers(3, size=3000)
        >>> corners = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])
        >>> scores = corners[colour] + 0.2 * random.standard_normal((3000, 2))
        >>> float(np.mean(joint_groups(scores).of(scores) == colour))
        1.0
    """
    deciding = _deciding(scores)
    if not deciding.shape[1]:
        return ScoreGroups(np.eye(0), np.zeros((1, 0)), [], np.zeros((1, 0), int))
    smallest = max(SMALLEST_GROUP, SMALLEST_SHARE * len(deciding))
    units, centres = _centres_apart(deciding, smallest)
    inverse = np.linalg.inv(units)
    means, gaps = centres @ inverse, np.sqrt(APART * (inverse**2).sum(0))
    order = np.lexsort(means.T[::-1])
    means, centres = means[order], centres[order]
    continuous = np.ptp(means, axis=0) < gaps
    ordered = np.sort(means[:, ~continuous], axis=0).T
    starts = [own[1:][np.diff(own) > gap] for own, gap in zip(ordered, gaps[~continuous], strict=True)]
    columns = [np.searchsorted(own, mean, "right") for own, mean in zip(starts, means[:, ~continuous].T, strict=True)]
    values = np.array(columns, int).reshape(-1, len(means)).T
    cuts: list[tuple[int, list[np.ndarray]]] = []
    labels = ScoreGroups(units, centres, cuts, values).of(deciding)
    for score in np.flatnonzero(continuous):
        edges = [_quantile_edges(deciding[labels == group, score], smallest) for group in range(len(values))]
        cuts.append((int(score), edges))
        labels = _cut_groups(labels, deciding[:, score], edges)
        parts = [len(own) + 1 for own in edges]
        values = np.column_stack([values.repeat(parts, axis=0), np.concatenate([np.arange(own) for own in parts])])
    complete = len(np.unique(values, axis=0)) == len(values) == np.prod(values.max(0) + 1)
    return ScoreGroups(units, centres, cuts, values if complete else np.arange(len(values))[:, None])


def _deciding(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, float)
    if len(scores) <= DECIDING_ROWS:
        return scores
    # at random: rows may come in a periodic order
    return np.random.default_rng(0).choice(scores, DECIDING_ROWS, replace=False)


def _centres_apart(scores: np.ndarray, smallest: float) -> tuple[np.ndarray, np.ndarray]:
    """Units of the spread within groups, and in these the centres of the groups that are all apart."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    count = max(1, min(MOST_GROUPS, len(np.unique(scores, axis=0)), int(len(scores) / smallest)))
    identity = np.eye(scores.shape[1])
    least = NO_SPREAD * max(scores.var(), NO_SPREAD) * identity
    starts: str | np.ndarray = "k-means++"
    units, settled = identity, False
    while True:
        points = scores @ units
        with threadpool_limits(1):  # sums in one order, and no waiting for cores that others use
            fit = KMeans(count, init=starts, n_init=1, random_state=0).fit(points)
        counts = np.bincount(fit.labels_, minlength=count)
        apart = _log_distances(points, fit.labels_, fit.cluster_centers_, counts)
        apart[counts < smallest] -= 1e3  # these are joined first, each with the nearest
        one, other = np.unravel_index(np.argmin(apart), apart.shape)
        joined = apart[one, other] <= np.log(APART)
        if settled and not joined:
            return units, fit.cluster_centers_
        means = np.array([scores[fit.labels_ == group].mean(0) for group in range(count)])
        residuals = scores - means[fit.labels_]
        if joined:
            means[one] = np.average(means[[one, other]], axis=0, weights=counts[[one, other]])
            means, count = np.delete(means, other, axis=0), count - 1
        if means.shape == (2, 1):  # the best of all cuts, which k-means only comes near
            upper = scores[:, 0] > two_means(scores[:, 0]).threshold
            means = np.array([scores[~upper].mean(0), scores[upper].mean(0)])
        units = np.linalg.inv(np.linalg.cholesky(residuals.T @ residuals / len(scores) + least)).T
        starts, settled = means @ units, not joined


def _log_distances(points: np.ndarray, labels: np.ndarray, centres: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(groups, groups): logarithms of |m_a - m_b|^2 / mean variance along m_a - m_b, less two of their errors."""
    residuals = [points[labels == group] - centre for group, centre in enumerate(centres)]
    covariances = np.array([own.T @ own / len(own) for own in residuals])
    gaps = centres[:, None] - centres
    squares = (gaps**2).sum(-1) + np.eye(len(centres))
    spread = np.einsum("abi,aij,abj->ab", gaps, covariances, gaps) / squares + NO_SPREAD * squares
    within = (spread + spread.T) / 2
    # of normal laws: Var(mean) = v / n, Var(variance) = 2 v^2 / n
    of_means, of_variances = spread / counts[:, None], spread**2 / counts[:, None] / 2
    errors = 4 * (of_means + of_means.T) / squares + (of_variances + of_variances.T) / within**2
    return np.log(squares / within) - ERRORS * np.sqrt(errors) + np.diag(np.full(len(centres), np.inf))


def _quantile_edges(values: np.ndarray, smallest: float) -> np.ndarray:
    """Thresholds of equally many values, those that leave no group with too few."""
    edges: list[float] = []
    for edge in np.quantile(values, np.arange(1, CONTINUOUS_GROUPS) / CONTINUOUS_GROUPS):
        if np.bincount(np.searchsorted([*edges, edge], values, "right"), minlength=len(edges) + 2).min() >= smallest:
            edges.append(edge)
    return np.array(edges)


def _cut_groups(labels: np.ndarray, values: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """(rows,): the groups cut further, each by its own thresholds of the values."""
    first = np.cumsum([0, *(len(own) + 1 for own in edges)])
    found = first[labels]
    for group, own in enumerate(edges):
        found[labels == group] += np.searchsorted(own, values[labels == group], "right")
    return found


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
    scores = _deciding(scores)
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
