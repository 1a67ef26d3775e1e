"""The moments of each class in each environment, all that a linear discriminant needs, added up chunk by chunk."""

from typing import NamedTuple

import numpy as np

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.moments import joined_sums, summed_products

# A class of an environment with few rows says little about its own covariance: the pooled one counts as so many rows.
PRIOR_ROWS = 10.0
# Added to variances in standard units, so that matrices of dependent features have an inverse.
ROUNDING = 1e-10
# A feature is constant if it varies by less than this share of its mean.
RESOLUTION = 16 * np.finfo(float).eps


class ClassMoments(NamedTuple):
    """Sums over the rows of each class in each environment; those of chunks add up, however a table is cut.

    With r = (1, x - shift) for each row, sums[e, c] = sum over the rows of class c in environment e of weight * r r^T.

    Attributes:
        labels: the label of each environment, in the order of `sums`.
        classes: the label of each class, in the order of `sums`.
        shift: (features,), subtracted before squaring, so that large means cost no digits.
        sums: (environments, classes, features + 1, features + 1).

    Example:
        >>> x, y = np.array([[1.0], [2.0], [5.0]]), np.array(["no", "no", "yes"])
        >>> moments = collect_class_moments(x, y)
        >>> moments.classes, moments.counts.tolist()
        (('no', 'yes'), [[2.0, 1.0]])
    """

    labels: tuple
    classes: tuple
    shift: np.ndarray
    sums: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """(environments, classes), the total weight of the rows."""
        return self.sums[:, :, 0, 0]

    @property
    def unit(self) -> np.ndarray:
        """(features,): one; columns are summed in their own units."""
        return np.ones(len(self.shift))

    @property
    def features(self) -> int:
        """Their number."""
        return len(self.shift)


def collect_class_moments(
    x: np.ndarray, y: np.ndarray, grouping: Grouping | None = None, weights: np.ndarray | None = None
) -> ClassMoments:
    """The moments of one chunk.

    Args:
        x: (rows, features).
        y: (rows,), labels of the classes.
        grouping: environments of the rows; None: a single one.
        weights: how many rows each row stands for; None: one.

    Example:
        >>> moments = collect_class_moments(np.array([[1.0], [3.0]]), np.array([0, 1]), group_rows(["a", "b"], 2))
        >>> moments.counts.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    grouping = grouping or group_rows(None, len(x))
    classes, codes = np.unique(y, return_inverse=True)
    cells = grouping.codes * len(classes) + codes
    shift = np.asarray(x[:1000], float).mean(0)  # roughly the means
    sums = summed_products([x], shift, cells, grouping.count * len(classes), weights=weights)
    shape = (grouping.count, len(classes), *sums.shape[1:])
    return ClassMoments(tuple(grouping.labels), tuple(classes.tolist()), shift, sums.reshape(shape))


def add_class_moments(total: ClassMoments, chunk: ClassMoments) -> ClassMoments:
    """The moments of two chunks together; environments and classes are matched by their labels.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x, y = random.standard_normal((50, 3)), random.integers(2, size=50)
        >>> parts = add_class_moments(collect_class_moments(x[:20], y[:20]), collect_class_moments(x[20:], y[20:]))
        >>> whole = class_statistics(collect_class_moments(x, y))
        >>> bool(np.allclose(whole.covariances, class_statistics(parts).covariances))
        True
    """
    labels = list(dict.fromkeys([*total.labels, *chunk.labels]))
    classes = sorted(dict.fromkeys([*total.classes, *chunk.classes]))
    cells = [
        np.ix_([labels.index(one) for one in moments.labels], [classes.index(one) for one in moments.classes])
        for moments in (total, chunk)
    ]
    shift, _, sums = joined_sums((total, chunk), cells, (len(labels), len(classes)))
    return ClassMoments(tuple(labels), tuple(classes), shift, sums)


class ClassStatistics(NamedTuple):
    """Counts, means and covariances of each class in each environment, of features in standard units.

    Attributes:
        counts: (environments, classes), rows.
        means: (environments, classes, features); 0 where there are no rows.
        covariances: (environments, classes, features, features), unbiased, and with few rows drawn towards the pooled
            one.
        total: (features, features), the covariance of all rows, which in these units is the correlation.
        within: (features, features), W, the pooled covariance within classes and environments, with `total` counted as
            one observation more, so that it has an inverse where features can separate the classes.
        freedom: degrees of freedom of `within`: rows less the means that are subtracted from them.
        location: (features,), means of all rows.
        scale: (features,), standard deviations of all rows; 1 for a constant feature.
        constant: (features,), which features are constant.
    """

    counts: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    total: np.ndarray
    within: np.ndarray
    freedom: float
    location: np.ndarray
    scale: np.ndarray
    constant: np.ndarray


def class_statistics(moments: ClassMoments) -> ClassStatistics:
    """Counts, means and covariances, of features in units of their pooled standard deviations.

    Example:
        >>> found = class_statistics(collect_class_moments(np.array([[0.0], [2.0], [4.0]]), np.array([0, 0, 1])))
        >>> found.location.tolist(), found.means.round(3).ravel().tolist()
        ([2.0], [-0.612, 1.225])
    """
    counts = moments.counts
    safe = np.maximum(counts, 1e-300)[..., None]
    means = moments.sums[..., 0, 1:] / safe
    second = moments.sums[..., 1:, 1:] / safe[..., None]
    total = moments.sums.sum((0, 1))
    mean = total[0, 1:] / total[0, 0]
    variance = np.diag(total)[1:] / total[0, 0] - mean**2
    # a deviation of a few units in the last place of the mean is rounding
    constant = variance <= (RESOLUTION * (moments.shift + mean)) ** 2
    scale = np.sqrt(np.where(constant, 1.0, variance))
    used = (counts > 0)[..., None] & ~constant
    units = np.where(constant, 0.0, 1 / scale)
    spread = (second - means[..., :, None] * means[..., None, :]) * (units[:, None] * units)
    spread *= np.where(counts > 1, counts / np.maximum(counts - 1, 1e-300), 0.0)[..., None, None]  # unbiased
    means = np.where(used, (means - mean) / scale, 0.0)
    correlation = (total[1:, 1:] / total[0, 0] - np.outer(mean, mean)) * (units[:, None] * units)
    freedom = np.maximum(counts - 1, 0)
    pooled = pooled_covariance(np.tensordot(freedom, spread, 2), freedom.sum(), correlation)
    rows = freedom[..., None, None]
    shrunk = (rows * spread + PRIOR_ROWS * pooled) / (rows + PRIOR_ROWS)
    return ClassStatistics(
        counts, means, shrunk, correlation, pooled, float(freedom.sum()), moments.shift + mean, scale, constant
    )


def pooled_covariance(scatter: np.ndarray, freedom: float, total: np.ndarray) -> np.ndarray:
    """The covariance of a scatter matrix, with one observation more of the total covariance.

    Args:
        scatter: (features, features), sum of the squares and products of deviations.
        freedom: its degrees of freedom.
        total: (features, features), the covariance of all rows.
    """
    return (scatter + total) / (freedom + 1) + ROUNDING * np.eye(len(total))
