"""The effects of the features in each environment on its own, as tables.

An effect is what a regression on the rows of one environment would say, with an intercept of its own: the coefficient
of a feature if all features that are not dangerous are fitted together, and that of a dangerous one if it is added.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from holdfast.algorithms.losses.logistic import LogisticRows, look
from holdfast.algorithms.losses.squared import SMALLEST_ERROR
from holdfast.core.moments import StandardizedMoments
from holdfast.core.statistics import random_effects

# An environment whose errors have fewer degrees of freedom borrows the missing ones from all environments together.
FEW_DEGREES = 10.0
CONFIDENCE = 0.95  # of intervals
# A direction is not measured in an environment if it has less than this share of the variance it has in all of them,
# or of what the largest direction has: rounding leaves some.
NOT_MEASURED = 1e-9
# A coefficient is not identified if a direction that is not measured has more than this share of it.
NOT_IDENTIFIED = 1e-6
# An environment hardly measures an effect if its standard error is this many times the median one: the environment has
# few rows, or the feature hardly moves in it. Its estimate says little about the range.
HARDLY_MEASURED = 3.0
# Newton's method for one environment: steps, the gain in the loss per row that makes a step the last one, and the loss
# per row below which the classes are separated, so that the coefficients have no limit.
NEWTON_STEPS, CONVERGED, SEPARATED = 30, 1e-8, 1e-6
ROUNDING = 1e-12  # of a loss per row


class OwnEffects(NamedTuple):
    """The effects of the features in each environment, of standardised variables; all (environments, features).

    Attributes:
        estimates: NaN where the rows of the environment do not identify the effect.
        errors: standard errors.
        degrees: the degrees of freedom of the errors.
    """

    estimates: np.ndarray
    errors: np.ndarray
    degrees: np.ndarray


def squared_effects(moments: StandardizedMoments, selected: np.ndarray) -> OwnEffects:
    """Least squares in each environment, from its second moments.

    With S_e and c_e the moments of environment e about its own means, K the selected features and j another one:

        b_e = S_KK^+ c_K,    h_j = S_jj - S_jK S_KK^+ S_Kj,    b_ej = (c_j - S_jK b_e) / h_j
        Var b_e = sigma_e^2 S_KK^+ / n_e,    Var b_ej = sigma_ej^2 / (n_e h_j)

    sigma_e^2 is the variance of the residuals of these fits. Where it has fewer than `FEW_DEGREES` degrees of freedom,
    it is topped up to these with the residuals of all environments.

    Args:
        moments: of the environments.
        selected: (features,), the features that are always fitted.

    Example, y = 2 x + noise in one environment and y = noise in the other:
        >>> from holdfast.core import group_rows
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> random = np.random.default_rng(0)
        >>> x, codes = random.standard_normal((400, 1)), np.repeat([0, 1], 200)
        >>> y = 2 * x[:, 0] * (codes == 0) + 0.1 * random.standard_normal(400)
        >>> known = standardized(collect_moments(x, y, group_rows(codes, 400)))
        >>> (squared_effects(known, np.array([True])).estimates * known.scale[1] / known.scale[0]).round(1).tolist()
        [[2.0], [0.0]]
    """
    smallest = SMALLEST_ERROR * float(moments.weights @ moments.square)  # the residuals of a perfect fit are rounding
    # what is left within environments of a feature that is constant in each is rounding, by its variance over all rows
    typical = np.tensordot(moments.weights, moments.second, 1).diagonal()
    counts, within = moments.counts, moments.covariances
    second, cross, square = within[:, :-1, :-1], within[:, :-1, -1], within[:, -1, -1]
    company = _company(second, typical, selected)
    own = np.einsum("eij,ej->ei", company.inverse, cross[:, selected])
    error = np.maximum(square - np.einsum("ei,ei->e", own, cross[:, selected]), 0.0)
    left = cross - np.einsum("eij,ei->ej", second[:, selected], own)  # the covariance of x_j with the residuals
    estimates = left / company.left
    squares = np.maximum(error[:, None] - left**2 / company.left, 0.0)
    estimates[:, selected], squares[:, selected] = own, error[:, None]
    spare = counts[:, None] - company.rank[:, None] - np.where(selected, 1.0, 2.0)
    spare = np.where(np.isnan(company.variance) | (spare < 0), np.nan, spare)
    variance, degrees = _residual_variance(counts[:, None] * squares, spare)
    variance = np.maximum(variance, smallest) * company.variance / counts[:, None]
    return OwnEffects(np.where(np.isnan(variance), np.nan, estimates), np.sqrt(variance), degrees)


def _residual_variance(squares: np.ndarray, spare: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances of residuals and their degrees of freedom, from their sums of squares and degrees of freedom.

    With the share d / m of its own degrees and an exactly known rest, a variance topped up to m degrees is as certain
    as one with m^2 / d degrees; it cannot be more certain than that of all environments together.
    """
    total = np.nansum(spare, axis=0)
    pooled = np.where(np.isnan(spare), 0.0, squares).sum(0) / np.where(total > 0, total, np.nan)
    missing = np.maximum(FEW_DEGREES - spare, 0.0)
    variance = (squares + missing * pooled) / (spare + missing)
    degrees = np.where(missing > 0, np.minimum(FEW_DEGREES**2 / np.maximum(spare, 1e-9), total), spare)
    return variance, np.where(np.isnan(variance), np.nan, degrees)


