"""What a table says about the effects of its features in each environment.

A loss enters the estimators only through `Evidence`: the squared loss sees the table as second moments, the logistic
loss as rows.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import chdtrc

from holdfast.algorithms.losses import squared
from holdfast.algorithms.losses.slopes import Slopes, tolerant
from holdfast.core.moments import StandardizedMoments
from holdfast.estimators.effects import OwnEffects, squared_effects
from holdfast.estimators.pooling import LinearModel, held_out_squares

# Directions with less than this share of the largest eigenvalue are not measured in an environment.
NEGLIGIBLE = 1e-9
# How far a new environment may be, in distances between these and their pooled fit, when strictness has to pay.
REACH = 10.0
# Rows that an environment needs beyond the number of features to say how well it could be fitted by itself.
SPARE = 10


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


class SearchedEvidence(Protocol):
    """A loss on a table with environments: all that the search for invariant features needs of the table.

    Attributes:
        counts: (environments,), rows.
        dimension: number of features.
        response_scale: standard deviation of the response as the loss sees it: 1 for one that is standardised,
            sqrt(p (1 - p)) for two classes with the shares p and 1 - p.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """

    counts: np.ndarray
    dimension: int
    response_scale: float
    tolerance: float

    @property
    def weights(self) -> np.ndarray:
        """(environments,), p_e, the shares of the rows."""
        return self.counts / self.counts.sum()

    def solve(self, columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        """The pooled fit of these features, all others zero; `near` is a fit to begin from."""

    def slopes(self, fitted: LinearModel) -> Slopes:
        """The gradients of single features."""

    def joint(self, fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        """The gradients of some features together."""

    def near(self, fitted: LinearModel) -> "SearchedEvidence":
        """The same table near a fit, where sets of features can be fitted without another look at the rows.

        The squared loss is itself, from moments; the logistic loss is of second order there.
        """

    def deviance(self, fitted: LinearModel) -> float:
        """-2 log likelihood over all rows, up to a constant."""

    def information(self, fitted: LinearModel) -> float:
        """How uncertain the predictions still are, as a share of the uncertainty of a constant prediction.

        Where they are certain, nothing is left in which environments could differ.
        """


class Evidence(SearchedEvidence, Protocol):
    """The same with what effects and predictions elsewhere need.

    Attributes:
        saturates: whether the effect of a consequence of the response saturates so early that it may seem to hold; a
            relation is then said to hold only if its other direction would cost little too.
    """

    saturates: bool

    def held_out(self, columns: np.ndarray) -> np.ndarray:
        """(environments,), how badly the fit of these features to all other environments predicts each.

        The logarithm of the mean squared error, or the mean logistic loss.
        """

    def own_effects(self, selected: np.ndarray) -> OwnEffects:
        """The effects in each environment on its own, next to the selected features, (features,)."""

    def barring(self, columns: np.ndarray) -> "Evidence":
        """The table in which these features, (features,), are constant, so that nothing can use them."""

    def stressed(self, columns: np.ndarray) -> float:
        """The loss where environments differ from the pooled fit of these features `REACH` times as much as here.

            mean over e of [ loss_e(b_e) + REACH^2 (loss_e(w) - loss_e(b_e)) ]

        with w the pooled fit and b_e that of the environment with an intercept of its own, sampling error removed.
        Infinite if no environment has rows enough.
        """

    def second_moments(self) -> StandardizedMoments:
        """Those of features and response; two classes count as numbers."""

    def working(self) -> np.ndarray:
        """(environments, features + 1, features + 1), covariances whose regressions are the effects, near the fit."""


@dataclass
class SquaredEvidence(Evidence):
    """Half the mean squared error of each environment, from its second moments; see `losses.squared`.

        g_e = S_e w - c_e,    H_e = S_e,    V_e = sigma_e^2 S_e / n_e

    Args:
        moments: S_e, c_e and the mean squares of the response.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
    """

    moments: StandardizedMoments
    tolerance: float = 0.0
    saturates = False

    def __post_init__(self) -> None:
        self.counts, self.dimension, self.response_scale = self.moments.counts, self.moments.cross.shape[1], 1.0
        self._second, self._cross = (
            np.tensordot(self.weights, self.moments.second, 1),
            self.weights @ self.moments.cross,
        )
        self._square = float(self.weights @ self.moments.square)

    def solve(self, columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        """Least squares."""
        w = np.zeros(self.dimension)
        if len(columns):
            w[columns] = np.linalg.lstsq(self._second[np.ix_(columns, columns)], self._cross[columns], rcond=1e-12)[0]
        return LinearModel(w, 0.0)

    def slopes(self, fitted: LinearModel) -> Slopes:
        """The gradients of single features."""
        level = self.moments.means[:, :-1] @ fitted.coefficients - self.moments.means[:, -1]
        return squared.slopes(self.moments.moments, self.counts, fitted.coefficients)._replace(intercept=level)

    def joint(self, fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        """The gradients of some features together."""
        data, w = self.moments.moments, fitted.coefficients
        curvature = self.moments.second[:, columns[:, None], columns]
        scale = squared.gradient_scale(data, self.counts, w)
        return JointSlopes(squared.gradient(data, w)[:, columns], curvature, scale[:, None, None] * curvature)

    def near(self, fitted: LinearModel) -> Evidence:
        """Itself: moments say everything."""
        return self

    def deviance(self, fitted: LinearModel) -> float:
        """-2 log likelihood, for errors of one variance."""
        residual = 2 * float(self.weights @ squared.risk(self.moments.moments, fitted.coefficients))
        # a perfect fit has no likelihood; below this share of the response it is rounding
        smallest = squared.SMALLEST_ERROR * max(self._square, 1e-300)
        return float(self.counts.sum() * np.log(max(residual, smallest)))

    def information(self, fitted: LinearModel) -> float:
        """Errors of any size have a size, so they can always be compared."""
        return 1.0

    def held_out(self, columns: np.ndarray) -> np.ndarray:
        """(environments,), logarithms of mean squared errors."""
        return np.log(np.maximum(held_out_squares(self.moments, columns), squared.SMALLEST_ERROR))

    def own_effects(self, selected: np.ndarray) -> OwnEffects:
        """Least squares in each environment."""
        return squared_effects(self.moments, selected)

    def barring(self, columns: np.ndarray) -> Evidence:
        """Zero moments."""
        return SquaredEvidence(self.moments.barring(columns), self.tolerance)

    def stressed(self, columns: np.ndarray) -> float:
        """From residuals within environments, and from their means."""
        size, w = len(columns), self.solve(columns).coefficients
        rich = self.counts >= size + SPARE
        if not rich.any():
            return np.inf
        counts, used = self.counts[rich], np.append(columns, self.dimension)
        within = self.moments.covariances[rich][:, used[:, None], used]
        errors = np.append(-w[columns], 1.0)
        square, cross = within[:, -1, -1], within[:, :-1, -1]
        own = np.einsum("eij,ej->ei", np.linalg.pinv(within[:, :-1, :-1], rcond=NEGLIGIBLE, hermitian=True), cross)
        least = np.maximum(square - np.einsum("ei,ei->e", own, cross), 0.0)
        variance = least * counts / (counts - size - 1)
        apart = np.einsum("i,eij,j->e", errors, within, errors) - least - variance * size / counts
        means = self.moments.means[rich][:, used] @ errors
        level = 0.0 if self.moments.within else np.average(means**2 - variance / counts, weights=counts)
        apart, variance = (float(np.average(part, weights=counts)) for part in (apart, variance))
        return variance + REACH**2 * (max(apart, 0.0) + max(float(level), 0.0))

    def second_moments(self) -> StandardizedMoments:
        """Those of the table."""
        return self.moments

    def working(self) -> np.ndarray:
        """Those of features and response."""
        return self.moments.covariances


def tolerant_slopes(evidence: SearchedEvidence, fitted: LinearModel) -> Slopes:
    """The slopes of a fit, with what is tolerated counted as sampling error; see `losses.slopes.tolerant`."""
    return tolerant(evidence.slopes(fitted), evidence.weights, fitted.coefficients, evidence.tolerance)


def information_criterion(evidence: SearchedEvidence, fitted: LinearModel, parameters: float) -> float:
    """Deviance + parameters * log(rows), the Bayesian information criterion of a fit."""
    return float(evidence.deviance(fitted) + parameters * np.log(max(evidence.counts.sum(), 2.0)))


def explained_share(evidence: SearchedEvidence, fitted: LinearModel) -> float:
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


def equality(evidence: SearchedEvidence, fitted: LinearModel, columns: np.ndarray) -> Equality:
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
