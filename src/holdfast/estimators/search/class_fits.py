"""Discriminants in closed form, with their losses in environments that were held out, and multinomial regression."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm, qmc

from holdfast.core.class_moments import ClassStatistics, pooled_covariance
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.class_means import NEGLIGIBLE

STEPS = 50  # of Newton; ten are enough unless classes can be separated
# A step that promises less than this gain in the mean loss is not worth a pass over the rows.
SMALLEST_GAIN = 1e-10
# The weak ridge of one observation keeps coefficients finite if classes can be separated; intercepts are almost free.
RIDGE, RIDGE_OF_INTERCEPT = 1.0, 1e-6
# Points of the normal law in `expected_log_loss`; with 256, the error is far below the sampling error of a table.
POINTS = 256
# Of the features that add nothing, this share is left out at once.
REMOVED_SHARE = 0.1


def softmax_regression(columns: np.ndarray, codes: np.ndarray, classes: int, weights: np.ndarray) -> LinearModel:
    """Multinomial logistic regression, with the weak ridge of one observation.

        minimise sum over rows of -log softmax(W x + b)[class] + |W|^2 / 2

    Args:
        columns: (features, rows), x, in standard units.
        codes: (rows,), the number of the class of each row.
        classes: their number.
        weights: (rows,), how many rows each row stands for.

    Example, without features the scores are the logarithms of the shares:
        >>> scores = softmax_regression(np.zeros((0, 4)), np.array([0, 1, 2, 2]), 3, np.ones(4))
        >>> np.exp(scores.intercept - scores.intercept[0]).round(3).tolist()
        [1.0, 1.0, 2.0]
    """
    design = np.vstack([columns, np.ones(len(codes))])
    size = len(design)
    ridge = np.tile(np.append(np.full(size - 1, RIDGE), RIDGE_OF_INTERCEPT), (classes, 1))
    target = np.eye(classes)[:, codes]
    parameters = np.zeros((classes, size))

    def objective(parameters: np.ndarray) -> float:
        chances = log_softmax(parameters @ design, axis=0)
        return float(-weights @ (target * chances).sum(0) + (ridge * parameters**2).sum() / 2)

    value = objective(parameters)
    for _ in range(STEPS):
        chances = np.exp(log_softmax(parameters @ design, axis=0))
        gradient = ((chances - target) * weights) @ design.T + ridge * parameters
        hessian = softmax_curvature(design, chances, weights)
        direction = np.linalg.solve(hessian, gradient.ravel()).reshape(classes, size)
        length = 1.0
        while (proposed := objective(parameters - length * direction)) > value and length > 1e-6:
            length /= 2
        parameters, change, value = parameters - length * direction, value - proposed, proposed
        if change <= SMALLEST_GAIN * weights.sum():
            break
    return LinearModel(parameters[:, :-1], parameters[:, -1])


def softmax_curvature(design: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(classes * columns, classes * columns): the curvature of the loss of `softmax_regression`, with its ridge.

    Args:
        design: (columns, rows), the features and a last column of ones.
        chances: (classes, rows), probabilities.
        weights: (rows,).

    Example, of a constant, one row and two classes:
        >>> softmax_curvature(np.ones((1, 1)), np.full((2, 1), 0.5), np.ones(1)).round(2).tolist()
        [[0.25, -0.25], [-0.25, 0.25]]
    """
    classes, size = len(chances), len(design)
    curvature = np.zeros((classes, size, classes, size))
    for one in range(classes):
        for other in range(one, classes):
            values = weights * chances[one] * ((one == other) - chances[other])
            curvature[one, :, other] = curvature[other, :, one] = (design * values) @ design.T
    ridge = np.tile(np.append(np.full(size - 1, RIDGE), RIDGE_OF_INTERCEPT), classes)
    return curvature.reshape(classes * size, -1) + np.diag(ridge)


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
