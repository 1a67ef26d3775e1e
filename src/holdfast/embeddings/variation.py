"""In which directions of an embedding the differences between the classes vary between environments, and how surely."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from holdfast.core.class_moments import (
    ClassMoments,
    ClassStatistics,
    class_statistics,
    collect_class_moments,
    pooled_covariance,
)
from holdfast.core.grouping import Grouping
from holdfast.core.validation import require
from holdfast.estimators.search.class_means import (
    VaryingDirections,
    class_differences,
    differences_beyond,
    equal_shares,
    varying_directions,
)

# Components with less than this share of the largest variance are rounding.
SMALLEST_VARIANCE = 1e-10
# So many components are compared unless the rows are few: a rule that does not look at what differs between
# environments, so that the level of the tests is what it says. Fewer miss attributes that a network hardly uses, more
# make the directions less certain.
COMPONENTS = 20
# The smallest class of an environment has so many rows for each component, or fewer components are compared.
ROWS_PER_COMPONENT = 5
LEVEL = 0.01


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


@dataclass(frozen=True, repr=False)
class Variation:
    """What varies between environments, with the tests that show it.

    Attributes:
        components: the coordinates that were compared.
        statistics: counts, means and covariances of the classes, in these coordinates.
        found: all directions, first those in which the differences vary.
        level: of the tests.
        rest_p_value: of the test that nothing separates the classes outside of these directions.
        label_shift_p_value: of the test that the shares of the classes, or the means of a continuous target, are the
            same in all environments.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 2)) + y[:, None] * np.array([[1.0, 1.0], [1.0, 2.0]])[environments.codes]
        >>> found = find_variation(collect_class_moments(x, y, environments))
        >>> found.count, abs(found.loadings[:, 0]).argmax().item()
        (1, 1)
    """

    components: Components
    statistics: ClassStatistics
    found: VaryingDirections
    level: float
    rest_p_value: float
    label_shift_p_value: float

    def __repr__(self) -> str:
        return f"Variation(count={self.count}, components={len(self.directions)}, level={self.level:g})"

    @property
    def count(self) -> int:
        """The number of directions that vary."""
        return self.found.varying

    @property
    def p_values(self) -> np.ndarray:
        """P-values of the tests that at most 0, 1, ... directions vary; a direction is found below the level."""
        return self.found.p_values

    @property
    def loadings(self) -> np.ndarray:
        """(features, count): the score of a row is (row - centre) @ loadings, of variance 1 within classes."""
        return self.components.directions @ self.directions[:, : self.count]

    @property
    def directions(self) -> np.ndarray:
        """(components, components), for coordinates of the components, first those that vary."""
        return self.found.directions / self.statistics.scale[:, None]

    @property
    def rest(self) -> np.ndarray:
        """(components, components - count): the coordinates that do not vary."""
        return self.directions[:, self.count :]

    @property
    def energy(self) -> np.ndarray:
        """(components,): along each direction, the mean square of what separates the classes, in units within them."""
        weights = self.statistics.counts.sum(0) / self.statistics.counts.sum()
        delta = class_differences(self.statistics).differences
        return weights @ (((delta - weights @ delta) @ self.found.directions) ** 2)

    @property
    def share(self) -> float:
        """Of what separates the classes, in units of the variance within them: how much lies in what varies."""
        return float(self.energy[: self.count].sum() / max(self.energy.sum(), 1e-300))

    @property
    def is_signal(self) -> bool:
        """Whether nothing is found that separates the classes beside what varies."""
        return self.count > 0 and self.rest_p_value >= self.level

    @property
    def unseen(self) -> bool:
        """Whether differences vary in as many directions as these environments can show."""
        return 0 < self.count == self.found.most < self.found.directions.shape[1]


def find_variation(
    moments: ClassMoments,
    *,
    components: int | None = None,
    level: float = LEVEL,
    continuous: bool = False,
) -> Variation:
    """Test in how many directions the differences between the classes vary between environments.

    In coordinates of variance 1 within classes, the means of the classes are m_ec = a_e + delta_c + what varies. The
    tests for 0, 1, ... varying directions stop at the first that passes, so that the probability of too many
    directions is at most the level, however many are tried (`estimators.search.class_means.varying_directions`).

    Args:
        moments: of each class in each environment; for a continuous target, of (target, features) as one class.
        components: how many principal components are compared; None: 20, fewer if an environment has few rows.
        level: probability of finding a direction too many.
        continuous: whether the first column of `moments` is a continuous target.

    Example, nothing varies:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 2)) + y[:, None] + environments.codes[:, None]
        >>> find_variation(collect_class_moments(x, y, environments)).count
        0
    """
    require(0 < level < 1, "level must be a number between 0 and 1", repr(level))
    everything = principal_components(moments, continuous=continuous)
    if components is None:
        smallest = float(moments.counts[moments.counts > 0].min())
        components = max(1, min(COMPONENTS, int(smallest / ROWS_PER_COMPONENT)))
    require(components >= 1, "components must be a whole number of at least 1", repr(components))
    return compare_differences(everything.leading(components), level)


def compare_differences(components: Components, level: float) -> Variation:
    """`find_variation` for components that are given.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> y, environments = np.arange(40) % 2, Grouping(np.arange(40) // 20, ["a", "b"])
        >>> x = np.random.default_rng(0).standard_normal((40, 3))
        >>> compare_differences(principal_components(collect_class_moments(x, y, environments)), 0.01).count
        0
    """
    statistics = component_statistics(components)
    found = varying_directions(statistics, level)
    return Variation(
        components,
        statistics,
        found,
        level,
        rest_p_value=differences_beyond(statistics, found.varying),
        label_shift_p_value=_label_shift(components.moments, components.continuous),
    )


def _label_shift(moments: ClassMoments, continuous: bool) -> float:
    """Pearson's test of equal shares, or Cochran's of equal means, in all environments."""
    if not continuous:
        return equal_shares(moments.counts)
    sums = moments.sums[:, 0]
    rows, means = sums[:, 0, 0], sums[:, 0, 1] / sums[:, 0, 0]
    variances = (sums[:, 1, 1] / rows - means**2) / np.maximum(rows - 1, 1)
    weights = 1 / np.maximum(variances, 1e-300)
    statistic = float(weights @ (means - weights @ means / weights.sum()) ** 2)
    return float(chi2.sf(statistic, len(rows) - 1)) if len(rows) > 1 else 1.0
