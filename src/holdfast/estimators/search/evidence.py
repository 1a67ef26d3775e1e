"""The effects of the features of a table in each environment, and how certain they are.

A loss enters the estimators only through `Evidence`: the squared loss sees the table as second moments, the logistic
loss as rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from holdfast.algorithms.losses import logistic, squared
from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.algorithms.losses.slopes import Slopes, tolerant
from holdfast.core.moments import StandardizedMoments
from holdfast.estimators.effects import OwnEffects, logistic_effects, squared_effects
from holdfast.estimators.pooling import LinearModel, held_out_squares
from holdfast.estimators.search.logistic_fit import held_out_logistic_losses, logistic_regression, with_constant

# Directions with less than this share of the largest eigenvalue are not measured in an environment.
NEGLIGIBLE = 1e-9


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
        solve: (columns, near) -> the pooled fit of these features, all others zero; `near` is a fit to begin from.
        without: (fitted, columns) -> a function of some of these columns, given the pooled fit of all of them: the
            fit of those alone and its joint slopes. The squared loss has them from its moments; the logistic loss has
            the first step of Newton's method, without another look at the rows.
        deviance: fitted -> -2 log likelihood over all rows, up to a constant.
        information: fitted -> how uncertain the predictions still are, as a share of the uncertainty of a constant
            prediction: where they are certain, nothing is left in which environments could differ.
        held_out: columns -> (environments,), how badly the fit of these features to all other environments predicts
            each: the logarithm of the mean squared error, or the mean logistic loss.
        own_effects: mask of the selected features -> the effects in each environment on its own.
        with_intercept: -> the same table with the intercept as one more feature; None: features have mean zero, so that
            the intercept does not depend on their coefficients.
        response_scale: standard deviation of the response as the loss sees it: 1 for one that is standardised,
            sqrt(p (1 - p)) for two classes with the shares p and 1 - p.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """

    counts: np.ndarray
    dimension: int
    slopes: Callable[[LinearModel], Slopes]
    joint: Callable[[LinearModel, np.ndarray], JointSlopes]
    solve: Callable[..., LinearModel]
    without: Callable[[LinearModel, np.ndarray], Callable[[np.ndarray], tuple[LinearModel, JointSlopes]]]
    deviance: Callable[[LinearModel], float]
    information: Callable[[LinearModel], float]
    held_out: Callable[[np.ndarray], np.ndarray]
    own_effects: Callable[[np.ndarray], OwnEffects]
    with_intercept: "Callable[[], Evidence] | None"
    response_scale: float
    tolerance: float

    @property
    def weights(self) -> np.ndarray:
        """(environments,), p_e, the shares of the rows."""
        return self.counts / self.counts.sum()


def tolerant_slopes(evidence: Evidence, fitted: LinearModel) -> Slopes:
    """The slopes of a fit, with what is tolerated counted as sampling error; see `losses.slopes.tolerant`."""
    return tolerant(evidence.slopes(fitted), evidence.weights, fitted.coefficients, evidence.tolerance)


def information_criterion(evidence: Evidence, fitted: LinearModel, parameters: float) -> float:
    """Deviance + parameters * log(rows), the Bayesian information criterion of a fit."""
    return float(evidence.deviance(fitted) + parameters * np.log(max(evidence.counts.sum(), 2.0)))


def explained_share(evidence: Evidence, fitted: LinearModel) -> float:
    """The share of the likelihood per row that a fit explains: for squared loss the coefficient of determination."""
    constant = evidence.deviance(evidence.solve(np.arange(0)))
    # the constant is among the fits, so what is below zero, or a negative zero, is rounding
    return max(0.0, float(-np.expm1((evidence.deviance(fitted) - constant) / evidence.counts.sum())))


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