class _Company(NamedTuple):
    """What the selected features leave of the others, from the curvature of each environment.

    Attributes:
        inverse: (environments, selected, selected), the pseudo-inverse of the curvature of the selected features.
        rank: (environments,), its rank.
        left: (environments, features), the curvature of a feature that the selected ones leave; NaN for these.
        variance: (environments, features), of an effect whose gradient has the curvature as its covariance; NaN where
            the environment does not identify the effect.
    """

    inverse: np.ndarray
    rank: np.ndarray
    left: np.ndarray
    variance: np.ndarray


def _company(curvature: np.ndarray, typical: np.ndarray, selected: np.ndarray) -> _Company:
    """Eliminate the selected features; `typical` is the mean of the curvature of each feature over environments."""
    own = np.einsum("ejj->ej", curvature)
    inside = curvature[:, selected][:, :, selected]
    values, vectors = np.linalg.eigh(inside)
    highest = values.max(axis=1, keepdims=True, initial=0.0)
    measured = values > NOT_MEASURED * np.maximum(highest, typical[selected].max(initial=0.0))
    inverse = (vectors * np.where(measured, 1 / np.where(measured, values, 1.0), 0.0)[:, None, :]) @ vectors.mT
    hidden = np.einsum("eij,ej->ei", vectors**2, ~measured)  # the share of each coefficient that is not measured
    across = curvature[:, selected]
    left = own - np.einsum("eij,eij->ej", across, inverse @ across)
    left = np.where((left > NOT_MEASURED * np.maximum(own, typical)) & ~selected, left, np.nan)
    variance = 1 / left
    variance[:, selected] = np.where(hidden < NOT_IDENTIFIED, np.einsum("eii->ei", inverse), np.nan)
    return _Company(inverse, measured.sum(1), left, variance)


def logistic_effects(
    environments: Sequence[LogisticRows], selected: np.ndarray, begin: np.ndarray | None = None
) -> OwnEffects:
    """Logistic regression in each environment, from its rows.

    The selected features are fitted by maximum likelihood, with the inverse of the information as the covariance. The
    effect of another feature is one Newton step of it, with the selected ones and the intercept, from there. An
    environment with one class, or whose classes can be separated, identifies nothing.

    Args:
        environments: their rows, features standardised.
        selected: (features,), the features that are always fitted.
        begin: (selected + 1,), coefficients and intercept that are nearly right, which saves steps; None: 0.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x = random.standard_normal((1, 20_000))
        >>> rows = LogisticRows(x, (x[0] + random.logistic(size=20_000) > 0).astype(float), np.ones(20_000))
        >>> logistic_effects([rows], np.array([True])).estimates.round(1).tolist()
        [[1.0]]
    """
    counts = np.array([rows.weights.sum() for rows in environments])
    begin = np.zeros(selected.sum() + 1) if begin is None else begin
    likelihoods = (_likelihood(rows, selected, begin) for rows in environments)
    own, gradient, curvature = map(np.stack, zip(*likelihoods, strict=True))
    company = _company(curvature, np.einsum("e,ejj->j", counts / counts.sum(), curvature), selected)
    estimates = -gradient / company.left
    estimates[:, selected] = own
    spare = counts[:, None] - company.rank[:, None] - np.where(selected, 1.0, 2.0)
    errors = np.where(spare < 0, np.nan, np.sqrt(company.variance / counts[:, None]))
    return OwnEffects(np.where(np.isnan(errors), np.nan, estimates), errors, np.where(np.isnan(errors), np.nan, np.inf))


