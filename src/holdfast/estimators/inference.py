"""How certain the coefficients of a fit to several environments are.

Of two classes these are the coefficients of the log-odds of the second. Of more classes each has coefficients of its
own, which are known up to one vector for all of them: they are measured from their mean over the classes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from holdfast.core.class_moments import ClassStatistics
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.class_fits import class_sums, projected_inverse, softmax_curvature
from holdfast.estimators.search.class_means import NEGLIGIBLE
from holdfast.estimators.search.evidence import Evidence, JointSlopes


def pooled_covariance(
    evidence: Evidence, fitted: LinearModel, columns: np.ndarray, *, clustered: bool = False
) -> np.ndarray:
    """(columns, columns): the covariance of the coefficients of a pooled fit, as a sandwich.

        A^+ B A^+,    A = sum_e p_e H_e,    B = sum_e p_e^2 V_e,    clustered: B = E / (E - 1) sum_e p_e^2 g_e g_e^T

    Each environment has a variance of its own. The plain form answers what these coefficients would be with other rows
    of the same environments; the clustered one, with other environments. It needs many more environments than columns.

    Args:
        evidence: g, H, V and the shares p of the environments.
        fitted: the pooled fit of these columns.
        columns: their numbers.
        clustered: whether the environments, and not only their rows, count as a sample.

    Reference: H. White, Econometrica 48 (1980); K.-Y. Liang and S. Zeger, Biometrika 73 (1986) for clusters.

    Example, a feature that does nothing, in 10,000 rows:
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> from holdfast.estimators.search.evidence import SquaredEvidence
        >>> random, columns = np.random.default_rng(0), np.arange(1)
        >>> known = standardized(collect_moments(random.standard_normal((10_000, 1)), random.standard_normal(10_000)))
        >>> evidence = SquaredEvidence(known)
        >>> np.sqrt(pooled_covariance(evidence, evidence.solve(columns), columns)).round(3).tolist()
        [[0.01]]
    """
    weights, slopes = evidence.weights, evidence.joint(fitted, columns)
    if clustered:
        if (count := len(weights)) == 1:
            raise ValueError("clustered must be False for one environment, got True")
        products = slopes.gradient[:, :, None] * slopes.gradient[:, None, :]
        slopes = slopes._replace(covariance=count / (count - 1) * products)
    return sandwich(slopes, weights)


def sandwich(slopes: JointSlopes, weights: np.ndarray) -> np.ndarray:
    """(columns, columns): A^+ B A^+ of `pooled_covariance`, from slopes at the fit and the shares of environments.

    Example, the variance of a mean of 100 rows:
        >>> one = np.ones((1, 1, 1))
        >>> sandwich(JointSlopes(np.zeros((1, 1)), one, 0.01 * one), np.ones(1)).tolist()
        [[0.01]]
    """
    inverse = np.linalg.pinv(np.tensordot(weights, slopes.curvature, 1), hermitian=True)
    return inverse @ np.tensordot(weights**2, slopes.covariance, 1) @ inverse


def blended_covariance(
    evidence: Evidence,
    strict: LinearModel,
    selected: np.ndarray,
    pooled: LinearModel,
    pooling: float,
) -> np.ndarray:
    """(features, features): the covariance of (1 - a) w_S + a w_A, for a given pooling weight a.

    Both fits are linear in the same moments, so their errors add up row by row. With J the padded A^+ of either fit:

        (1 - a)^2 J_S B_S J_S + a^2 J_A B_A J_A + a (1 - a) (J_S C J_A + J_A C J_S),    C = 2 B_m - (B_S + B_A) / 2

    where B_m belongs to the mean of both fits: residuals are linear in the coefficients, which gives the covariance C
    of the two by polarisation. That a itself was chosen from the data is not counted.

    Args:
        evidence: of the table.
        strict: w_S, the pooled fit of the selected features.
        selected: (features,), S.
        pooled: w_A, the pooled fit of all features.
        pooling: a, from 0 to 1.

    Example:
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> from holdfast.estimators.search.evidence import SquaredEvidence
        >>> random = np.random.default_rng(0)
        >>> x = random.standard_normal((400, 2))
        >>> evidence = SquaredEvidence(standardized(collect_moments(x, x[:, 0] + random.standard_normal(400))))
        >>> strict, pooled = evidence.solve(np.array([0])), evidence.solve(np.arange(2))
        >>> found = blended_covariance(evidence, strict, np.array([True, False]), pooled, 0.5)
        >>> bool(found[0, 0] > found[1, 1] > 0)  # the second coefficient is halved, and so is its standard error
        True
    """
    features = len(selected)
    evidence, strict, pooled = with_intercept(evidence, strict, pooled)
    dimension, weights = evidence.dimension, evidence.weights
    columns, every = np.append(np.flatnonzero(selected), np.arange(features, dimension)), np.arange(dimension)
    found = np.zeros((dimension, dimension))
    if pooling == 0:  # a table with many features needs no matrices of all of them
        found[np.ix_(columns, columns)] = pooled_covariance(evidence, strict, columns)
        return found[:features, :features]
    mean = LinearModel((strict.coefficients + pooled.coefficients) / 2, (strict.intercept + pooled.intercept) / 2)
    of_strict, of_pooled, of_mean = (evidence.joint(fitted, every) for fitted in (strict, pooled, mean))
    inside = np.tensordot(weights, of_strict.curvature, 1)[np.ix_(columns, columns)]
    found[np.ix_(columns, columns)] = (1 - pooling) * np.linalg.pinv(inside, hermitian=True)
    one, other = found, pooling * np.linalg.pinv(np.tensordot(weights, of_pooled.curvature, 1), hermitian=True)
    first, second, middle = (np.tensordot(weights**2, part.covariance, 1) for part in (of_strict, of_pooled, of_mean))
    across = one @ (2 * middle - (first + second) / 2) @ other
    return (one @ first @ one + other @ second @ other + across + across.T)[:features, :features]


def with_intercept(evidence: Evidence, *fits: LinearModel) -> tuple[Any, ...]:
    """A table and fits to it, with the intercept as one more feature where the loss asks for it.

    Example, of two rows with labels:
        >>> from holdfast.algorithms.losses.logistic import LogisticRows
        >>> from holdfast.estimators.search.evidence import LogisticEvidence
        >>> rows = LogisticRows(np.array([[1.0, -1.0]]), np.array([0.0, 1.0]), np.ones(2))
        >>> evidence, fitted = with_intercept(LogisticEvidence([rows]), LinearModel(np.ones(1), 2.0))
        >>> evidence.dimension, fitted
        (2, LinearModel(coefficients=array([1., 0.]), intercept=2.0))
    """
    whole = evidence.with_intercept()
    more = (0, whole.dimension - evidence.dimension)
    return whole, *(fit._replace(coefficients=np.pad(fit.coefficients, more)) for fit in fits)


def standard_errors(covariance: np.ndarray, rows: float, parameters: int) -> np.ndarray:
    """(features,): standard errors, corrected for the degrees of freedom that the fit has used up.

    Args:
        covariance: (features, features).
        rows: n, of all environments.
        parameters: the coefficients and intercepts that were fitted, p; the factor is sqrt(n / (n - p)).

    Returns:
        NaN if no degree of freedom is left: nothing says how certain such a fit is.

    Example:
        >>> standard_errors(np.eye(1), rows=4.0, parameters=3).tolist()
        [2.0]
    """
    if rows <= parameters:
        return np.full(len(covariance), np.nan)
    return np.sqrt(np.maximum(np.diag(covariance), 0.0) * rows / max(rows - parameters, 1.0))


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
