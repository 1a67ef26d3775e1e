"""In which directions of an embedding the differences between the classes vary between environments, and how surely."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from holdfast.core.class_moments import ClassMoments, ClassStatistics
from holdfast.core.validation import require
from holdfast.embeddings.components import Components, component_statistics, principal_components
from holdfast.estimators.search.class_means import (
    VaryingDirections,
    class_differences,
    differences_beyond,
    equal_shares,
    varying_directions,
)

# So many components are compared unless the rows are few: a rule that does not look at what differs between
# environments, so that the level of the tests is what it says. Fewer miss attributes that a network hardly uses, more
# make the directions less certain.
COMPONENTS = 20
# The smallest class of an environment has so many rows for each component, or fewer components are compared.
ROWS_PER_COMPONENT = 5
LEVEL = 0.01


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
