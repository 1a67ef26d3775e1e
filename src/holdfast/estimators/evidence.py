"""What a table says about its features' effects in each environment, and how sure it is of it.

A loss enters the estimators only through `Evidence`; squared loss knows the table by its second moments, logistic
loss row by row.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from holdfast.algorithms.hadamard import Slopes
from holdfast.estimators.moments import Centred

# An environment of few rows borrows this many rows from all of them to estimate the variance of its errors.
BORROWED_ROWS = 10.0
# Directions with less than this share of the largest eigenvalue are not measured in an environment.
NEGLIGIBLE = 1e-9


class Fitted(NamedTuple):
    """Coefficients of standardised features and an intercept."""

    coefficients: np.ndarray
    intercept: float


class JointSlopes(NamedTuple):
    """Gradients of some features in every environment, with the matrices that belong to them.

    Attributes:
        gradient: (environments, features), g_e.
        curvature: (environments, features, features), H_e, its derivative.
        covariance: (environments, features, features), V_e, of the sampling error of g_e.
    """

    gradient: np.ndarray
    curvature: np.ndarray
    covariance: np.ndarray


class Evidence(NamedTuple):
    """A loss on a table with environments, as functions.

    Attributes:
        counts: (environments,), rows.
        dimension: number of features.
        slopes: fitted -> Slopes, the gradients of single features.
        joint: (fitted, columns) -> JointSlopes.
        solve: columns -> the pooled fit of these features, all others zero.
        deviance: fitted -> -2 log likelihood over all rows, up to a constant.
        information: fitted -> the share of what a constant prediction leaves open that is still open: where nothing is,
            nothing is left in which environments could differ.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """

    counts: np.ndarray
    dimension: int
    slopes: Callable[[Fitted], Slopes]
    joint: Callable[[Fitted, np.ndarray], JointSlopes]
    solve: Callable[[np.ndarray], Fitted]
    deviance: Callable[[Fitted], float]
    information: Callable[[Fitted], float]
    tolerance: float

    @property
    def weights(self) -> np.ndarray:
        """(environments,), p_e, the shares of the rows."""
        return self.counts / self.counts.sum()


def pooled_effects(evidence: Evidence, fitted: Fitted, slopes: Slopes) -> np.ndarray:
    """(features,): the coefficient that each feature would have over all rows, all others as fitted."""
    weights = evidence.weights[:, None]
    curvature = np.maximum((weights * slopes.curvature).sum(0), 1e-300)
    return fitted.coefficients - (weights * slopes.gradient).sum(0) / curvature


def tolerant_slopes(evidence: Evidence, fitted: Fitted) -> Slopes:
    """Gradients whose variances count what is tolerated as if it were sampling error.

    Var g_ej + (tolerance b_j h_ej)^2,    b_j the pooled effect
    """
    slopes = evidence.slopes(fitted)
    allowed = evidence.tolerance * pooled_effects(evidence, fitted, slopes) * slopes.curvature
    return slopes._replace(variance=slopes.variance + allowed**2)


class Equality(NamedTuple):
    """The test that all environments share one set of effects.

    Attributes:
        statistic: a chi-square variable with `degrees` degrees of freedom if they do.
        degrees: degrees of freedom.
        significance: the probability of a larger statistic.
    """

    statistic: float
    degrees: int
    significance: float


def equality(evidence: Evidence, fitted: Fitted, columns: np.ndarray) -> Equality:
    """Do the effects of these features differ between environments by more than sampling error?

        statistic = min over m of sum_e (g_e - H_e m)^T (V_e + tolerance^2 H_e diag(w)^2 H_e)^+ (g_e - H_e m)

    With squared loss this is Chow's test of equal coefficients, with a variance of errors for each environment (which
    may therefore be noisy or calm without being different).

    Reference: G. C. Chow, Econometrica 28 (1960). Accepting features whose joint effects pass such a test is the idea
        of invariant causal prediction, Peters, Bühlmann and Meinshausen, JRSS B 78 (2016).
    """
    if len(columns) == 0 or len(evidence.counts) == 1:
        return Equality(0.0, 0, 1.0)
    gradient, curvature, covariance = evidence.joint(fitted, columns)
    allowed = (evidence.tolerance * fitted.coefficients[columns]) ** 2
    values, vectors = np.linalg.eigh(covariance + (curvature * allowed) @ curvature)
    measured = values > NEGLIGIBLE * np.maximum(values.max(axis=1, keepdims=True), 1e-300)
    root = np.where(measured, 1 / np.sqrt(np.where(measured, values, 1.0)), 0.0)
    whitened = (np.einsum("eij,ei->ej", vectors, gradient) * root).ravel()
    design = (vectors.swapaxes(1, 2) @ curvature * root[:, :, None]).reshape(-1, len(columns))
    common, _, rank, _ = np.linalg.lstsq(design, whitened, rcond=None)
    statistic = float(np.sum((whitened - design @ common) ** 2))
    degrees = int(measured.sum() - rank)
    return Equality(statistic, degrees, float(chi2.sf(statistic, degrees)) if degrees > 0 else 1.0)


def squared_evidence(moments: Centred, tolerance: float = 0.0) -> Evidence:
    """Half the mean squared error of each environment, from its second moments.

        g_e = S_e w - c_e,    H_e = S_e,    V_e = sigma_e^2 S_e / n_e

    Args:
        moments: S_e, c_e and the mean squares of the response.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """
    counts, weights = moments.counts, moments.counts / moments.counts.sum()
    second, cross = np.tensordot(weights, moments.second, 1), weights @ moments.cross
    square = float(weights @ moments.square)
    diagonal = np.einsum("eii->ei", moments.second)

    def errors(w: np.ndarray) -> np.ndarray:
        own = moments.square - 2 * moments.cross @ w + (moments.second @ w) @ w
        pooled = max(float(weights @ own), 1e-12 * max(square, 1e-300))
        return (counts * np.maximum(own, 0) + BORROWED_ROWS * pooled) / (counts + BORROWED_ROWS)

    def slopes(fitted: Fitted) -> Slopes:
        w = fitted.coefficients
        variance = (errors(w) / counts)[:, None] * diagonal
        level = moments.means[:, :-1] @ w - moments.means[:, -1]
        return Slopes(moments.second @ w - moments.cross, level, diagonal, variance)

    def joint(fitted: Fitted, columns: np.ndarray) -> JointSlopes:
        gradient = (moments.second @ fitted.coefficients - moments.cross)[:, columns]
        curvature = moments.second[:, columns[:, None], columns]
        scale = (errors(fitted.coefficients) / counts)[:, None, None]
        return JointSlopes(gradient, curvature, scale * curvature)

    def solve(columns: np.ndarray) -> Fitted:
        w = np.zeros(len(cross))
        if len(columns):
            w[columns] = np.linalg.lstsq(second[np.ix_(columns, columns)], cross[columns], rcond=1e-12)[0]
        return Fitted(w, 0.0)

    def deviance(fitted: Fitted) -> float:
        w = fitted.coefficients
        residual = square - 2 * cross @ w + w @ second @ w
        # a perfect fit has no likelihood; below this share of the response it is rounding
        return float(counts.sum() * np.log(max(residual, 1e-12 * max(square, 1e-300))))

    # errors of any size have a size, so they can always be compared
    return Evidence(counts, len(cross), slopes, joint, solve, deviance, lambda fitted: 1.0, tolerance)


def logistic_evidence(
    z: np.ndarray, positive: np.ndarray, codes: np.ndarray, row_weights: np.ndarray, tolerance: float = 0.0
) -> Evidence:
    """The mean logistic loss of each environment, row by row.

        g_e = mean of (p - y) z,    H_e = mean of p (1 - p) z z^T,    V_e = mean of (p - y)^2 z z^T / n_e

    with p = 1 / (1 + exp(-z^T w - b)). The pooled fit has the weak ridge of one observation, which keeps separable
    data finite.

    Args:
        z: (rows, features), standardised.
        positive: (rows,), 1 for the second class, 0 for the first.
        codes: (rows,), environments.
        row_weights: (rows,), how many rows each row stands for.
        tolerance: as in `squared_evidence`; no part of V_e, it is added where effects are compared (`equality`,
            `tolerant_slopes`).
    """
    order = np.argsort(codes, kind="stable")
    z, y, sizes = z[order], positive[order], row_weights[order]
    ends = np.cumsum(np.bincount(codes))
    parts = [slice(begin, end) for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True)]
    counts = np.array([sizes[part].sum() for part in parts])

    def chances(fitted: Fitted) -> np.ndarray:
        return expit(z @ fitted.coefficients + fitted.intercept)

    def averages(row_values: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.stack([(row_values[part] * sizes[part]) @ columns[part] for part in parts]) / counts[:, None]

    def slopes(fitted: Fitted) -> Slopes:
        p = chances(fitted)
        curvature = averages(p * (1 - p), z**2)
        variance = averages((p - y) ** 2, z**2) / counts[:, None]
        intercept = averages(p - y, np.ones((len(z), 1)))[:, 0]
        return Slopes(averages(p - y, z), intercept, curvature, variance)

    def joint(fitted: Fitted, columns: np.ndarray) -> JointSlopes:
        p, chosen = chances(fitted), z[:, columns]

        def squares(row_values: np.ndarray) -> np.ndarray:
            scaled = chosen * (row_values * sizes)[:, None]
            return np.stack([scaled[part].T @ chosen[part] for part in parts]) / counts[:, None, None]

        curvature = squares(p * (1 - p))
        return JointSlopes(averages(p - y, chosen), curvature, squares((p - y) ** 2) / counts[:, None, None])

    def solve(columns: np.ndarray) -> Fitted:
        w = np.zeros(z.shape[1])
        w[columns], intercept = _newton(z[:, columns], y, sizes)
        return Fitted(w, intercept)

    def deviance(fitted: Fitted) -> float:
        margin = np.where(y > 0, 1, -1) * (z @ fitted.coefficients + fitted.intercept)
        return float(2 * np.sum(sizes * np.logaddexp(0, -margin)))

    def information(fitted: Fitted) -> float:
        p, share = chances(fitted), np.average(y, weights=sizes)
        return float(np.average(p * (1 - p), weights=sizes) / max(share * (1 - share), 1e-300))

    return Evidence(counts, z.shape[1], slopes, joint, solve, deviance, information, tolerance)


def _newton(z: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, float]:
    """Logistic regression with ridge 1 by damped Newton steps."""
    design = np.column_stack([z, np.ones(len(z))])
    ridge = np.append(np.ones(z.shape[1]), 1e-6)
    w = np.zeros(design.shape[1])

    def objective(w: np.ndarray) -> float:
        return float(np.sum(sizes * (np.logaddexp(0, design @ w) - y * (design @ w))) + ridge @ w**2 / 2)

    value = objective(w)
    for _ in range(50):
        p = expit(design @ w)
        gradient = design.T @ (sizes * (p - y)) + ridge * w
        hessian = (design * (sizes * p * (1 - p))[:, None]).T @ design + np.diag(ridge)
        direction = np.linalg.solve(hessian, gradient)
        length = 1.0
        while (proposed := objective(w - length * direction)) > value and length > 1e-6:
            length /= 2
        w, change, value = w - length * direction, value - proposed, proposed
        if change <= 1e-10 * (1 + abs(value)):
            break
    return w[:-1], float(w[-1])
