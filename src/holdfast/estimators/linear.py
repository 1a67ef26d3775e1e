"""From a standardised table to a linear predictor, with its effects, their stability and advice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.pooling import Pooling, choose_pooling
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.dynamics import CoefficientPaths, Program
from holdfast.estimators.search.effects import effect_spread, effect_table, stability_table, well_measured
from holdfast.estimators.search.evidence import Evidence, LinearModel, explained_share, tolerant_slopes
from holdfast.estimators.search.feature_sets import Groups
from holdfast.estimators.search.selection import Selection, select
from holdfast.estimators.search.washout import RunSettings, Washing, Washout, washing_of
from holdfast.losses.slopes import Slopes, pooled_effects


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


@dataclass(frozen=True)
class _RunsOnDemand:
    """The runs that end nearest to the selected features, made when they are first asked for."""

    washing: Washing
    selection: Selection
    slopes: Slopes
    names: Sequence[str]

    @cached_property
    def result(self) -> Washout:
        return self.washing.towards(self.selection.selected, self.selection.fitted, self.slopes)


class SimulatedDynamics:
    """What SGD itself does on the table; reading one of these attributes runs it, once.

    Attributes:
        paths_: coefficients (of standardised variables) in runs of several random orders of the environments.
        amplification_, step_size_: of these runs, chosen so that they end nearest to the invariant features.
        washout_: table of features: the exponent of each, and the share of the runs in which it survived.
        choice_: why this amplification and step size, in words.
    """

    _runs: _RunsOnDemand

    def _washout(self) -> Washout:
        check_is_fitted(self)
        return self._runs.result

    @property
    def paths_(self) -> CoefficientPaths:
        """Coefficients of standardised variables in the runs."""
        return self._washout().paths

    @property
    def amplification_(self) -> float:
        """The amplification k of the runs."""
        return self._washout().settings.amplification

    @property
    def step_size_(self) -> float:
        """The step size eta of the runs."""
        return self._washout().settings.step_size

    @property
    def washout_(self) -> pd.DataFrame:
        """Features x (exponent, survived)."""
        found = self._washout()
        columns = {"exponent": found.exponents, "survived": found.paths.survived.mean(0)}
        return pd.DataFrame(columns, index=pd.Index(self._runs.names, name="feature"))

    @property
    def choice_(self) -> str:
        """Why this amplification and step size."""
        found, selection = self._washout(), self._runs.selection
        if selection.pooled_test.degrees == 0:
            return "one environment: nothing to amplify"
        strength = found.settings.step_size * (1 + found.settings.amplification) ** 2
        dying = selection.varies & ~selection.selected
        exponents = (
            f"the exponents of what varies are at most {found.exponents[dying].max():.2g}"
            if dying.any()
            else "no other effect varies beyond sampling error"
        )
        agreeing = int((found.paths.survived == selection.selected).all(1).sum())
        return (
            f"washing strength eta (1 + k)^2 = {strength:.3g}, comparing {found.settings.compared}: {exponents}; "
            f"{agreeing} of {len(found.paths.coefficients)} runs ended exactly at the invariant features"
        )


class Predictors(NamedTuple):
    """Coefficients in the units of the table, and the response at the mean of all features, less its own mean.

    Attributes:
        blended: (1 - a) strict + a pooled.
        strict: the pooled fit of the invariant features.
        pooled: the pooled fit of all features.
    """

    blended: LinearModel
    strict: LinearModel
    pooled: LinearModel


def fit_linear(
    estimator: Any,
    table: TableDescription,
    systems: Sequence[Coordinates],
    problem: Callable[[Coordinates], tuple[Evidence, Program]],
    seed: int,
) -> Predictors:
    """Select in each coordinate system, use the one whose invariant part predicts best, and describe the result.

    Args:
        estimator: with the settings of the search; gets the attributes that describe the result.
        table: names, labels and units.
        systems: to be tried; one of them if the features are not rotated.
        problem: system -> the evidence and the program of the table in its coordinates.
        seed: of the runs.
    """
    settings = RunSettings(estimator.significance, estimator.orders, seed, estimator.step_size, estimator.amplification)
    tried = []
    for system in systems:
        evidence, program = problem(system)
        groups = _groups(estimator, evidence.dimension)
        washing = washing_of(evidence, program, settings)
        starts = None
        if estimator.search == "dynamics":
            starts = [_touched(groups, alive) for alive in washing.survivors()]
        found = select(evidence, groups, settings.significance, starts, eliminate=estimator.search == "elimination")
        tried.append((system, evidence, washing, found))
    system, evidence, washing, selection = min(tried, key=lambda entry: entry[-1].criterion)
    plain = system.name == "features"
    names = list(table.names) if plain else [f"{system.name} {number + 1}" for number in range(evidence.dimension)]
    units = table.response_scale / table.scale if plain else np.full(evidence.dimension, table.response_scale)
    fitted = selection.fitted
    slopes = evidence.slopes(fitted)
    pooled = pooled_effects(slopes, evidence.weights, fitted.coefficients)
    estimator.effects_ = effect_table(slopes, fitted.coefficients, names, table.labels) * units
    estimator.stability_ = stability_table(
        estimator.effects_.where(well_measured(slopes)),
        "feature",
        coefficient=fitted.coefficients * units,
        exponent=0 * fitted.coefficients,
        spread=effect_spread(slopes) / np.maximum(np.abs(pooled), 1e-12),
        varies=selection.varies,
        survived=0 * fitted.coefficients,
    )
    pooling = choose_pooling(evidence, selection.selected, selection.varying)
    if estimator.pooling != "auto":
        pooling = pooling._replace(weight=float(estimator.pooling))
    estimator.findings_ = TableFindings(
        estimator.stability_,
        selection,
        pooling,
        estimator.pooling == "auto",
        table.labels,
        evidence.counts,
        np.asarray(slopes.intercept) / table.loss_scale,
        explained_share(evidence, fitted),
        explained_share(evidence, selection.pooled),
        [name for name, flat in zip(table.names, table.constant, strict=True) if flat],
        table.without_features,
    )
    estimator.advice_ = advise(estimator.findings_)
    estimator.invariant_ = selection.selected
    estimator.pooling_ = pooling.weight
    estimator.environments_ = list(table.labels)
    estimator.coordinates_, estimator.directions_ = system
    estimator.scale_, estimator.response_scale_ = table.scale, table.response_scale
    tolerated = Slopes(*map(np.asarray, tolerant_slopes(evidence, fitted)))
    estimator._runs = _RunsOnDemand(washing, selection, tolerated, names)

    def in_units(model: LinearModel) -> LinearModel:
        coefficients = system.directions @ model.coefficients * table.response_scale / table.scale
        return LinearModel(coefficients, model.intercept)

    strict, everything = in_units(fitted), in_units(selection.pooled)
    return Predictors(_blend(strict, everything, pooling), strict, everything)


def _blend(strict: LinearModel, pooled: LinearModel, pooling: Pooling) -> LinearModel:
    a = pooling.weight
    coefficients = (1 - a) * strict.coefficients + a * pooled.coefficients
    return LinearModel(coefficients, (1 - a) * strict.intercept + a * pooled.intercept)


def _groups(estimator: Any, features: int) -> Groups:
    if estimator.groups is None:
        return Groups(np.arange(features))
    if estimator.rotation:
        raise ValueError("groups must be None with rotation=True, which mixes the features, got labels")
    labels = list(estimator.groups)
    if len(labels) != features or pd.Series(labels, dtype=object).isna().any():
        raise ValueError(f"groups must hold one label for each of the {features} features, got {len(labels)} labels")
    single = {label: number for number, label in enumerate(dict.fromkeys(x for x in labels if not _is_pair(x, labels)))}
    needed = [label if _is_pair(label, labels) else (label, label) for label in labels]
    first, second = (np.array([single[pair[side]] for pair in needed]) for side in (0, 1))
    return Groups(first) if np.array_equal(first, second) else Groups(first, second)


def _is_pair(label: Any, labels: Sequence) -> bool:
    """Whether this is the label of an interaction: a pair of two other labels."""
    single = isinstance(label, tuple) and len(label) == 2 and not any(isinstance(one, tuple) for one in label)
    return single and all(one in labels for one in label)


def _touched(groups: Groups, alive: np.ndarray) -> np.ndarray:
    """(groups,): those with a feature that is alive."""
    return np.array([alive[columns].any() for columns in groups.columns])
