"""From a standardised table to an invariant linear predictor, with its effects, their stability and advice."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.dynamics import Program
from holdfast.estimators.search.evidence import Evidence, effect_spread, information_criterion
from holdfast.estimators.search.washout import Washout, washout
from holdfast.losses import Slopes
from holdfast.losses.slopes import pooled_effects

# An environment hardly measures an effect if its standard error there is this many times the median one: it has few
# rows, or the feature hardly moves in it.
HARDLY_MEASURED = 3.0
# A feature stands still in an environment if its variance is below this share of the largest one: rounding leaves some.
STANDS_STILL = 1e-9


class TableDescription(NamedTuple):
    """What is known of a table apart from its loss.

    Attributes:
        names: of the features.
        labels: of the environments.
        location: (features,), means.
        scale: (features,), standard deviations.
        response_scale: standard deviation of the response; 1 for classes.
        constant: (features,), which features are constant.
        loss_scale: standard deviation of the response as the loss sees it: 1 for one that is standardised,
            sqrt(p (1 - p)) for two classes with the shares p and 1 - p.
        without_features: what is predicted if no feature is selected, in words.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    location: np.ndarray
    scale: np.ndarray
    response_scale: float
    constant: np.ndarray
    loss_scale: float
    without_features: str


class LinearFit(NamedTuple):
    """An invariant linear predictor and how it was found.

    Attributes:
        coefficients: (features,), in the units of the table.
        intercept: to be added to the mean of the response at the mean of the features.
        selected: (features,), or (coordinates,) in rotated ones: which of them survive.
        washed: the result of the search.
        coordinates: the coordinate system.
        effects: table of environments x features.
        stability: table of features.
        advice: sentences.
        reason: why this amplification and step size.
    """

    coefficients: np.ndarray
    intercept: float
    selected: np.ndarray
    washed: Washout
    coordinates: Coordinates
    effects: pd.DataFrame
    stability: pd.DataFrame
    advice: list[str]
    reason: str


def fit_linear(
    table: TableDescription,
    systems: Sequence[Coordinates],
    problem: Callable[[Coordinates], tuple[Evidence, Program]],
    *,
    significance: float,
    orders: int,
    seed: int,
    step_size: float | None,
    amplification: float | None,
) -> LinearFit:
    """Wash out in each coordinate system and use the one whose invariant part predicts best.

    Args:
        table: names, labels and units.
        systems: to be tried; one of them if the features are not rotated.
        problem: coordinate system -> the loss in it.
        significance: level of the tests for variation.
        orders: random orders of the environments.
        seed: of these orders.
        step_size: eta; None: chosen.
        amplification: k; None: chosen.
    """
    tried = []
    for system in systems:
        evidence, program = problem(system)
        result = washout(
            evidence,
            program,
            significance=significance,
            orders=orders,
            seed=seed,
            step_size=step_size,
            amplification=amplification,
        )
        criterion = information_criterion(evidence, result.fitted, result.selected.sum())
        tried.append((criterion, system, evidence, result))
    _, system, evidence, washed = min(tried, key=lambda entry: entry[0])
    plain = system.name == "features"
    names = list(table.names) if plain else [f"{system.name} {number + 1}" for number in range(evidence.dimension)]
    units = table.response_scale / table.scale if plain else np.full(evidence.dimension, table.response_scale)
    effects = _effects(washed, names, table.labels, units)
    measured = effects.where(_well_measured(washed.slopes))
    coefficients = system.directions @ washed.fitted.coefficients * table.response_scale / table.scale
    return LinearFit(
        coefficients,
        washed.fitted.intercept,
        washed.selected,
        washed,
        system,
        effects,
        _stability(washed, measured, units, _pooled(evidence, washed)),
        advise(_findings(table, names, evidence, washed, measured)),
        _reason(washed),
    )


def _reason(washed: Washout) -> str:
    settings = washed.settings
    if washed.pooled_test.degrees == 0:
        return "one environment: nothing to amplify"
    strength = settings.step_size * (1 + settings.amplification) ** 2
    dying = washed.varies & ~washed.selected
    exponents = (
        f"the exponents of what varies are at most {washed.exponents[dying].max():.2g}"
        if dying.any()
        else "no other effect varies beyond sampling error"
    )
    runs = len(washed.paths.coefficients)
    agreeing = int((washed.paths.survived == washed.selected).all(1).sum())
    return (
        f"washing strength eta (1 + k)^2 = {strength:.3g}, comparing {'effects' if settings.scaling else 'gradients'}: "
        f"{exponents}; {agreeing} of {runs} runs ended exactly at the selected features; {washed.sets_tried} sets of "
        "features were examined"
    )


