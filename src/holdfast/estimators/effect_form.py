"""Invariance of the class given the features: effects in log-odds, of one class against all others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core.moments import Scaling
from holdfast.core.progress import Progress, stages
from holdfast.estimators.advice import pooling_sentences
from holdfast.estimators.class_inference import softmax_errors
from holdfast.estimators.effects import EffectTables, logistic_effects
from holdfast.estimators.inference import blended_logistic_covariance
from holdfast.estimators.linear import STAGE, Predictors, TableDescription, TableProblem, fit_linear
from holdfast.estimators.pooling import Pooling, choose_pooling
from holdfast.estimators.search.coordinates import Coordinates, coordinate_systems
from holdfast.estimators.search.discriminant import ClassScores, blend
from holdfast.estimators.search.dynamics import logistic_program
from holdfast.estimators.search.evidence import logistic_evidence
from holdfast.estimators.search.logistic_fit import held_out_logistic_losses, softmax_regression


class ClassRows(NamedTuple):
    """The rows of a table with classes.

    Attributes:
        z: (rows, features), in standard units.
        codes: (rows,), the number of the class of each row.
        classes: their labels.
        weights: (rows,), how many rows each row stands for.
        parts: the positions of the rows of each environment.
        labels: of the environments.
        names: of the features.
        scaling: the units.
        response: the name of the labels.
    """

    z: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    parts: Sequence[np.ndarray]
    labels: Sequence[Any]
    names: Sequence[str]
    scaling: Scaling
    response: str = "y"

    @property
    def counts(self) -> np.ndarray:
        """(environments,), rows."""
        return np.array([self.weights[own].sum() for own in self.parts])

    def one_against_all(self, number: int, directions: np.ndarray | None = None) -> list[LogisticRows]:
        """The rows of each environment for the logistic loss of one class, in coordinates z^T directions."""
        columns = (self.z if directions is None else self.z @ directions).T
        positive = (self.codes == number).astype(float)
        return [LogisticRows(columns[:, own], positive[own], self.weights[own]) for own in self.parts]


class EffectForm(NamedTuple):
    """The features whose effects on the log-odds are equal in all environments, and their logistic regression.

    Attributes:
        blended, strict, pooled: coefficients, (1, features) of two classes and (classes, features) of more, in the
            units of the table, and intercepts at the mean of all features.
        attributes: what `fit_linear` found, by the names of the attributes of the estimator.
    """

    blended: ClassScores
    strict: ClassScores
    pooled: ClassScores
    attributes: dict[str, Any]


def fit_effects(
    rows: ClassRows, settings: Mapping[str, Any], seed: int, progress: Progress | None = None
) -> EffectForm:
    """Compare effects, of the second of two classes, or of each of more classes against all others.

    Of more than two classes, a feature is selected if the search for some class selects it and its effect varies for
    none; multinomial logistic regression gives the coefficients, so that probabilities add up to one.

    Args:
        rows: the table.
        settings: the arguments of the estimator.
        seed: of the random orders of the environments.
        progress: called with (done, total).
    """
    second = np.stack([
        (rows.z[own] * rows.weights[own, None]).T @ rows.z[own] / rows.weights[own].sum() for own in rows.parts
    ])  # fmt: skip
    systems = coordinate_systems(second, rows.counts, settings["rotation"])
    if len(rows.classes) == 2:
        attributes, found = _search(rows, 1, systems, settings, seed, progress)
        blended, strict, pooled = (
            ClassScores(model.coefficients[None], np.atleast_1d(model.intercept)) for model in found
        )
        return EffectForm(blended, strict, pooled, attributes)
    tried, classes = [], len(rows.classes)
    reports = stages(progress, [STAGE] * (len(systems) * classes))
    for number, system in enumerate(systems):
        own = reports[number * classes :]
        parts = [_search(rows, one, [system], settings, seed, own[one])[0] for one in range(classes)]
        varies = np.any([each["effect_tables_"].stability["varies"] for each in parts], axis=0)
        selected = np.any([each["invariant_"] for each in parts], axis=0) & ~varies
        strict = _softmax(rows, system.directions[:, selected])
        chances = log_softmax(rows.z @ strict.coefficients.T + strict.intercepts, axis=1)
        deviance = -2 * rows.weights @ np.take_along_axis(chances, rows.codes[:, None], 1)[:, 0]
        parameters = (len(rows.classes) - 1) * selected.sum()
        criterion = float(deviance + parameters * np.log(max(rows.weights.sum(), 2.0)))
        tried.append((criterion, system, parts, selected, strict))
    _, system, parts, selected, strict = min(tried, key=lambda entry: entry[0])
    varies = np.any([each["effect_tables_"].stability["varies"] for each in parts], axis=0)

    def held_out(columns: np.ndarray) -> np.ndarray:
        every = range(len(rows.classes))
        losses = (held_out_logistic_losses(rows.one_against_all(each, system.directions), columns) for each in every)
        return np.sum(list(losses), axis=0)

    weights = rows.counts / rows.counts.sum()
    pooling = choose_pooling(settings["pooling"], held_out, weights, selected, float(varies.mean()))
    pooled = _softmax(rows, system.directions)
    standard = (strict, pooled)
    strict, pooled = (ClassScores(each.coefficients / rows.scaling.scale, each.intercepts) for each in standard)
    blended = blend(strict, pooled, pooling.weight)
    a = pooling.weight
    fits = [(1 - a, system.directions[:, selected], standard[0]), (a, system.directions, standard[1])]
    errors = softmax_errors(rows.z, rows.codes, rows.weights, rows.parts, fits) / rows.scaling.scale
    parameters = (len(rows.classes) - 1) * (1 + (len(selected) if a else int(selected.sum())))
    if rows.weights.sum() <= parameters:
        errors = np.full_like(errors, np.nan)
    attributes = _together(rows, parts, selected, varies, blended, errors, pooling, settings["pooling"])
    return EffectForm(blended, strict, pooled, attributes)


def _softmax(rows: ClassRows, directions: np.ndarray) -> ClassScores:
    """Multinomial regression on some directions, as scores of the features in standard units."""
    scores = softmax_regression((rows.z @ directions).T, rows.codes, len(rows.classes), rows.weights)
    return ClassScores(scores.coefficients @ directions.T, scores.intercepts)


def _search(
    rows: ClassRows,
    number: int,
    systems: Sequence[Coordinates],
    settings: Mapping[str, Any],
    seed: int,
    progress: Progress | None,
) -> tuple[dict[str, Any], Predictors]:
    """The search for one class against all others: its attributes and its coefficients."""
    share = float(np.average(rows.codes == number, weights=rows.weights))
    scaling = rows.scaling
    table = TableDescription(
        rows.names,
        rows.labels,
        scaling.scale,
        1.0,
        scaling.constant,
        float(np.sqrt(share * (1 - share))),
        "the share of each class, whatever the features are",
        "classification",
        rows.response,
    )

    def problem(system: Coordinates) -> TableProblem:
        parts = rows.one_against_all(number, None if system.name == "features" else system.directions)
        tolerance = settings["tolerance"]
        return TableProblem(
            logistic_evidence(parts, tolerance),
            logistic_program(parts, tolerance, seed),
            partial(logistic_effects, parts),
            partial(blended_logistic_covariance, parts),
        )

    found = SimpleNamespace(**settings)
    predictors = fit_linear(found, table, systems, problem, seed, progress)
    return {name: value for name, value in vars(found).items() if name not in settings}, predictors


def _together(
    rows: ClassRows,
    found: Sequence[Mapping[str, Any]],
    selected: np.ndarray,
    varies: np.ndarray,
    blended: ClassScores,
    coefficient_errors: np.ndarray,
    pooling: Pooling,
    asked: Any,
) -> dict[str, Any]:
    """The attributes of the searches for the single classes, as those of one search.

    Tables have the effects of each feature on the class for which they have the widest range.
    Coefficients and their errors are those of that class, measured from the mean over all classes.
    """
    tables = [each["effect_tables_"] for each in found]
    ranges = [table.stability["highest_effect"] - table.stability["lowest_effect"] for table in tables]
    widest = np.argmax(np.nan_to_num(ranges), axis=0)
    features = tables[0].stability.index
    effects, errors, degrees = (
        pd.concat([getattr(tables[number], part)[name] for name, number in zip(features, widest, strict=True)], axis=1)
        for part in ("effects", "errors", "degrees")
    )
    rows_of = [tables[number].stability.loc[[name]] for name, number in zip(features, widest, strict=True)]
    plain = found[0]["coordinates_"] == "features"
    centred = blended.coefficients - blended.coefficients.mean(0)
    own = np.take_along_axis(centred, widest[None], 0)[0] if plain else np.nan
    own_error = np.take_along_axis(coefficient_errors, widest[None], 0)[0] if plain else np.nan
    stability = pd.concat(rows_of).assign(coefficient=own, standard_error=own_error, varies=varies, selected=selected)
    effect_tables = EffectTables(effects, errors, degrees, stability)
    names = np.asarray(features)
    advice = [
        "Tables have the effects and the coefficient of a feature on the class for which its effects range widest.",
        f"Selected for all {len(rows.classes)} classes together: {', '.join(map(str, names[selected])) or 'none'}.",
    ]
    if varies.any():
        verdict = f"{'Washed out, because the' if pooling.weight == 0 else 'The'} effect on some class varies"
        advice.append(f"{verdict}: {', '.join(map(str, names[varies]))}.")
    if len(rows.labels) > 1 and not selected.all():
        advice += pooling_sentences(pooling, asked == "auto")
    shared = [sentence for sentence in found[0]["advice_"] if all(sentence in each["advice_"] for each in found)]
    summaries = [each["_summary"] for each in found]
    summary = replace(
        summaries[0],
        stability=stability,
        explained=float(np.mean([each.explained for each in summaries])),
        explained_by_all=float(np.mean([each.explained_by_all for each in summaries])),
        pooling=pooling.weight,
        of_class=tuple(rows.classes[number] for number in widest),
    )
    return dict(found[0]) | {
        "effect_tables_": effect_tables,
        "_summary": summary,
        "advice_": advice + [sentence for sentence in shared if sentence not in advice],
        "invariant_": selected,
        "pooling_": pooling.weight,
    }
