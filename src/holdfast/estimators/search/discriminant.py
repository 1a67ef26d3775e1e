"""The linear discriminant of several classes, from counts, means and covariances."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, qmc

from holdfast.core.class_moments import ClassStatistics, pooled_covariance
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.class_means import NEGLIGIBLE

# Points of the normal law in `expected_log_loss`; with 256, the error is far below the sampling error of a table.
POINTS = 256
# Of the features that add nothing, this share is left out at once.
REMOVED_SHARE = 0.1


class ClassSums(NamedTuple):
    """What the centres of the classes depend on; those of environments add up.

    Attributes:
        counts: (classes,), rows.
        values: (classes, features), sums over the rows.
        joint: (classes, classes), the matrix of the normal equations of the differences, levels eliminated.
        right: (classes, features), their right side.
    """

    counts: np.ndarray
    values: np.ndarray
    joint: np.ndarray
    right: np.ndarray


def class_sums(statistics: ClassStatistics, environment: int | None = None) -> ClassSums:
    """Those of all environments, or of one."""
    own = slice(None) if environment is None else slice(environment, environment + 1)
    counts, means = statistics.counts[own], statistics.means[own]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    joint = np.diag(counts.sum(0)) - counts.T @ shares
    centred = means - np.einsum("ec,ecf->ef", shares, means)[:, None]
    return ClassSums(
        counts.sum(0), np.einsum("ec,ecf->cf", counts, means), joint, np.einsum("ec,ecf->cf", counts, centred)
    )


def linear_discriminant(statistics: ClassStatistics, directions: np.ndarray | None = None) -> LinearModel:
    """Fisher's discriminant with the shares of the classes over all rows.

        score_c = mu_c^T B (B^T W B)^(-1) B^T (z - mu_c / 2) + log(share_c)

    where mu_c = delta_c, up to one vector for all classes: the differences within environments. What differs between
    environments alone is no difference between classes.

    Args:
        statistics: counts, means and W.
        directions: B, (features, coordinates), what may be used; None: all features.

    Reference: R. A. Fisher, Annals of Eugenics 7 (1936).

    Example:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> random = np.random.default_rng(0)
        >>> y = np.arange(100_000) % 2
        >>> found = class_statistics(collect_class_moments(random.standard_normal((100_000, 1)) + 2 * y[:, None], y))
        >>> scores = linear_discriminant(found)
        >>> (np.diff(scores.coefficients, axis=0) / found.scale).round(1).tolist()
        [[2.0]]
    """
    return _discriminant(class_sums(statistics), statistics.within, _basis(statistics, directions))


def _basis(statistics: ClassStatistics, directions: np.ndarray | None) -> np.ndarray:
    basis = np.eye(len(statistics.within)) if directions is None else directions
    return basis * ~statistics.constant[:, None]


def projected_inverse(within: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """B (B^T W B)^+ B^T.

    Example:
        >>> projected_inverse(np.diag([2.0, 4.0]), np.array([[1.0], [0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    return basis @ np.linalg.pinv(basis.T @ within @ basis, rcond=1e-12, hermitian=True) @ basis.T


def _discriminant(sums: ClassSums, within: np.ndarray, basis: np.ndarray) -> LinearModel:
    centres = _centres(sums)
    coefficients = centres @ projected_inverse(within, basis)
    shares = np.maximum(sums.counts / sums.counts.sum(), 1e-300)
    return LinearModel(coefficients, np.log(shares) - (coefficients * centres).sum(1) / 2)


def _centres(sums: ClassSums) -> np.ndarray:
    """(classes, features), the means of the classes at the mean level of all environments.

    If some classes never meet in an environment, levels and classes cannot be told apart: the means of all rows.
    """
    values = np.linalg.eigvalsh(sums.joint)
    if np.sum(values > NEGLIGIBLE * max(values[-1], 1e-300)) < np.sum(sums.counts > 0) - 1:
        return sums.values / np.maximum(sums.counts, 1e-300)[:, None]
    differences = np.linalg.pinv(sums.joint, rcond=NEGLIGIBLE, hermitian=True) @ sums.right
    return differences + (sums.values - sums.counts[:, None] * differences).sum(0) / sums.counts.sum()


def needed_features(statistics: ClassStatistics, candidates: np.ndarray) -> np.ndarray:
    """(features,): the candidates that pay for themselves in the information criterion, given all others that do.

    A feature adds rows * log([T^-1]_jj^-1 / [W^-1]_jj^-1) to twice the log-likelihood, with T the covariance of all
    rows at one level: Rao's test of additional information. It needs (classes - 1) log(rows).

    Args:
        statistics: counts, means and W.
        candidates: (features,), True where a feature may be used.

    Reference: C. R. Rao, Linear Statistical Inference and Its Applications (1973), section 8c.4.

    Example, the second feature is noise:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> random = np.random.default_rng(0)
        >>> y = np.arange(1000) % 2
        >>> x = random.standard_normal((1000, 2)) + np.outer(y, [1.0, 0.0])
        >>> needed_features(class_statistics(collect_class_moments(x, y)), np.array([True, True])).tolist()
        [True, False]
    """
    counts = statistics.counts
    shares = counts.sum(0) / counts.sum()
    centres = _centres(class_sums(statistics))
    centres = centres - shares @ centres
    total = statistics.within + (centres.T * shares) @ centres
    rows = float(max(counts.sum(), 2.0))
    least = (np.sum(shares > 0) - 1) * np.log(rows)
    needed = candidates & ~statistics.constant
    while needed.any():
        columns = np.flatnonzero(needed)
        block = np.ix_(columns, columns)
        alone = np.diag(np.linalg.inv(statistics.within[block])) / np.diag(np.linalg.inv(total[block]))
        gains = rows * np.log(np.maximum(alone, 1.0))
        weakest = np.argsort(gains, kind="stable")[: max(1, int(REMOVED_SHARE * len(columns)))]
        idle = columns[weakest[gains[weakest] < least]]
        if len(idle) == 0:
            break
        needed[idle] = False
    return needed


def expected_log_loss(statistics: ClassStatistics, scores: LinearModel) -> np.ndarray:
    """(environments,): the mean log loss in each environment, if features are normal within its classes.

    It needs no rows: given the class, scores are normal with mean and covariance from those of the features.

    Args:
        statistics: counts, means and covariances.
        scores: to be judged.

    Example, scores that say nothing:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> x, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 1, 0, 1])
        >>> found = class_statistics(collect_class_moments(x, y))
        >>> expected_log_loss(found, LinearModel(np.zeros((2, 1)), np.zeros(2))).round(4).tolist()
        [0.6931]
    """
    classes = len(scores.intercept)
    # scores enter through their differences to the first: with two classes the points are those of one dimension
    contrasts = scores.coefficients[1:] - scores.coefficients[0]
    means = statistics.means @ contrasts.T + (scores.intercept[1:] - scores.intercept[0])
    values, vectors = np.linalg.eigh(contrasts @ statistics.covariances @ contrasts.T)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    drawn = means[..., None, :] + _normal_points(classes - 1) @ roots.swapaxes(-1, -2)
    others = np.concatenate([np.zeros((*drawn.shape[:-1], 1)), drawn], axis=-1)
    own = np.stack([others[:, number, :, number] for number in range(classes)], axis=1)
    losses = (np.logaddexp.reduce(others, axis=-1) - own).mean(-1)
    return (statistics.counts * losses).sum(1) / np.maximum(statistics.counts.sum(1), 1e-300)


def held_out_discriminant_losses(statistics: ClassStatistics, directions: np.ndarray | None = None) -> np.ndarray:
    """(environments,): the expected log loss in each environment of the discriminant of all others.

    Args:
        statistics: of at least two environments.
        directions: as in `linear_discriminant`.

    Example:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> y, environments = np.arange(4000) % 2, Grouping(np.arange(4000) // 2000, ["a", "b"])
        >>> x = random.standard_normal((4000, 1)) + 2 * y[:, None]
        >>> losses = held_out_discriminant_losses(class_statistics(collect_class_moments(x, y, environments)))
        >>> bool((losses < 0.45).all())
        True
    """
    total, basis, everything = class_sums(statistics), _basis(statistics, directions), statistics.total
    freedom = np.maximum(statistics.counts - 1, 0)
    scatter = np.tensordot(freedom, statistics.covariances, 2)
    found = []
    for number, own in enumerate(freedom):
        # the sums of all others are differences
        others = ClassSums(*(all_ - one for all_, one in zip(total, class_sums(statistics, number), strict=True)))
        spread = scatter - np.tensordot(own, statistics.covariances[number], 1)
        scores = _discriminant(others, pooled_covariance(spread, freedom.sum() - own.sum(), everything), basis)
        alone = statistics._replace(
            counts=statistics.counts[[number]],
            means=statistics.means[[number]],
            covariances=statistics.covariances[[number]],
        )
        found.append(expected_log_loss(alone, scores)[0])
    return np.array(found)


def _normal_points(dimension: int) -> np.ndarray:
    """(points, dimension), evenly spread under the normal law: quantiles, or Sobol's points in several dimensions."""
    if dimension == 1:
        points = norm.ppf((np.arange(POINTS) + 0.5) / POINTS)[:, None]
        return points / points.std()  # quantiles miss the tails
    return norm.ppf(qmc.Sobol(dimension, seed=0).random(POINTS).clip(1e-9, 1 - 1e-9))
