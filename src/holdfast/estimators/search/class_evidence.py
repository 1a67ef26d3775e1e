"""The logistic loss of a table with classes, from few looks at its rows.

A look at all rows at one fit w says, of all features and the intercept in each environment,

    g_e = mean of (p - y) z,    H_e = mean of p (1 - p) z z^T,    V_e = mean of (p - y)^2 z z^T / n_e

with p = 1 / (1 + exp(-z^T w)). Near w the gradients are g_e + H_e (w' - w): every set of features can be fitted and
tested there without the rows (`NearbyEvidence`). The rows are needed again for the fits of the sets that are found.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.algorithms.losses import logistic
from holdfast.algorithms.losses.logistic import BLOCK, SMALLEST_WEIGHT, LogisticRows, Look, look, sigmoid
from holdfast.algorithms.losses.slopes import Slopes
from holdfast.core.moments import StandardizedMoments
from holdfast.estimators.effects import OwnEffects, logistic_effects
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.class_fits import RIDGE, RIDGE_OF_INTERCEPT
from holdfast.estimators.search.evidence import NEGLIGIBLE, REACH, SPARE, Evidence, JointSlopes, SearchedEvidence

STEPS = 50  # of Newton; ten are enough unless classes can be separated
# A step that promises less than this gain in the mean loss is the last one: what it leaves is about the square of it.
LAST_GAIN = 1e-8
# The fit without an environment: one step of Newton's method is enough if it promises less than the first gain. Later
# steps keep the curvature until they promise less than the second; each has to promise so much less than the last.
FIRST_GAIN, NEXT_GAIN, FASTER = 1e-5, 1e-10, 0.1
KEPT = 8  # looks at hand
# Of more rows, Newton's method begins with so many of them.
FIRST_ROWS = 20_000


def fit_rows(environments: Sequence[LogisticRows], columns: np.ndarray, ridge: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(columns + 1,): the fit of some features to all rows, from w, by Newton's method with shorter steps if need be.

    Args:
        environments: their rows.
        columns: the features.
        ridge: (columns + 1,), of coefficients and intercept, for all rows together.
        w: where to begin.

    Example, a constant feature and as many ones as zeros:
        >>> rows = LogisticRows(np.zeros((1, 2)), np.array([0.0, 1.0]), np.ones(2))
        >>> fit_rows([rows], np.arange(1), np.ones(2), np.zeros(2)).tolist()
        [0.0, 0.0]
    """
    counts = np.array([rows.weights.sum() for rows in environments])
    if counts.sum() > 2 * FIRST_ROWS and not w[:-1].any() and len(columns):
        every = int(counts.sum() // FIRST_ROWS)
        few = [LogisticRows(*(part[..., ::every] for part in rows)) for rows in environments]
        w = fit_rows(few, columns, ridge, w)
    used = None if len(columns) == len(environments[0].columns) else columns

    def at(w: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        found = look(environments, w, used)
        curvature = np.tensordot(counts, found.curvature, 1) + np.diag(ridge)
        return float(counts @ found.loss + ridge @ w**2 / 2), counts @ found.gradient + ridge * w, curvature

    value, gradient, curvature = at(w)
    if w.any() and value > (beginning := at(np.zeros_like(w)))[0]:
        w, (value, gradient, curvature) = np.zeros_like(w), beginning  # a full step from afar may overshoot
    for _ in range(STEPS):
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step / 2 <= LAST_GAIN * counts.sum():
            return w - step
        while (proposed := at(w - step))[0] > value and np.abs(step).max() > 1e-9:
            step /= 2
        w, (value, gradient, curvature) = w - step, proposed
    return w


@dataclass
class NearbyEvidence(SearchedEvidence):
    """The logistic loss near one fit, to second order: no more rows are needed.

    Args:
        counts: (environments,), rows.
        whole: (features + 1,), coefficients and intercept of the fit.
        found: a look at the rows there.
        response_scale: as in `SearchedEvidence`.
        tolerance: as in `SearchedEvidence`.
    """

    counts: np.ndarray
    whole: np.ndarray
    found: Look
    response_scale: float
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        self.dimension = len(self.whole) - 1
        ridge = np.append(np.full(self.dimension, RIDGE), RIDGE_OF_INTERCEPT)
        curvature = np.tensordot(self.counts, self.found.curvature, 1)
        self._curvature = curvature + np.diag(ridge)
        self._target = curvature @ self.whole - self.counts @ self.found.gradient

    def solve(self, columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        """One step of Newton's method from the fit, with the other coefficients at zero."""
        own, w = np.append(columns, self.dimension), np.zeros(self.dimension + 1)
        w[own] = np.linalg.solve(self._curvature[own[:, None], own], self._target[own])
        return LinearModel(w[:-1], float(w[-1]))

    def near(self, fitted: LinearModel) -> SearchedEvidence:
        """Itself."""
        return self

    def _moved(self, fitted: LinearModel) -> tuple[np.ndarray, np.ndarray]:
        """How far away a fit is, and the gradients there."""
        move = np.append(*fitted) - self.whole
        return move, self.found.gradient + self.found.curvature @ move

    def slopes(self, fitted: LinearModel) -> Slopes:
        """The gradients of single features."""
        gradient = self._moved(fitted)[1]
        own, errors = (np.einsum("eii->ei", part)[:, :-1] for part in (self.found.curvature, self.found.covariance))
        return Slopes(gradient[:, :-1], gradient[:, -1], own, errors)

    def joint(self, fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        """The gradients of some features together."""
        block = np.s_[:, columns[:, None], columns]
        return JointSlopes(
            self._moved(fitted)[1][:, columns], self.found.curvature[block], self.found.covariance[block]
        )

    def deviance(self, fitted: LinearModel) -> float:
        """-2 log likelihood."""
        move, gradient = self._moved(fitted)
        return float(2 * self.counts @ (self.found.loss + (self.found.gradient + gradient) @ move / 2))

    def information(self, fitted: LinearModel) -> float:
        """The mean of p (1 - p), as a share of that of a constant prediction."""
        return float(self.weights @ self.found.curvature[:, -1, -1] / max(self.response_scale**2, 1e-300))


@dataclass
class LogisticEvidence(Evidence):
    """The mean logistic loss of each environment. The pooled fit has the weak ridge of one observation.

    Args:
        environments: their rows, features standardised.
        tolerance: as in `SquaredEvidence`; no part of V_e, it is added where effects are compared (`equality`,
            `tolerant_slopes`).
    """

    environments: Sequence[LogisticRows]
    tolerance: float = 0.0
    saturates = True

    def __post_init__(self) -> None:
        self.counts = np.array([rows.weights.sum() for rows in self.environments])
        self.dimension = len(self.environments[0].columns)
        self._share = sum(float(rows.weights @ rows.labels) for rows in self.environments) / self.counts.sum()
        self.response_scale = float(np.sqrt(self._share * (1 - self._share)))
        self._looks: dict[bytes, NearbyEvidence] = {}
        self._fits: dict[bytes, LinearModel] = {}

    def solve(self, columns: np.ndarray, near: LinearModel | None = None) -> LinearModel:
        """Logistic regression; computed once."""
        if (known := self._fits.get(columns.tobytes())) is None:
            begin = near
            if near is not None and (seen := self._looks.get(np.append(*near).tobytes())) is not None:
                begin = seen.solve(columns)
            share = np.clip(self._share, SMALLEST_WEIGHT, 1 - SMALLEST_WEIGHT)
            start = np.append(np.zeros(len(columns)), np.log(share / (1 - share)))
            if begin is not None:
                start = np.append(begin.coefficients[columns], begin.intercept)
            w = np.zeros(self.dimension)
            ridge = np.append(np.full(len(columns), RIDGE), RIDGE_OF_INTERCEPT)
            *w[columns], intercept = fit_rows(self.environments, columns, ridge, start)
            known = self._fits[columns.tobytes()] = LinearModel(w, float(intercept))
        return known

    def near(self, fitted: LinearModel) -> SearchedEvidence:
        """To second order."""
        return self._at(fitted)

    def _at(self, fitted: LinearModel) -> NearbyEvidence:
        """All that one look at the rows says; the last looks are at hand."""
        whole = np.append(*fitted)
        if (known := self._looks.pop(whole.tobytes(), None)) is None:
            found = look(self.environments, whole, covariance=True)
            known = NearbyEvidence(self.counts, whole, found, self.response_scale, self.tolerance)
            if len(self._looks) >= KEPT:
                del self._looks[next(iter(self._looks))]
        self._looks[whole.tobytes()] = known
        return known

    def slopes(self, fitted: LinearModel) -> Slopes:
        """The gradients of single features."""
        return self._at(fitted).slopes(fitted)

    def joint(self, fitted: LinearModel, columns: np.ndarray) -> JointSlopes:
        """The gradients of some features together."""
        return self._at(fitted).joint(fitted, columns)

    def deviance(self, fitted: LinearModel) -> float:
        """-2 log likelihood."""
        if (known := self._looks.get(np.append(*fitted).tobytes())) is not None:
            return known.deviance(fitted)
        return float(2 * self.counts @ [logistic.risk(rows, *fitted) for rows in self.environments])

    def information(self, fitted: LinearModel) -> float:
        """The mean of p (1 - p), as a share of that of a constant prediction."""
        return self._at(fitted).information(fitted)

    def held_out(self, columns: np.ndarray) -> np.ndarray:
        """(environments,), mean logistic losses.

        Newton's method from the fit of all rows, at which the curvatures are known, so that the first step costs
        nothing. The fits that need more steps take them together: one pass gives their gradients, and the curvature
        stays. A fit that gains little by such a step is computed by itself.
        """
        pooled, own = self.solve(columns), np.append(columns, self.dimension)
        found, ridge = self._at(pooled).found, np.append(np.full(len(columns), RIDGE), RIDGE_OF_INTERCEPT)
        gradients = self.counts[:, None] * found.gradient[:, own]
        curvatures = self.counts[:, None, None] * found.curvature[:, own[:, None], own]
        curvatures = curvatures.sum(0) - curvatures + np.diag(ridge)
        w = np.tile(np.append(*pooled)[own], (len(self.counts), 1))
        gradients = gradients.sum(0) - gradients + ridge * w
        left, before, rows = np.arange(len(w)), np.full(len(w), np.inf), self.counts.sum() - self.counts
        while True:
            steps = np.linalg.solve(curvatures[left], gradients[..., None])[..., 0]
            gains = np.einsum("ei,ei->e", gradients, steps) / 2 / rows[left]
            slow = gains > FASTER * before
            for number in left[slow]:
                others = [part for place, part in enumerate(self.environments) if place != number]
                w[number] = fit_rows(others, columns, ridge, w[number])
            w[left[~slow]] -= steps[~slow]
            going = ~slow & (gains > (FIRST_GAIN if np.isinf(before).all() else NEXT_GAIN))
            left, before = left[going], gains[going]
            if not len(left):
                break
            gradients = _gradients_without(self.environments, columns, w[left], left) + ridge * w[left]
        whole = np.zeros((len(w), self.dimension + 1))
        whole[:, own] = w
        fits = zip(self.environments, whole, strict=True)
        return np.array([float(logistic.risk(part, fit[:-1], fit[-1])) for part, fit in fits])

    def own_effects(self, selected: np.ndarray) -> OwnEffects:
        """Logistic regression in each environment, from the fit of all rows."""
        pooled = self.solve(np.flatnonzero(selected))
        return logistic_effects(self.environments, selected, np.append(pooled.coefficients[selected], pooled.intercept))

    def barring(self, columns: np.ndarray) -> Evidence:
        """Columns of zeros."""
        kept = (~columns)[:, None]
        return LogisticEvidence(
            [rows._replace(columns=rows.columns * kept) for rows in self.environments], self.tolerance
        )

    def stressed(self, columns: np.ndarray) -> float:
        """To second order about the pooled fit."""
        rich = self.counts >= len(columns) + SPARE
        if not rich.any():
            return np.inf
        fitted = self.solve(columns)
        nearby = self._at(fitted)
        slopes = nearby.joint(fitted, np.append(columns, self.dimension))
        inverse = np.linalg.pinv(slopes.curvature, rcond=NEGLIGIBLE, hermitian=True)
        apart = np.einsum("ei,eij,ej->e", slopes.gradient, inverse, slopes.gradient)
        apart = (apart - np.einsum("eij,eji->e", inverse, slopes.covariance)) / 2
        apart, loss = (float(np.average(part[rich], weights=self.counts[rich])) for part in (apart, nearby.found.loss))
        return loss - apart + REACH**2 * max(apart, 0.0)

    def second_moments(self) -> StandardizedMoments:
        """Those of the rows, from the fit of a constant; the response in units of its standard deviation."""
        found, scale = self._at(self.solve(np.arange(0))).found, self.response_scale or 1.0
        variance = max(self.response_scale**2, 1e-300)
        second, cross = found.curvature / variance, -found.gradient / scale
        square = self.counts * found.covariance[:, -1, -1] / scale**2
        means = np.append(second[:, :-1, -1], cross[:, -1:], axis=1)
        location, unit = np.append(np.zeros(self.dimension), self._share), np.append(np.ones(self.dimension), scale)
        flat = ~np.einsum("eii->i", second)[:-1].astype(bool)
        second, cross = second[:, :-1, :-1], cross[:, :-1]
        return StandardizedMoments(self.counts, second, cross, square, means, location, unit, flat, within=False)

    def working(self) -> np.ndarray:
        """Those of the response whose least squares are a step of Newton's method, with its weights, p (1 - p)."""
        nearby = self._at(self.solve(np.arange(self.dimension)))
        found, w = nearby.found, nearby.whole
        cross = found.curvature @ w - found.gradient
        square = np.einsum("i,ei->e", w, cross - found.gradient) + found.square
        matrix = np.concatenate([found.curvature, cross[:, None]], axis=1)
        matrix = np.concatenate([matrix, np.append(cross, square[:, None], axis=1)[:, :, None]], axis=2)
        mean, own = matrix[:, self.dimension], np.delete(np.arange(self.dimension + 2), self.dimension)
        weight = np.maximum(mean[:, self.dimension], SMALLEST_WEIGHT)[:, None, None]
        return (matrix - mean[:, :, None] * mean[:, None] / weight)[:, own[:, None], own]


def _gradients_without(
    environments: Sequence[LogisticRows], columns: np.ndarray, fits: np.ndarray, without: np.ndarray
) -> np.ndarray:
    """(fits, columns + 1): sums over all rows but those of one environment each, at fits, (fits, columns + 1)."""
    sums = np.zeros_like(fits)
    for number, rows in enumerate(environments):
        counted = without != number
        for start in range(0, len(rows.labels), BLOCK):
            block = slice(start, start + BLOCK)
            x = rows.columns[columns, block]
            errors = rows.weights[block] * (sigmoid(fits[counted, :-1] @ x + fits[counted, -1:]) - rows.labels[block])
            sums[counted, :-1] += errors @ x.T
            sums[counted, -1] += errors.sum(1)
    return sums