def equality(evidence: Evidence, fitted: LinearModel, columns: np.ndarray) -> Equality:
    """Do the effects of these features differ between environments by more than sampling error?

        statistic = min over m of sum_e (g_e - H_e m)^T (V_e + tolerance^2 H_e diag(w)^2 H_e)^+ (g_e - H_e m)

    With squared loss this is Chow's test of equal coefficients, with a variance of errors for each environment: a noisy
    environment is not a different one.

    Reference: G. C. Chow, Econometrica 28 (1960). Accepting features whose joint effects pass such a test is the idea
        of invariant causal prediction, Peters, Bühlmann and Meinshausen, JRSS B 78 (2016).
    """
    return equal_effects(evidence.joint(fitted, columns), evidence.tolerance * fitted.coefficients[columns])


def equal_effects(slopes: JointSlopes, tolerated: np.ndarray) -> Equality:
    """The test of `equality`, from the slopes of the features.

    Args:
        slopes: g_e, H_e and V_e.
        tolerated: (features,), standard deviations of the effects that are too small to matter.
    """
    gradient, curvature, covariance = slopes
    environments, features = gradient.shape
    if features == 0 or environments == 1:
        return Equality(0.0, 0, 1.0)
    values, vectors = np.linalg.eigh(covariance + (curvature * tolerated**2) @ curvature)
    measured = values > NEGLIGIBLE * np.maximum(values.max(axis=1, keepdims=True), 1e-300)
    root = np.where(measured, 1 / np.sqrt(np.where(measured, values, 1.0)), 0.0)
    whitened = (np.einsum("eij,ei->ej", vectors, gradient) * root).ravel()
    design = (vectors.swapaxes(1, 2) @ curvature * root[:, :, None]).reshape(-1, features)
    common, _, rank, _ = np.linalg.lstsq(design, whitened, rcond=None)
    statistic = float(np.sum((whitened - design @ common) ** 2))
    degrees = int(measured.sum() - rank)
    return Equality(statistic, degrees, float(chdtrc(degrees, statistic)) if degrees > 0 else 1.0)