def _likelihood(
    rows: LogisticRows, selected: np.ndarray, begin: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The own fit of the selected features, and gradient and curvature of all at it, the intercept eliminated."""
    dimension, columns = len(selected), np.flatnonzero(selected)
    w, found = begin, look([rows], begin, columns)
    if found.loss[0] > np.log(2):  # worse than no coefficients, so that steps might go astray
        w, found = np.zeros_like(begin), look([rows], np.zeros_like(begin), columns)
    for _ in range(NEWTON_STEPS):
        step = np.linalg.lstsq(found.curvature[0], found.gradient[0], rcond=NOT_MEASURED)[0]
        if converged := found.gradient[0] @ step / 2 <= CONVERGED:
            w = w - step
            break
        while (proposed := look([rows], w - step, columns)).loss[0] > found.loss[0] + ROUNDING:
            step /= 2
        w, found = w - step, proposed
    if not converged or found.loss[0] <= SEPARATED:
        return w[:-1], np.zeros(dimension), np.zeros((dimension, dimension))  # without curvature, nothing is measured
    fitted = np.zeros(dimension + 1)
    fitted[[*columns, -1]] = w
    every = look([rows], fitted)
    gradient, curvature = every.gradient[0], every.curvature[0]
    across = curvature[:-1, -1]
    return w[:-1], gradient[:-1], curvature[:-1, :-1] - np.outer(across, across) / curvature[-1, -1]


class EffectTables(NamedTuple):
    """The effects of a table, in its units.

    Attributes:
        effects: environments x features: the effect in each environment; NaN where its rows do not identify it.
        errors: environments x features: standard errors.
        degrees: environments x features: the degrees of freedom of the errors.
        relations: features x (coefficient, effect, ...), see `describe_effects`.

    Example:
        >>> one = pd.DataFrame({"light": [0.9, 1.1]}, ["north", "south"])
        >>> EffectTables(one, one / 10, one * 0 + 30, pd.DataFrame()).effects.loc["south", "light"].item()
        1.1
    """

    effects: pd.DataFrame
    errors: pd.DataFrame
    degrees: pd.DataFrame
    relations: pd.DataFrame


def describe_effects(
    own: OwnEffects,
    coefficients: np.ndarray,
    *,
    selected: np.ndarray,
    names: Sequence[str],
    labels: Sequence[Any],
    units: np.ndarray | float = 1.0,
    more: Mapping[str, np.ndarray] | None = None,
) -> EffectTables:
    """Tables of effects, and of what they have in common.

    Args:
        own: effects in each environment, of standardised variables.
        coefficients: (features,), of the fit, of standardised variables.
        selected: (features,), the features whose effects are the same everywhere.
        names: of the features.
        labels: of the environments.
        units: (features,), what turns standardised coefficients into those of the table.
        more: further columns of `relations`.

    Returns:
        The tables. The columns of `relations` are the coefficient; whether the feature is selected; the random-effects
        mean of the effect with its standard error and 95 % interval, the standard deviation between environments and
        I^2; the lowest and the highest effect over the environments that measure it well; the probability of
        differences as large as these (`significance`).

    Example, the effect of a feature in two environments:
        >>> own = OwnEffects(np.array([[1.0], [3.0]]), np.array([[0.1], [0.1]]), np.full((2, 1), np.inf))
        >>> one = np.ones(1)
        >>> tables = describe_effects(own, 2 * one, selected=one > 2, names=["x"], labels=["north", "south"])
        >>> tables.relations.loc["x", ["effect", "lowest_effect", "highest_effect"]].tolist()
        [2.0, 1.0, 3.0]
    """
    found = random_effects(*own)
    # one environment says nothing about differences
    several = np.where(found.measured > 1, 1.0, np.nan)
    lowest, highest = _range(own)
    half = found.error * stdtrit(found.degrees, (1 + CONFIDENCE) / 2)
    columns = {
        "coefficient": coefficients * units,
        "selected": np.asarray(selected, bool),
        "effect": found.mean * units,
        "effect_error": found.error * units,
        "low": (found.mean - half) * units,
        "high": (found.mean + half) * units,
        "between": found.between * several * units,
        "i_squared": found.i_squared * several,
        "lowest_effect": lowest * units,
        "highest_effect": highest * units,
        "significance": found.significance * several,
    }
    index, names = pd.Index(list(labels), name="environment"), list(names)
    effects, errors, degrees = (
        pd.DataFrame(part, index, names) for part in (own.estimates * units, own.errors * units, own.degrees)
    )
    relations = pd.DataFrame(columns | dict(more or {}), index=pd.Index(names, name="feature"))
    return EffectTables(effects, errors, degrees, relations)


def _range(own: OwnEffects) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest effect over the environments that measure it well."""
    typical = np.ma.median(np.ma.masked_invalid(own.errors), axis=0).filled(np.nan)
    well = own.errors <= HARDLY_MEASURED * typical
    low, high = (np.where(well, own.estimates, edge) for edge in (np.inf, -np.inf))
    return tuple(np.where(well.any(0), part, np.nan) for part in (low.min(0), high.max(0)))  # type: ignore[return-value]
