"""How certain the coefficients of classes are: of linear discriminants, and of multinomial logistic regression.

Of two classes these are the coefficients of the log-odds of the second. Of more classes each has coefficients of its
own, which are known up to one vector for all of them: they are measured from their mean over the classes.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from holdfast.core.class_moments import ClassStatistics
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.class_means import NEGLIGIBLE
from holdfast.estimators.search.discriminant import class_sums, projected_inverse
from holdfast.estimators.search.logistic_fit import softmax_curvature


def contrasts(classes: int) -> np.ndarray:
    """(scores, classes): the second class less the first of two, or each class less the mean of all.

    Example:
        >>> contrasts(2).tolist(), contrasts(3)[0].round(2).tolist()
        ([[-1.0, 1.0]], [0.67, -0.33, -0.33])
    """
    return np.array([[-1.0, 1.0]]) if classes == 2 else np.eye(classes) - 1 / classes


def discriminant_errors(statistics: ClassStatistics, directions: np.ndarray, pooling: float) -> np.ndarray:
    """(scores, features): standard errors of (1 - a) M_S d + a M_A d, with d the difference between the centres.

        M = B (B^T W B)^(-1) B^T,    Var d = q W,    Cov(dW x, dW y) = ((x^T W y) W + W y x^T W) / n

    for normal features whose covariance W is that of all classes and environments, with n degrees of freedom; q comes
    from the numbers of rows. In directions that are not used the error is 0. The weight a is taken as given.

    Args:
        statistics: counts, means and W, of features in standard units.
        directions: B of the strict discriminant, (features, coordinates).
        pooling: a.

    Reference: B. Efron, JASA 70 (1975), for two classes.

    Example, a single feature without difference, of 100 rows in each class: 1 / sqrt(50), like a difference of means:
        >>> from holdfast.core.class_moments import class_statistics, collect_class_moments
        >>> x, y = np.tile([[-1.0], [1.0]], (100, 1)), np.repeat([0, 1], 100)
        >>> discriminant_errors(class_statistics(collect_class_moments(x, y)), np.eye(1), 0.0).round(3).tolist()
        [[0.141]]
    """
    counts, within = statistics.counts, statistics.within
    usable = np.eye(len(within)) * ~statistics.constant
    parts = [
        (weight, projected_inverse(within, basis))
        for weight, basis in ((1 - pooling, usable @ directions), (pooling, usable))
        if weight > 0
    ]
    sums, freedom = class_sums(statistics), max(float(np.maximum(counts - 1, 0).sum()), 1.0)
    joint = np.linalg.pinv(sums.joint, rcond=NEGLIGIBLE, hermitian=True)
    centres = joint @ sums.right
    errors = []
    for contrast in contrasts(counts.shape[1]):
        difference = contrast @ centres
        whole = sum(weight * matrix for weight, matrix in parts)
        variance = (contrast @ joint @ contrast) * whole @ within @ whole
        for one, first in parts:
            for other, second in parts:
                u, v = first @ difference, second @ difference
                spread = first @ within @ second
                variance = variance + one * other / freedom * (
                    (u @ within @ v) * spread + np.outer(first @ within @ v, second @ within @ u)
                )
        errors.append(np.sqrt(np.maximum(np.diag(variance), 0.0)))
    return np.array(errors)


def softmax_errors(
    z: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    parts: Sequence[np.ndarray],
    fits: Sequence[tuple[float, np.ndarray, LinearModel]],
    *,
    clustered: bool = False,
) -> np.ndarray:
    """(scores, features): standard errors of a blend of multinomial logistic regressions, as a sandwich.

    A row moves the blend by the sum of what it moves the fits by, H^+ times its gradient each; the squares of that are
    added up over rows, or clustered over environments. The weights of the blend are taken as given.

    Args:
        z: (rows, features), in standard units.
        codes: (rows,), the number of the class of each row.
        weights: (rows,), how many rows each row stands for.
        parts: the positions of the rows of each environment.
        fits: (weight in the blend, directions, scores of the features) of each.
        clustered: whether the environments, and not only their rows, count as a sample.

    Reference: H. White, Econometrica 50 (1982).

    Example, as for `discriminant_errors`:
        >>> z, codes = np.tile([[-1.0], [1.0]], (100, 1)), np.repeat([0, 1], 100)
        >>> fit = (1.0, np.eye(1), LinearModel(np.zeros((2, 1)), np.zeros(2)))
        >>> softmax_errors(z, codes, np.ones(200), [np.arange(200)], [fit]).round(3).tolist()
        [[0.141]]
    """
    classes = len(fits[0][2].intercept)
    contrast, total = contrasts(classes), float(weights.sum())
    solved = []
    for weight, directions, scores in fits:
        if weight > 0:
            design = np.column_stack([z @ directions, np.ones(len(z))])
            chances = softmax(z @ scores.coefficients.T + scores.intercept, axis=1)
            inverse = np.linalg.pinv(softmax_curvature(design.T, chances.T, weights), hermitian=True)
            solved.append((weight, directions, design, chances, inverse))
    variance = np.zeros((len(contrast), z.shape[1]))
    for own in parts:
        moved = np.zeros((len(own), *variance.shape))
        for weight, directions, design, chances, inverse in solved:
            error = chances[own] - np.eye(classes)[codes[own]]
            gradient = (error[:, :, None] * design[own, None]).reshape(len(own), -1)
            change = (gradient @ inverse).reshape(len(own), classes, -1)[..., :-1]
            moved += weight * np.einsum("kc,icj,fj->ikf", contrast, change, directions, optimize=True)
        if clustered:
            variance += np.tensordot(weights[own], moved, 1) ** 2
        else:
            variance += np.tensordot(weights[own], moved**2, 1)
    parameters = max(design.shape[1] for _, _, design, _, _ in solved) if solved else 1
    few = len(parts) / max(len(parts) - 1, 1) if clustered else total / max(total - parameters, 1.0)
    return np.sqrt(few * variance)
