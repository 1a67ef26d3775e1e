"""From a standardised table to an invariant linear predictor, with its effects, their stability and advice."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.dynamics import Program
from holdfast.estimators.search.effects import effect_spread, effect_table, stability_table, well_measured
from holdfast.estimators.search.evidence import Evidence, explained_share, information_criterion
from holdfast.estimators.search.washout import SearchSettings, Washout, washout
from holdfast.losses.slopes import pooled_effects


class TableDescription(NamedTuple):
    """A table apart from its loss: names, labels and units.

    Attributes:
        names: of the features.
        labels: of the environments.
        scale: (features,), standard deviations.
        response_scale: standard deviation of the response; 1 for classes.
        constant: (features,), which features are constant.
        loss_scale: standard deviation of the response as the loss sees it: 1 for one that is standardised,
            sqrt(p (1 - p)) for two classes with the shares p and 1 - p.
        without_features: what is predicted if no feature is selected, in words.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    scale: np.ndarray
    response_scale: float
    constant: np.ndarray
    loss_scale: float
    without_features: str


def fit_linear(
    estimator: Any,
    table: TableDescription,
    systems: Sequence[Coordinates],
    problem: Callable[[Coordinates], tuple[Evidence, Program]],
    seed: int,
) -> tuple[np.ndarray, float]:
    """Wash out in each coordinate system, use the one whose invariant part predicts best, and describe the result.

    Args:
        estimator: with the settings of the search; gets the attributes that describe the result.
        table: names, labels and units.
        systems: to be tried; one of them if the features are not rotated.
        problem: coordinate system -> the loss in it.
        seed: of the random orders of the environments.

    Returns:
        The coefficients, in the units of the table, and the response at the mean of all features, less its own mean.
    """
    settings = SearchSettings(
        estimator.significance, estimator.orders, seed, estimator.step_size, estimator.amplification
    )
    tried = []
    for system in systems:
        evidence, program = problem(system)
        washed = washout(evidence, program, settings)
        criterion = information_criterion(evidence, washed.fitted, washed.selected.sum())
        tried.append((criterion, system, evidence, washed))
    _, system, evidence, washed = min(tried, key=lambda entry: entry[0])
    plain = system.name == "features"
    names = list(table.names) if plain else [f"{system.name} {number + 1}" for number in range(evidence.dimension)]
    units = table.response_scale / table.scale if plain else np.full(evidence.dimension, table.response_scale)
    fitted, slopes, chosen = washed.fitted, washed.slopes, washed.settings
    pooled = pooled_effects(slopes, evidence.weights, fitted.coefficients)
    estimator.effects_ = effect_table(slopes, fitted.coefficients, names, table.labels) * units
    estimator.stability_ = stability_table(
        estimator.effects_.where(well_measured(slopes)),
        "feature",
        coefficient=fitted.coefficients * units,
        exponent=washed.exponents,
        spread=effect_spread(slopes) / np.maximum(np.abs(pooled), 1e-12),
        varies=washed.varies,
        survived=washed.paths.survived.mean(0),
    )
    findings = TableFindings(
        estimator.stability_,
        washed.selected,
        table.labels,
        evidence.counts,
        np.asarray(slopes.intercept) / table.loss_scale,
        explained_share(evidence, fitted),
        explained_share(evidence, washed.pooled),
        washed.pooled_test.significance,
        washed.test.significance,
        chosen,
        [name for name, flat in zip(table.names, table.constant, strict=True) if flat],
        table.without_features,
    )
    estimator.advice_ = advise(findings)
    estimator.choice_ = _reason(washed)
    estimator.invariant_ = washed.selected
    estimator.step_size_, estimator.amplification_ = chosen.step_size, chosen.amplification
    estimator.compares_ = chosen.compared
    estimator.environments_ = list(table.labels)
    estimator.coordinates_, estimator.directions_ = system
    estimator.scale_, estimator.response_scale_ = table.scale, table.response_scale
    estimator.paths_ = washed.paths
    return system.directions @ fitted.coefficients * table.response_scale / table.scale, fitted.intercept


def _reason(washed: Washout) -> str:
    """Why this amplification and step size."""
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
        f"washing strength eta (1 + k)^2 = {strength:.3g}, comparing {settings.compared}: {exponents}; {agreeing} of "
        f"{runs} runs ended exactly at the selected features; {washed.sets_tried} sets of features were examined"
    )