def squared_evidence(moments: StandardizedMoments, tolerance: float = 0.0) -> Evidence:
    """Half the mean squared error of each environment, from its second moments; see `losses.squared`.

        g_e = S_e w - c_e,    H_e = S_e,    V_e = sigma_e^2 S_e / n_e

    Args:
        moments: S_e, c_e and the mean squares of the response.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """
    counts, weights, data = moments.counts, moments.weights, moments.moments
    second, cross = np.tensordot(weights, moments.second, 1), weights @ moments.cross
    square = float(weights @ moments.square)

    def slopes(fitted: LinearModel) -> Slopes:
        level = moments.means[:, :-1] @ fitted.coefficients - moments.means[:, -1]
        return squared.slopes(data, counts, fitted.coefficients)._replace(intercept=level)

    def joint(fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        gradient = squared.gradient(data, fitted.coefficients)[:, columns]
        curvature = moments.second[:, columns[:, None], columns]
        scale = squared.gradient_scale(data, counts, fitted.coefficients)
        return JointSlopes(gradient, curvature, scale[:, None, None] * curvature)

    def solve(columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        w = np.zeros(len(cross))
        if len(columns):
            w[columns] = np.linalg.lstsq(second[np.ix_(columns, columns)], cross[columns], rcond=1e-12)[0]
        return LinearModel(w, 0.0)

    def without(fitted: LinearModel, columns: np.ndarray) -> Callable[[np.ndarray], tuple[LinearModel, JointSlopes]]:
        def alone(left: np.ndarray) -> tuple[LinearModel, JointSlopes]:
            smaller = solve(left)
            return smaller, joint(smaller, left)

        return alone

    def deviance(fitted: LinearModel) -> float:
        residual = 2 * float(weights @ squared.risk(data, fitted.coefficients))
        # a perfect fit has no likelihood; below this share of the response it is rounding
        return float(counts.sum() * np.log(max(residual, squared.SMALLEST_ERROR * max(square, 1e-300))))

    def held_out(columns: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(held_out_squares(moments, columns), squared.SMALLEST_ERROR))

    def information(fitted: LinearModel) -> float:
        return 1.0  # errors of any size have a size, so they can always be compared

    own, size = partial(squared_effects, moments), len(cross)
    return Evidence(
        counts, size, slopes, joint, solve, without, deviance, information, held_out, own, None, 1.0, tolerance
    )


def logistic_evidence(environments: Sequence[LogisticRows], tolerance: float = 0.0) -> Evidence:
    """The mean logistic loss of each environment, from its rows; see `holdfast.algorithms.losses.logistic`.

        g_e = mean of (p - y) z,    H_e = mean of p (1 - p) z z^T,    V_e = mean of (p - y)^2 z z^T / n_e

    with p = 1 / (1 + exp(-z^T w - b)). The pooled fit has the weak ridge of one observation, so that it is finite for
    separable data.

    Args:
        environments: their rows, features standardised.
        tolerance: as in `squared_evidence`; no part of V_e, it is added where effects are compared (`equality`,
            `tolerant_slopes`).
    """
    counts = np.array([rows.weights.sum() for rows in environments])
    pooled = LogisticRows(*(np.concatenate(part, axis=-1) for part in zip(*environments, strict=True)))
    size = len(pooled.columns)
    share = np.average(pooled.labels, weights=pooled.weights)
    scale = float(np.sqrt(share * (1 - share)))

    def slopes(fitted: LinearModel) -> Slopes:
        parts = [logistic.slopes(rows, *fitted) for rows in environments]
        return Slopes(*(np.stack(part) for part in zip(*parts, strict=True)))

    def joint(fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        parts = []
        for rows in environments:
            # the columns of the others enter through the scores alone
            scores = fitted.coefficients @ rows.columns + fitted.intercept
            some, nothing = rows._replace(columns=rows.columns[columns]), np.zeros(len(columns))
            functions = (logistic.gradient, logistic.curvature_matrix, logistic.gradient_covariance)
            parts.append([function(some, nothing, scores) for function in functions])
        return JointSlopes(*(np.stack(part) for part in zip(*parts, strict=True)))

    def solve(columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        w = np.zeros(size)
        rows = pooled._replace(columns=pooled.columns[columns])
        begin = None if near is None else (near.coefficients[columns], near.intercept)
        w[columns], intercept = logistic_regression(rows, begin)
        return LinearModel(w, intercept)

    def without(fitted: LinearModel, columns: np.ndarray) -> Callable[[np.ndarray], tuple[LinearModel, JointSlopes]]:
        gradient, curvature, covariance = joint(fitted, columns)
        mean = np.tensordot(counts / counts.sum(), curvature, 1)

        def alone(left: np.ndarray) -> tuple[LinearModel, JointSlopes]:
            inside = np.isin(columns, left)
            own, gone = np.ix_(inside, inside), np.ix_(inside, ~inside)
            step = np.zeros(len(columns))
            step[~inside] = -fitted.coefficients[columns[~inside]]
            step[inside] = -np.linalg.lstsq(mean[own], mean[gone] @ step[~inside], rcond=NEGLIGIBLE)[0]
            w = fitted.coefficients.copy()
            w[columns] += step
            moved = (gradient + curvature @ step)[:, inside]
            smaller = (part[:, inside][:, :, inside] for part in (curvature, covariance))
            return LinearModel(w, fitted.intercept), JointSlopes(moved, *smaller)

        return alone

    def deviance(fitted: LinearModel) -> float:
        return float(2 * counts.sum() * logistic.risk(pooled, *fitted))

    def information(fitted: LinearModel) -> float:
        p = logistic.probabilities(pooled, *fitted)
        return float(np.average(p * (1 - p), weights=pooled.weights) / max(share * (1 - share), 1e-300))

    def extended() -> Evidence:
        return logistic_evidence([with_constant(rows) for rows in environments])._replace(with_intercept=None)

    def held_out(columns: np.ndarray) -> np.ndarray:
        return held_out_logistic_losses(environments, columns)

    own = partial(logistic_effects, environments)
    return Evidence(
        counts, size, slopes, joint, solve, without, deviance, information, held_out, own, extended, scale, tolerance
    )
