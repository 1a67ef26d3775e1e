"""The invariant head of an embedding in closed form: the discriminant of what does not vary between environments."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from holdfast.core.class_moments import ClassMoments
from holdfast.core.validation import require
from holdfast.embeddings.variation import (
    LEVEL,
    ROWS_PER_COMPONENT,
    Variation,
    compare_differences,
    principal_components,
    target_units,
)
from holdfast.estimators.search.class_fits import class_sums, linear_discriminant
from holdfast.estimators.search.class_means import NEGLIGIBLE, class_differences

# The numbers of components that are tried, as far as the features have them: steps of about one half.
CANDIDATES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# An angle of 84 degrees: a direction of which nothing is known.
LARGEST_SINE = 0.99


class HeadQuality(NamedTuple):
    """What the sampling error of the directions leaves of a head, from the training environments alone.

    In coordinates of variance 1 within classes, the squared differences between the classes add up to `signal` outside
    of the directions that vary. Those directions are known up to an angle of sin^2 = (p - r) / s^2, with p components,
    r directions and the strength s in units of its sampling error: of what varies, cos^2 is seen and removed, and
    sin^2, the `leak`, stays in the head. If in a new environment what varies says the opposite of what it says in
    training, as strongly,

        margin = (signal - leak) / sqrt(signal + leak + noise) * sqrt(precision)

    is the distance between the classes in standard deviations of the head's output.

    Attributes:
        components: p.
        varying: r.
        signal: what separates the classes equally everywhere, squared, without its sampling error.
        leak: what is left of the varying directions, squared.
        noise: sampling error in the means of the classes, squared.
        precision: (n - p - 1) / n with n degrees of freedom, what the sampling error of the covariance leaves.

    Reference: Š. Raudys, IEEE Trans. Pattern Anal. Mach. Intell. 19 (1997), the error of discriminants with an
        estimated covariance, whose squared margin is smaller by the factor 1 - p / n.
    """

    components: int
    varying: int
    signal: float
    leak: float
    noise: float
    precision: float

    @property
    def margin(self) -> float:
        """Standard deviations between the classes where what varies is reversed."""
        return (self.signal - self.leak) * np.sqrt(self.precision / max(self.signal + self.leak + self.noise, 1e-300))

    @property
    def accuracy(self) -> float:
        """Of two classes of equal shares there, if features are normal within classes: Phi(margin / 2)."""
        return float(norm.cdf(self.margin / 2))


class LinearHead(NamedTuple):
    """Linear scores of the classes, or a linear prediction of a number, for features of the embedding itself.

    Attributes:
        coefficients: (outputs, features).
        intercepts: (outputs,).
        classes: of the outputs; () for a continuous target.
        variation: the directions that were removed, with their tests.
        quality: of the number of components that was chosen.
        tried: of each number that was tried.

    Example:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(8000) % 2, Grouping(np.arange(8000) // 4000, ["a", "b"])
        >>> x = random.standard_normal((8000, 2)) + y[:, None] * np.array([[1.0, 1.0], [1.0, 2.0]])[environments.codes]
        >>> head = invariant_head_of(collect_class_moments(x, y, environments))
        >>> bool(abs(np.diff(head.coefficients, axis=0).ravel() - [1.0, 0.0]).max() < 0.1)
        True
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: tuple
    variation: Variation
    quality: HeadQuality
    tried: tuple[HeadQuality, ...]

    def __repr__(self) -> str:
        outputs, features = self.coefficients.shape
        removed, components = self.quality.varying, self.quality.components
        return f"LinearHead(features={features}, outputs={outputs}, removed={removed}, components={components})"

    @property
    def sentences(self) -> list[str]:
        """How much was removed, and how well these environments can tell it from the rest."""
        quality, share = self.quality, self.variation.share
        if self.variation.found.most == 0:
            return ["Nothing can be compared: no two environments share two classes. Nothing was removed."]
        if quality.varying == 0:
            return [
                f"Nothing varies in {quality.components} components ({len(self.variation.components.moments.labels)} "
                "environments): this is the linear discriminant of all of them."
            ]
        found = [
            f"Removed: {quality.varying} of {quality.components} directions, with {share:.0%} of what separates the "
            f"classes. If they said the opposite, about {quality.accuracy:.0%} of the rows would be right."
        ]
        if quality.margin <= 0:
            found.append(
                "There are too few rows, or too similar environments, to tell what varies from the rest: too much of "
                "it stays in this head. More rows help, or balancing."
            )
        return found


def invariant_head_of(
    moments: ClassMoments,
    *,
    components: int | Sequence[int] = CANDIDATES,
    level: float = LEVEL,
    continuous: bool = False,
) -> LinearHead:
    """The linear discriminant of the directions in which the classes differ equally in all environments.

    Principal components, whitened by the covariance W within classes; the r directions u in which the differences
    vary are projected out; with delta_c the common difference, P = I - u u^T and shares of the classes,

        score_c = delta_c^T W^(-1/2) P W^(-1/2) (x - delta_c / 2) + log(share_c)

    For a continuous target, x = a_e + b y + noise within environments, and the prediction is that of y given x for
    a normal y.

    Args:
        moments: of each class in each environment; for a continuous target, of (target, features) as one class.
        components: how many; several: of those with which most directions are found to vary, the number of the largest
            `HeadQuality.margin`.
        level: of the tests that say how many directions vary.
        continuous: whether the first column of `moments` is a continuous target.

    Example, a number that the second column follows with a sign that changes:
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = random.standard_normal(8000), Grouping(np.arange(8000) // 4000, ["a", "b"])
        >>> strengths = np.array([[1.0, 2.0], [1.0, -1.0]])[environments.codes]
        >>> x = y[:, None] * strengths + random.standard_normal((8000, 2))
        >>> moments = collect_class_moments(np.column_stack([y, x]), np.zeros(8000), environments)
        >>> bool(abs(invariant_head_of(moments, continuous=True).coefficients[0] - [0.5, 0.0]).max() < 0.05)
        True
    """
    _check_rows(moments, continuous)
    everything = principal_components(moments, continuous=continuous)
    most = everything.directions.shape[1]
    wanted = [components] if isinstance(components, int) else list(components)
    require(min(wanted, default=0) >= 1, "components must be whole numbers of at least 1", repr(components))
    if len(wanted) > 1:  # margins of covariances from few rows cannot be compared
        most = min(most, max(1, int(moments.counts[moments.counts > 0].min() / ROWS_PER_COMPONENT)))
    found = [compare_differences(everything.leading(count), level) for count in sorted({min(k, most) for k in wanted})]
    tried = [head_quality(each) for each in found]
    # a number with which less is found to vary would win by keeping the shortcut
    chosen, quality = max(zip(found, tried, strict=True), key=lambda pair: (pair[1].varying, pair[1].margin))
    fit = _number_head if continuous else _class_head
    coefficients, intercepts = fit(chosen)
    # from coordinates of the components to features
    coefficients = coefficients @ chosen.components.directions.T
    intercepts = intercepts - coefficients @ chosen.components.centre
    classes = () if continuous else moments.classes
    return LinearHead(coefficients, intercepts, classes, chosen, quality, tuple(tried))


def _check_rows(moments: ClassMoments, continuous: bool) -> None:
    """Raise an error if there is nothing to separate, or no covariance within classes to measure it by."""
    classes = int((moments.counts.sum(0) > 0).sum())
    require(continuous or classes > 1, "targets must be of at least 2 classes", classes)
    means = int((moments.counts > 0).sum()) * (1 + continuous)  # and slopes
    rows, least = int(moments.counts.sum()), means + ROWS_PER_COMPONENT
    estimated = f"{means} means that are estimated in {len(moments.labels)} environments"
    require(rows >= least, f"rows must be at least {least}, {ROWS_PER_COMPONENT} more than the {estimated}", rows)


def _class_head(variation: Variation) -> tuple[np.ndarray, np.ndarray]:
    statistics = variation.statistics
    scores = linear_discriminant(statistics, variation.found.directions[:, variation.count :])
    coefficients = scores.coefficients / statistics.scale
    return coefficients, scores.intercept - coefficients @ statistics.location


def _number_head(variation: Variation) -> tuple[np.ndarray, np.ndarray]:
    """Y given x, for x = a + b y + noise in the coordinates that are left, where the noise has variance 1."""
    statistics, components = variation.statistics, variation.components
    mean, deviation = target_units(components)
    slope = np.diff(class_differences(statistics).differences, axis=0)[0] @ variation.rest
    sums = components.moments.sums[:, 0]
    within = float(statistics.counts[:, 0].sum() / 2 / sums[:, 0, 0].sum())  # variance of y within environments
    weights = within * slope / (1 + within * slope @ slope)
    return deviation * (variation.rest @ weights)[None], np.array([mean])


def head_quality(variation: Variation) -> HeadQuality:
    """Signal, leak and noise of the head that leaves out what varies; `HeadQuality` has the equations."""
    statistics, found = variation.statistics, variation.found
    counts, size, rank = statistics.counts, len(variation.directions), variation.count
    weights = counts.sum(0) / counts.sum()
    # distances in units of an estimated covariance are too large, by this factor on average
    freedom = max(statistics.freedom, 1.0)
    precision = max(freedom - size - 1, 1.0) / freedom
    # squared distances from the mean of the classes; four times that between two classes of equal shares is d^2
    energy = 4 * precision * variation.energy
    sines = np.clip((size - rank) / np.maximum(found.strengths[:rank] ** 2, 1e-300), 0.0, LARGEST_SINE)
    # what is seen along the estimated direction is cos^2 of what varies, and sin^2 of it stays in the head
    leak = float(energy[:rank] @ (sines / (1 - sines)))
    errors = np.linalg.pinv(class_sums(statistics).joint, rcond=NEGLIGIBLE, hermitian=True)
    noise = float(4 * (size - rank) * (weights @ np.diag(errors) - weights @ errors @ weights))
    signal = max(float(energy[rank:].sum()) - noise - leak, 0.0)
    return HeadQuality(size, rank, signal, leak, noise, precision)