def _effects(washed: Washout, names: Sequence[str], labels: Sequence[Any], units: np.ndarray) -> pd.DataFrame:
    """The coefficient each feature would have in each environment, all other coefficients as fitted."""
    curvature = np.asarray(washed.slopes.curvature)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = washed.fitted.coefficients - np.asarray(washed.slopes.gradient) / np.where(
            curvature > 0, curvature, np.nan
        )
    return pd.DataFrame(own * units, index=pd.Index(list(labels), name="environment"), columns=list(names))


def _well_measured(slopes: Slopes) -> np.ndarray:
    """(environments, features): where an environment says something about the range of an effect."""
    curvature, variance = np.asarray(slopes.curvature), np.asarray(slopes.variance)
    moves = (curvature > STANDS_STILL * curvature.max(axis=0)) & (variance >= 0)
    error = np.sqrt(np.where(moves, variance, 0.0)) / np.where(moves, curvature, 1.0)
    typical = np.ma.median(np.ma.array(error, mask=~moves), axis=0).filled(np.inf)
    return moves & (error <= HARDLY_MEASURED * typical)


def _stability(washed: Washout, measured: pd.DataFrame, units: np.ndarray, pooled: np.ndarray) -> pd.DataFrame:
    low, high = measured.min(), measured.max()
    return pd.DataFrame(
        {
            "coefficient": washed.fitted.coefficients * units,
            "exponent": washed.exponents,
            "lowest_effect": low,
            "highest_effect": high,
            "effect_range": high - low,
            "spread": _share(effect_spread(washed.slopes), pooled),
            "varies": washed.varies,
            "survived": washed.paths.survived.mean(0),
        },
        index=pd.Index(measured.columns, name="feature"),
    )


def _pooled(evidence: Evidence, washed: Washout) -> np.ndarray:
    return pooled_effects(washed.slopes, evidence.weights, washed.fitted.coefficients)


def _share(spread: np.ndarray, effect: np.ndarray) -> np.ndarray:
    return spread / np.maximum(np.abs(effect), 1e-12)


def _findings(
    table: TableDescription, names: Sequence[str], evidence: Evidence, washed: Washout, measured: pd.DataFrame
) -> TableFindings:
    constant_fit = evidence.solve(np.arange(0))
    levels = np.asarray(washed.slopes.intercept) / table.loss_scale
    return TableFindings(
        names=tuple(names),
        labels=tuple(table.labels),
        counts=evidence.counts,
        selected=washed.selected,
        varies=washed.varies,
        survived=washed.paths.survived.mean(0),
        lowest=measured.min().to_numpy(),
        highest=measured.max().to_numpy(),
        explained=_explained(evidence, evidence.deviance(washed.fitted), evidence.deviance(constant_fit)),
        explained_by_all=_explained(evidence, evidence.deviance(washed.pooled), evidence.deviance(constant_fit)),
        pooled_significance=washed.pooled_test.significance,
        significance_of_selected=washed.test.significance,
        constant=tuple(name for name, flat in zip(table.names, table.constant, strict=True) if flat),
        amplification=washed.settings.amplification,
        step_size=washed.settings.step_size,
        compared="effects" if washed.settings.scaling else "gradients",
        levels=levels,
        spread=_share(effect_spread(washed.slopes), _pooled(evidence, washed)),
        without_features=table.without_features,
    )


def _explained(evidence: Evidence, deviance: float, of_constant: float) -> float:
    """The share of the likelihood per row that is explained: for squared loss the coefficient of determination."""
    # the constant is among the fits, so what is below zero, or a negative zero, is rounding
    return max(0.0, float(-np.expm1((deviance - of_constant) / evidence.counts.sum())))


def publish(estimator: Any, fitted: LinearFit, table: TableDescription) -> None:
    """Set the attributes that linear estimators share."""
    settings = fitted.washed.settings
    estimator.coef_ = fitted.coefficients
    estimator.invariant_ = fitted.selected
    estimator.stability_ = fitted.stability
    estimator.effects_ = fitted.effects
    estimator.advice_ = fitted.advice
    estimator.amplification_ = settings.amplification
    estimator.step_size_ = settings.step_size
    estimator.compares_ = "effects" if settings.scaling else "gradients"
    estimator.choice_ = fitted.reason
    estimator.environments_ = list(table.labels)
    estimator.directions_ = fitted.coordinates.directions
    estimator.coordinates_ = fitted.coordinates.name
    estimator.scale_ = table.scale
    estimator.response_scale_ = table.response_scale
    estimator.paths_ = fitted.washed.paths
