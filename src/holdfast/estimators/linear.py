"""From a standardised table to a linear predictor, with its effects, their stability and advice."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast.algorithms.losses.slopes import Slopes
from holdfast.core.progress import Progress, stages
from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.description import RunsOnDemand
from holdfast.estimators.effects import OwnEffects, describe_effects
from holdfast.estimators.inference import standard_errors
from holdfast.estimators.pooling import Pooling, choose_pooling
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.dynamics import Program
from holdfast.estimators.search.evidence import Evidence, LinearModel, explained_share, tolerant_slopes
from holdfast.estimators.search.feature_sets import Groups
from holdfast.estimators.search.selection import Selection, select
from holdfast.estimators.search.washout import RunSettings, washing_of
from holdfast.estimators.summary import TableSummary

STAGE = 100  # units of a progress bar for one search


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
        task: regression or classification.
        response: its name.
        own_levels: whether each environment has an intercept of its own.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    scale: np.ndarray
    response_scale: float
    constant: np.ndarray
    loss_scale: float
    without_features: str
    task: Literal["regression", "classification"]
    response: str = "y"
    own_levels: bool = False


class TableProblem(NamedTuple):
    """A table in some coordinates, with its loss.

    Attributes:
        evidence: for decisions, in double precision.
        program: for runs of SGD.
        own_effects: mask of the selected features -> the effects in each environment on its own.
        covariance: (strict fit, selected, pooled fit, a) -> (features, features), of the blended coefficients.
    """

    evidence: Evidence
    program: Program
    own_effects: Callable[[np.ndarray], OwnEffects]
    covariance: Callable[[LinearModel, np.ndarray, LinearModel, float], np.ndarray]


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
    problem: Callable[[Coordinates], TableProblem],
    seed: int,
    progress: Progress | None = None,
) -> Predictors:
    """Select in each coordinate system, use the one whose invariant part predicts best, and describe the result.

    Args:
        estimator: with the settings of the search; gets the attributes that describe the result.
        table: names, labels and units.
        systems: to be tried; one of them if the features are not rotated.
        problem: system -> the table in its coordinates.
        seed: of the runs.
        progress: called with (done, total).
    """
    settings = RunSettings(estimator.significance, estimator.n_runs, seed, estimator.step_size, estimator.amplification)
    tried = []
    for system, report in zip(systems, stages(progress, [STAGE] * len(systems)), strict=True):
        candidate = problem(system)
        groups = _groups(estimator, candidate.evidence.dimension)
        washing = washing_of(candidate.evidence, candidate.program, settings)
        starts = None
        if estimator.search == "dynamics":
            starts = [_touched(groups, alive) for alive in washing.survivors()]
        eliminate = estimator.search == "elimination"
        found = select(candidate.evidence, groups, settings.significance, starts, eliminate=eliminate, progress=report)
        tried.append((system, candidate, washing, found))
    system, chosen, washing, selection = min(tried, key=lambda entry: entry[-1].criterion)
    pooling = choose_pooling(
        estimator.pooling, chosen.evidence.held_out, chosen.evidence.weights, selection.selected, selection.varying
    )
    blended = _blend(selection.fitted, selection.pooled, pooling)
    estimator.coordinates_, estimator.directions_ = system
    _describe(estimator, table, chosen, selection, pooling, blended)
    tolerated = Slopes(*map(np.asarray, tolerant_slopes(chosen.evidence, selection.fitted)))
    estimator._runs = RunsOnDemand(washing, selection, tolerated, list(estimator.effect_tables_.stability.index))

    def in_units(model: LinearModel) -> LinearModel:
        coefficients = system.directions @ model.coefficients * table.response_scale / table.scale
        return LinearModel(coefficients, model.intercept)

    return Predictors(in_units(blended), in_units(selection.fitted), in_units(selection.pooled))


def _describe(
    estimator: Any,
    table: TableDescription,
    problem: TableProblem,
    selection: Selection,
    pooling: Pooling,
    blended: LinearModel,
) -> None:
    """Set the attributes that describe a fit: effects, summary, findings and advice."""
    evidence, strict, pooled = problem.evidence, selection.fitted, selection.pooled
    plain = estimator.coordinates_ == "features"
    numbers = range(1, evidence.dimension + 1)
    rows, environments = round(float(evidence.counts.sum())), len(evidence.counts)
    parameters = int(selection.selected.sum()) if pooling.weight == 0 else evidence.dimension
    covariance = problem.covariance(strict, selection.selected, pooled, pooling.weight)
    estimator.effect_tables_ = describe_effects(
        problem.own_effects(selection.selected),
        blended.coefficients,
        standard_errors(covariance, rows, parameters + (environments if table.own_levels else 1)),
        selected=selection.selected,
        varies=selection.varies,
        names=list(table.names) if plain else [f"{estimator.coordinates_} {number}" for number in numbers],
        labels=table.labels,
        units=table.response_scale / table.scale if plain else np.full(evidence.dimension, table.response_scale),
    )
    explained_by_all = explained_share(evidence, pooled)
    estimator._summary = TableSummary(
        estimator.effect_tables_.stability,
        table.task,
        rows,
        environments,
        explained_share(evidence, blended),
        explained_by_all,
        pooling.weight,
        "environment" if table.own_levels else "common",
        table.response,
    )
    estimator.findings_ = TableFindings(
        estimator.effect_tables_.stability,
        selection,
        pooling,
        estimator.pooling == "auto",
        table.labels,
        evidence.counts,
        np.asarray(evidence.slopes(strict).intercept) / table.loss_scale,
        explained_share(evidence, strict),
        explained_by_all,
        [name for name, flat in zip(table.names, table.constant, strict=True) if flat],
        table.without_features,
        table.task,
        estimator._summary.level,
        () if estimator.groups is None else list(estimator.groups),
    )
    estimator.advice_ = advise(estimator.findings_)
    estimator.invariant_, estimator.pooling_ = selection.selected, pooling.weight
    estimator.environments_ = list(table.labels)
    estimator.scale_, estimator.response_scale_ = table.scale, table.response_scale


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
