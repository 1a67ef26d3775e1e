"""Do the differences between the means of the classes stay the same in all environments?

If the features given the class are what stays (labels are noisy, or classes are more frequent in one environment than
in another), the mean of class c in environment e is

    m_ec = a_e + delta_c,

an additive two-way layout: what differs between classes, delta, does not depend on the environment. An interaction of
class and environment is what changes. It is tested feature by feature, or direction by direction if the features may be
a rotation of what is invariant and what is not. With two classes this compares d_e = m_e1 - m_e0 between environments.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, chi2_contingency
from scipy.stats import f as f_distribution

from holdfast.core.class_moments import PRIOR_ROWS, ClassStatistics

# Eigenvalues below this share of the largest are zero, up to rounding.
NEGLIGIBLE = 1e-10


def equal_shares(counts: np.ndarray) -> float:
    """The p-value of Pearson's test that the classes have the same shares in all environments.

    Args:
        counts: (environments, classes), rows.

    Example:
        >>> [round(equal_shares(np.array(counts)), 3) for counts in ([[10, 20], [100, 200]], [[10, 20], [200, 100]])]
        [1.0, 0.0]
    """
    return float(chi2_contingency(counts, correction=False).pvalue)


def widest_share(counts: np.ndarray) -> tuple[int, float, float]:
    """The class whose share differs most between environments (of two the second), its lowest and highest share.

    Example:
        >>> widest_share(np.array([[10, 30], [30, 10]]))
        (1, 0.25, 0.75)
    """
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    widest = counts.shape[1] - 1 - int(np.argmax(np.ptp(shares, axis=0)[::-1]))
    return widest, float(shares[:, widest].min()), float(shares[:, widest].max())


class ClassDifferences(NamedTuple):
    """The additive fit m_ec = a_e + delta_c of the means of the classes.

    Attributes:
        differences: (classes, features), delta, of mean zero over the classes.
        residuals: (environments, classes, features), m_ec - a_e - delta_c; 0 where there are no rows.
        rank: the number of differences that are measured: classes - 1, unless some classes never meet in an
            environment.
    """

    differences: np.ndarray
    residuals: np.ndarray
    rank: int


def class_differences(statistics: ClassStatistics, weights: np.ndarray | None = None) -> ClassDifferences:
    """Weighted least squares of the additive layout.

    Args:
        statistics: n and m.
        weights: (environments, classes, features), of the means; None: each counts by its rows.

    Example, class 1 lies two standard deviations above class 0, whatever the environment:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> from holdfast.core.grouping import group_rows
        >>> x, y = np.array([[0.0], [2.0], [5.0], [7.0]]), np.array([0, 1, 0, 1])
        >>> found = class_statistics(collect_class_moments(x, y, group_rows(["a", "a", "b", "b"], 4)))
        >>> (class_differences(found).differences * found.scale).round(6).tolist()
        [[-1.0], [1.0]]
    """
    means = statistics.means
    weights = np.broadcast_to(statistics.counts[..., None], means.shape) if weights is None else weights
    totals = np.maximum(weights.sum(1, keepdims=True), 1e-300)
    shares = weights / totals
    # the normal equations of delta, once the effects a_e of the environments are eliminated
    joint = -np.einsum("ecf,edf->fcd", weights, shares)
    classes = np.arange(weights.shape[1])
    joint[:, classes, classes] += weights.sum(0).T
    centred = means - (shares * means).sum(1, keepdims=True)
    right = (weights * centred).sum(0)
    inverse = np.linalg.pinv(joint, rcond=NEGLIGIBLE, hermitian=True)
    delta = np.einsum("fcd,df->cf", inverse, right)
    delta -= delta.mean(0)
    fitted = delta - (shares * delta).sum(1, keepdims=True)
    values = np.linalg.eigvalsh(joint[0])
    rank = int(np.sum(values > NEGLIGIBLE * max(values[-1], 1e-300)))
    return ClassDifferences(delta, np.where(weights > 0, centred - fitted, 0.0), rank)


class DifferenceTests(NamedTuple):
    """Tests of equal differences, one for each feature.

    Attributes:
        statistic: (features,), chi-square variables with `degrees` degrees of freedom where differences are equal.
        degrees: degrees of freedom, (environments - 1) (classes - 1) if every class is in every environment.
        p_values: (features,).
    """

    statistic: np.ndarray
    degrees: int
    p_values: np.ndarray


def difference_tests(statistics: ClassStatistics, tolerance: float = 0.0) -> DifferenceTests:
    """Do the differences between the classes vary, feature by feature?

        statistic_j = min over a, delta of sum_ec (m_ecj - a_e - delta_c)^2 / v_ecj,    v_ecj = S_ecjj / n_ec

    With two classes it is sum_e (d_e - d)^2 / (v_e0 + v_e1) at the mean d with inverse variances as weights.

    Args:
        statistics: n, m and S.
        tolerance: standard deviation of a difference over environments, as a share of it, that is too small to matter.

    Reference: W. G. Cochran, Biometrics 10 (1954), the test of homogeneity.

    Example, a feature whose difference is 1 in one environment and 2 in the other:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 2)) + y[:, None] * np.array([[1.0, 1.0], [1.0, 2.0]])[environments.codes]
        >>> found = difference_tests(class_statistics(collect_class_moments(x, y, environments)))
        >>> (found.p_values < 0.001).tolist()
        [False, True]
    """
    variances = np.einsum("ecff->ecf", _tolerant(statistics, tolerance))
    counts = statistics.counts[..., None]
    # the inverse of a variance that is estimated from few rows is too large, on average by this share of it
    excess = 2 * np.maximum(counts - 1, 0) / (np.maximum(counts - 1, 0) + PRIOR_ROWS) ** 2
    # a feature that does not move within a class has no scale of its own; rounding is its sampling error
    weights = counts * (1 - excess) / np.maximum(variances, 1e-20)
    degrees = _contrasts(statistics) - class_differences(statistics).rank
    statistic = (weights * class_differences(statistics, weights).residuals ** 2).sum((0, 1))
    p_values = chi2.sf(statistic, degrees) if degrees > 0 else np.ones(len(statistic))
    return DifferenceTests(statistic, degrees, np.where(statistics.constant, 1.0, p_values))


def _tolerant(statistics: ClassStatistics, tolerance: float) -> np.ndarray:
    """Covariances of single rows, with what is tolerated in the means counted as sampling error."""
    if tolerance == 0:
        return statistics.covariances
    delta = class_differences(statistics).differences
    # with two classes, delta is half their difference: twice the variance of each mean is that of the difference
    allowed = 2 * tolerance**2 * delta[:, :, None] * delta[:, None, :]
    return statistics.covariances + statistics.counts[..., None, None] * allowed


class VaryingDirections(NamedTuple):
    """Directions, within-class covariance made the identity, in which the differences between the classes vary.

    Attributes:
        directions: (features, features), the columns are coordinates of features in standard units, uncorrelated and
            of variance 1 within classes; first those in which differences vary most.
        varying: the number of directions whose differences vary beyond sampling error.
        most: the number that these environments can show at all, min((environments - 1) (classes - 1), features).
        p_values: (varying + 1,) or (most,), of the tests that at most 0, 1, ... directions vary.
        strengths: (most,), s_1, s_2, ... of `varying_directions`: how far the differences vary along each direction,
            in units in which their sampling error is 1.
    """

    directions: np.ndarray
    varying: int
    most: int
    p_values: np.ndarray
    strengths: np.ndarray


def varying_directions(
    statistics: ClassStatistics, significance: float = 0.001, tolerance: float = 0.0
) -> VaryingDirections:
    """How many directions vary, by the rank of the interactions of class and environment, and which.

    R, with the rows sqrt(n_ec) (m_ec - a_e - delta_c) W^(-1/2), has singular values s_1 >= s_2 >= ... If r directions
    vary, far beyond sampling error, and all covariances within classes are equal to W,

        sum over i > r of s_i^2  ~  chi-square with (D - r) (p - r) degrees of freedom,    D = (E - 1) (K - 1)

    for E environments, K classes and p features; if they vary less, the sum is smaller. With unequal covariances S_ec
    the sum is a quadratic form of normal variables whose covariance is Omega = sum_ec (a_ec a_ec^T) x (B^T S_ec B),
    with the left and right singular vectors of the values left out. It has the mean tr Omega and the variance
    2 tr Omega^2, and is compared with the multiple of a chi-square variable that has the same, divided by another one
    for the sampling error of W: an F variable. With r = 0, D = 1 and equal covariances this is Hotelling's test. The
    tests for r = 0, 1, ... stop at the first that passes.

    Args:
        statistics: n_ec, m_ec, S_ec and W.
        significance: level of each test.
        tolerance: as in `difference_tests`.

    Reference: T. W. Anderson, Ann. Math. Statist. 22 (1951), for the rank; G. E. P. Box, Ann. Math. Statist. 25 (1954),
        for quadratic forms; J. J. McKeon, Biometrika 61 (1974), for the F variable.

    Example, the difference varies along (1, 1):
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(6000) % 2, Grouping(np.arange(6000) // 2000, ["a", "b", "c"])
        >>> x = random.standard_normal((6000, 2)) + (y * np.array([1.0, 2.0, 3.0])[environments.codes])[:, None]
        >>> varying_directions(class_statistics(collect_class_moments(x, y, environments))).varying
        1
    """
    fit = class_differences(statistics)
    spectrum = _spectrum(statistics, fit.residuals, _tolerant(statistics, tolerance))
    most = min(_contrasts(statistics) - fit.rank, len(spectrum.whitening))
    projection = _interactions(statistics.counts, statistics.counts > 0)
    found: list[float] = []
    while len(found) < most and (not found or found[-1] < significance):
        found.append(spectrum.beyond(len(found), projection, statistics.freedom))
    varying = int(np.sum(np.array(found) < significance))
    return VaryingDirections(spectrum.whitening, varying, most, np.array(found), spectrum.values[:most])


class _Spectrum(NamedTuple):
    """Singular values and vectors of means times the roots of their counts, and the covariances of their rotation."""

    left: np.ndarray
    values: np.ndarray
    whitening: np.ndarray
    spreads: np.ndarray

    def beyond(self, rank: int, projection: np.ndarray, freedom: float) -> float:
        """The p-value of the singular values beyond the first `rank`, if there are only so many directions."""
        # over the left singular vectors of the values that are left out
        overlap = projection - self.left[:, :rank] @ self.left[:, :rank].T
        statistic = float(np.sum(self.values[rank:] ** 2))
        return quadratic_form_p_value(statistic, overlap, self.spreads[:, rank:, rank:], freedom)


def _spectrum(statistics: ClassStatistics, means: np.ndarray, covariances: np.ndarray) -> _Spectrum:
    present = statistics.counts > 0
    scales, axes = np.linalg.eigh(statistics.within)
    root = axes / np.sqrt(scales) @ axes.T
    rows = (np.sqrt(statistics.counts)[..., None] * means)[present] @ root
    left, values, right = np.linalg.svd(rows, full_matrices=True)
    whitening = root @ right.T
    return _Spectrum(left, values, whitening, whitening.T @ covariances[present] @ whitening)


def _contrasts(statistics: ClassStatistics) -> int:
    """How many differences between classes the environments measure, all together."""
    return int(np.maximum((statistics.counts > 0).sum(1) - 1, 0).sum())


def quadratic_form_p_value(statistic: float, projection: np.ndarray, spreads: np.ndarray, freedom: float) -> float:
    """The p-value of sum_ij A_ij z_i^T z_j for independent normal z_i with mean 0 and the covariances S_i.

    The sum has the mean sum_i A_ii tr S_i and the variance 2 sum_ij A_ij^2 tr(S_i S_j), like a multiple of a chi-square
    variable; the coordinates were whitened by a covariance with its own sampling error, which makes squares larger and
    is another one in the denominator.

    Args:
        statistic: the sum.
        projection: (observations, observations), A.
        spreads: (observations, coordinates, coordinates), S.
        freedom: degrees of freedom of the covariance that the coordinates were whitened by.

    Reference: G. E. P. Box, Ann. Math. Statist. 25 (1954); J. J. McKeon, Biometrika 61 (1974).

    Example, the square of one normal variable:
        >>> round(quadratic_form_p_value(1.96**2, np.eye(1), np.ones((1, 1, 1)), 1e9), 3)
        0.05
    """
    inner = spreads.reshape(len(spreads), -1)
    mean = float(np.diag(projection) @ np.trace(spreads, axis1=1, axis2=2))
    variance = float(np.sum(projection**2 * (inner @ inner.T)))
    if variance <= 0:
        return 1.0
    coordinates = spreads.shape[1]
    # whitening by an estimated covariance makes squares too large, on average by the inverse of this
    shrinkage = max(freedom - coordinates - 1, 1.0) / max(freedom, 1.0)
    below = _denominator(float(np.trace(projection)), coordinates, freedom)
    return float(f_distribution.sf(statistic * shrinkage / mean * below / (below - 2), mean**2 / variance, below))


def _denominator(contrasts: float, coordinates: int, freedom: float) -> float:
    """McKeon's degrees of freedom of the denominator of Hotelling's trace; with one contrast exact."""
    if freedom <= coordinates + 3:
        return 4.0  # the limit: so few rows have a variance of the trace that is not finite
    ratio = (freedom + contrasts - coordinates - 1) * (freedom - 1)
    ratio /= (freedom - coordinates - 3) * (freedom - coordinates)
    return 4 + (coordinates * contrasts + 2) / (ratio - 1)


def differences_beyond(statistics: ClassStatistics, rank: int) -> float:
    """The p-value of the test that classes differ in `rank` directions only, however strongly in each.

    With as many directions as vary, this asks whether anything else separates the classes: if not, the direction that
    varies is the signal itself, which is stronger in one environment than in another. The test is the one of
    `varying_directions`, of the differences between classes instead of their interactions with the environment.

    Args:
        statistics: counts, means, covariances and W.
        rank: the number of directions.

    Example, a difference that is twice as large in the second environment, and beside it one that stays:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 2)) + y[:, None] * np.array([[1.0, 0.0], [2.0, 0.0]])[environments.codes]
        >>> beside = x + 0.3 * y[:, None] * np.array([0.0, 1.0])
        >>> found = [class_statistics(collect_class_moments(each, y, environments)) for each in (x, beside)]
        >>> [differences_beyond(each, 1) < 0.001 for each in found]
        [False, True]
    """
    counts, present = statistics.counts, statistics.counts > 0
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    centred = statistics.means - np.einsum("ec,ecf->ef", shares, statistics.means)[:, None]
    if rank >= min(_contrasts(statistics), len(statistics.within)):
        return 1.0
    projection = np.eye(int(present.sum())) - _environment_effects(counts, present)
    return _spectrum(statistics, centred, statistics.covariances).beyond(rank, projection, statistics.freedom)


def _interactions(counts: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(cells, cells): the projection on what an additive layout leaves, for means times the roots of their counts."""
    effects, roots = _environment_effects(counts, present), np.sqrt(counts[present])
    design = roots[:, None] * (np.nonzero(present)[1][:, None] == np.arange(counts.shape[1]))
    vectors, values, _ = np.linalg.svd(design - effects @ design, full_matrices=False)
    base = vectors[:, values > NEGLIGIBLE * max(np.sqrt(counts.max()), 1e-300)]
    return np.eye(len(roots)) - effects - base @ base.T


def _environment_effects(counts: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(cells, cells): the projection on effects of environments, for means times the roots of their counts."""
    environments, roots = np.nonzero(present)[0], np.sqrt(counts[present])
    same = environments[:, None] == environments
    return np.where(same, roots[:, None] * roots, 0.0) / counts.sum(1)[environments]
