"""Principal components of embeddings, with the moments of each class in each environment in their coordinates."""

from typing import NamedTuple

import numpy as np

from holdfast.core.class_moments import (
    ClassMoments,
    ClassStatistics,
    class_statistics,
    collect_class_moments,
    pooled_covariance,
)
from holdfast.core.grouping import Grouping
from holdfast.core.validation import require

# Components with less than this share of the largest variance are rounding.
SMALLEST_VARIANCE = 1e-10


class Components(NamedTuple):
    """The leading principal components of features, each of variance 1 over all rows.

    Attributes:
        centre: (features,), the means of all rows.
        directions: (features, components): the coordinates of a row are (row - centre) @ directions.
        moments: of the coordinates; of a continuous target, one class whose first column is the target.
        continuous: whether the target is a number instead of a class.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> x = np.random.default_rng(0).standard_normal((500, 3)) * [3.0, 2.0, 0.1] + 5
        >>> found = principal_components(collect_class_moments(x, np.arange(500) % 2)).leading(2)
        >>> found.coordinates(x).std(0).round(3).tolist()
        [1.0, 1.0]
    """

    centre: np.ndarray
    directions: np.ndarray
    moments: ClassMoments
    continuous: bool

    def coordinates(self, features: np.ndarray) -> np.ndarray:
        """(rows, components)."""
        return (features - self.centre) @ self.directions

    def leading(self, count: int) -> "Components":
        """The first `count` of them, or all if there are fewer."""
        size = count + 1 + self.continuous
        moments = self.moments._replace(shift=self.moments.shift[: size - 1], sums=self.moments.sums[..., :size, :size])
        return self._replace(directions=self.directions[:, :count], moments=moments)


def principal_components(moments: ClassMoments, *, continuous: bool = False) -> Components:
    """The components of the variance over all rows, those that are more than rounding.

    Args:
        moments: of the features; for a continuous target, of (target, features) as a single class.
        continuous: whether the first column of `moments` is the target.

    Example, two columns that differ by rounding only are one component:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> x = np.random.default_rng(0).standard_normal((100, 1)) @ np.ones((1, 2))
        >>> principal_components(collect_class_moments(x, np.arange(100) % 2)).directions.shape
        (2, 1)
    """
    total = moments.sums.sum((0, 1))
    mean = total[0, 1:] / total[0, 0]
    covariance = total[1:, 1:] / total[0, 0] - np.outer(mean, mean)
    first = int(continuous)
    values, vectors = np.linalg.eigh(covariance[first:, first:])
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    unusable = (
        f"{len(values)} columns that are constant or not finite, such as those of a layer whose units are all zero"
    )
    require(values[0] > 0, "features must vary between the rows", unusable)
    count = int(np.sum(values > SMALLEST_VARIANCE * values[0]))
    # the largest entry of each direction is positive, so that signs do not depend on the library of linear algebra
    signs = np.sign(np.take_along_axis(vectors, np.argmax(np.abs(vectors), axis=0)[None], 0))[0]
    directions = (vectors * signs)[:, :count] / np.sqrt(values[:count])
    # from (1, target, features) - shift to (1, target, components), all about their means but the target
    change = np.zeros((1 + first + count, len(mean) + 1))
    change[0, 0] = 1.0
    change[1 : 1 + first, 1 : 1 + first] = 1.0
    change[1 + first :, 1 + first :] = directions.T
    change[1 + first :, 0] = -directions.T @ mean[first:]
    shift = np.concatenate([moments.shift[:first], np.zeros(count)])
    turned = ClassMoments(moments.labels, moments.classes, shift, change @ moments.sums @ change.T)
    return Components(moments.shift[first:] + mean[first:], directions, turned, continuous)


def embedding_moments(
    features: np.ndarray, targets: np.ndarray, grouping: Grouping, *, continuous: bool = False
) -> ClassMoments:
    """The moments of each class in each environment; with a continuous target, of (target, features) as one class.

    Example:
        >>> grouping = Grouping(np.array([0, 0, 1]), ["a", "b"])
        >>> embedding_moments(np.eye(3), np.arange(3.0), grouping, continuous=True).sums.shape
        (2, 1, 5, 5)
    """
    if not continuous:
        return collect_class_moments(features, targets, grouping)
    return collect_class_moments(np.column_stack([targets, features]), np.zeros(len(targets), int), grouping)


def component_statistics(components: Components) -> ClassStatistics:
    """Counts, means and covariances within classes; those of a continuous target are of two classes one unit apart.

    Of a continuous target y, in units of its standard deviation, the features of environment e are

        x = a_e + b_e y + noise,    Var(estimate of b_e) = S_e / (n_e v_e),    v_e = Var_e(y),

    which is the law of the difference between two classes of 2 n_e v_e rows each with the means -b_e / 2 and b_e / 2.
    So everything that compares differences between classes compares slopes as well.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> random = np.random.default_rng(0)
        >>> y = random.standard_normal(100_000)
        >>> x = 2 * y[:, None] + random.standard_normal((100_000, 1))
        >>> moments = collect_class_moments(np.column_stack([y, x]), np.zeros(len(y)))
        >>> found = component_statistics(principal_components(moments, continuous=True))
        >>> (np.diff(found.means[0], axis=0) / np.sqrt(found.within)).round(1).tolist()
        [[2.0]]
    """
    if not components.continuous:
        return class_statistics(components.moments)
    sums = components.moments.sums[:, 0]
    rows = sums[:, 0, 0]
    means = sums[:, 0, 1:] / rows[:, None]
    spread = sums[:, 1:, 1:] / rows[:, None, None] - means[:, :, None] * means[:, None, :]
    _, unit = target_units(components)
    variance, covariance = spread[:, 0, 0] / unit**2, spread[:, 0, 1:] / unit
    slopes = covariance / np.maximum(variance, 1e-300)[:, None]
    freedom = np.maximum(rows - 2, 1.0)
    residual = spread[:, 1:, 1:] - slopes[:, :, None] * slopes[:, None, :] * variance[:, None, None]
    residual *= (rows / freedom)[:, None, None]
    size = residual.shape[-1]
    within = pooled_covariance(np.tensordot(freedom, residual, 1), freedom.sum(), np.eye(size))
    counts = np.repeat(2 * (rows * variance)[:, None], 2, axis=1)
    return ClassStatistics(
        counts=counts,
        means=slopes[:, None] * np.array([-0.5, 0.5])[:, None],
        covariances=np.repeat(residual[:, None], 2, axis=1),
        total=np.eye(size),
        within=within,
        freedom=float(freedom.sum()),
        location=np.zeros(size),
        scale=np.ones(size),
        constant=np.zeros(size, bool),
    )


def target_units(components: Components) -> tuple[float, float]:
    """Mean and standard deviation of a continuous target over all rows.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> rows = np.column_stack([[1.0, 3.0, 5.0, 3.0], [0.0, 1.0, 1.0, 2.0]])
        >>> moments = collect_class_moments(rows, np.zeros(4))
        >>> mean, deviation = target_units(principal_components(moments, continuous=True))
        >>> round(mean, 6), round(deviation**2, 6)
        (3.0, 2.0)
    """
    total = components.moments.sums[:, 0].sum(0)
    mean, square = total[0, 1] / total[0, 0], total[1, 1] / total[0, 0]
    return float(components.moments.shift[0] + mean), float(np.sqrt(max(square - mean**2, 1e-300)))
