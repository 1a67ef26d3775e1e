"""Invariance of the class given the features: effects in log-odds, of one class against all others."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core.moments import standard_units
from holdfast.core.progress import Progress, stages
from holdfast.estimators.contract import ArrayRows
from holdfast.estimators.description import TableDescription, TableFindings, class_table
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.inference import softmax_errors
from holdfast.estimators.linear import STAGE, SearchSettings, fit_linear
from holdfast.estimators.pooling import LinearModel, blend, choose_pooling
from holdfast.estimators.search.coordinates import Coordinates, coordinate_systems
from holdfast.estimators.search.evidence import Evidence, logistic_evidence
from holdfast.estimators.search.logistic_fit import held_out_logistic_losses, softmax_regression


class ClassRows(NamedTuple):
    """The rows of a table with classes.

    Attributes:
        z: (rows, features), in standard units.
        codes: (rows,), the number of the class of each row.
        classes: their labels.
        weights: (rows,), how many rows each row stands for.
        parts: the positions of the rows of each environment.
        table: names, labels and units.
    """

    z: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    parts: Sequence[np.ndarray]
    table: TableDescription

    @property
    def counts(self) -> np.ndarray:
        """(environments,), rows."""
        return np.array([self.weights[own].sum() for own in self.parts])

    def one_against_all(self, number: int, directions: np.ndarray | None = None) -> list[LogisticRows]:
        """The rows of each environment for the logistic loss of one class, in coordinates z^T directions."""
        columns = (self.z if directions is None else self.z @ directions).T
        positive = (self.codes == number).astype(float)
        return [LogisticRows(columns[:, own], positive[own], self.weights[own]) for own in self.parts]


def class_rows(rows: ArrayRows, names: Sequence[str], classes: np.ndarray) -> ClassRows:
    """Rows with classes in standard units."""
    scaling = standard_units(rows.x, rows.weights)
    table = class_table(names, rows.grouping.labels, scaling, classes, rows.response)
    codes = np.searchsorted(classes, rows.y)
    return ClassRows(scaling.apply(rows.x), codes, classes, rows.weights, rows.grouping.rows(), table)


def fit_effects(rows: ClassRows, settings: SearchSettings, progress: Progress | None = None) -> TableFindings:
    """Compare effects, of the second of two classes, or of each of more classes against all others.

    Coefficients are (1, features) of two classes, and (classes, features) of more. Of these, tables have the effects of
    each feature on the class for which they have the widest range, with the coefficients of that class, measured from
    the mean over all classes.

    Of more than two classes, a feature is selected if the search for some class selects it and its effect varies for
    none; multinomial logistic regression gives the coefficients, so that probabilities add up to one.

    Args:
        rows: the table.
        settings: of the search.
        progress: called with (done, total).
    """
    second = np.stack([
        (rows.z[own] * rows.weights[own, None]).T @ rows.z[own] / rows.weights[own].sum() for own in rows.parts
    ])  # fmt: skip
    systems = coordinate_systems(second, rows.counts, settings.rotation)
    if len(rows.classes) == 2:
        found = _search(rows, 1, systems, settings, progress)
        strict, pooled = (LinearModel(w[None], np.array([intercept])) for w, intercept in (found.strict, found.pooled))
        return found._replace(strict=strict, pooled=pooled)
    return _of_several(rows, systems, settings, progress)


def _of_several(
    rows: ClassRows, systems: Sequence[Coordinates], settings: SearchSettings, progress: Progress | None
) -> TableFindings:
    """The fit of more than two classes: each is searched for by itself, and multinomial regression joins them."""
    tried, classes = [], range(len(rows.classes))
    reports = iter(stages(progress, [STAGE] * (len(systems) * len(classes))))
    for system in systems:
        parts = [_search(rows, one, [system], settings, next(reports)) for one in classes]
        varies = np.any([part.varies for part in parts], axis=0)
        selected = np.any([part.selected for part in parts], axis=0) & ~varies
        strict = _softmax(rows, system.directions[:, selected])
        chances = log_softmax(rows.z @ strict.coefficients.T + strict.intercept, axis=1)
        deviance = -2 * rows.weights @ np.take_along_axis(chances, rows.codes[:, None], 1)[:, 0]
        parameters = (len(classes) - 1) * selected.sum()
        criterion = float(deviance + parameters * np.log(max(rows.weights.sum(), 2.0)))
        tried.append((criterion, system, parts, selected, varies, strict))
    _, system, parts, selected, varies, strict = min(tried, key=lambda entry: entry[0])

    def held_out(columns: np.ndarray) -> np.ndarray:
        losses = (held_out_logistic_losses(rows.one_against_all(each, system.directions), columns) for each in classes)
        return np.sum(list(losses), axis=0)

    weights = rows.counts / rows.counts.sum()
    pooling = choose_pooling(settings.pooling, held_out, weights, selected, float(varies.mean()))
    pooled, a = _softmax(rows, system.directions), pooling.weight
    fits = [(1 - a, system.directions[:, selected], strict), (a, system.directions, pooled)]
    errors = softmax_errors(rows.z, rows.codes, rows.weights, rows.parts, fits)
    if rows.weights.sum() <= (len(classes) - 1) * (1 + (len(selected) if a else int(selected.sum()))):
        errors = np.full_like(errors, np.nan)
    tables, widest = _of_widest(parts)
    own = own_error = np.nan
    if system.name == "features":
        coefficients = blend(strict, pooled, a).coefficients
        own, own_error = (
            np.take_along_axis(part, widest[None], 0)[0] / rows.table.scaling.scale
            for part in (coefficients - coefficients.mean(0), errors)
        )
    stability = tables.stability.assign(coefficient=own, standard_error=own_error, varies=varies, selected=selected)
    explained, explained_by_all, explained_by_fit = np.mean(
        [[each.explained, each.explained_by_all, each.explained_by_fit] for each in parts], axis=0
    ).tolist()
    return parts[0]._replace(
        strict=strict,
        pooled=pooled,
        tables=tables._replace(stability=stability),
        pooling=pooling,
        explained=explained,
        explained_by_all=explained_by_all,
        explained_by_fit=explained_by_fit,
        of_class=tuple(rows.classes[widest]),
        levels=max((each.levels for each in parts), key=np.ptp),
        equality=min(each.equality for each in parts),
        pooled_equality=min(each.pooled_equality for each in parts),
        first=("For each feature, tables show the class on which its effects range widest.",),
    )


def _of_widest(found: Sequence[TableFindings]) -> tuple[EffectTables, np.ndarray]:
    """The effects of each feature on the class for which they range widest, and the numbers of these classes."""
    tables = [each.tables for each in found]
    ranges = [table.stability["highest_effect"] - table.stability["lowest_effect"] for table in tables]
    widest = np.argmax(np.nan_to_num(ranges), axis=0)
    names = tables[0].stability.index
    effects, errors, degrees = (
        pd.DataFrame({name: getattr(tables[number], part)[name] for name, number in zip(names, widest, strict=True)})
        for part in ("effects", "errors", "degrees")
    )
    stability = pd.concat([tables[number].stability.iloc[[place]] for place, number in enumerate(widest)])
    return EffectTables(effects, errors, degrees, stability), widest


def _softmax(rows: ClassRows, directions: np.ndarray) -> LinearModel:
    """Multinomial regression on some directions, as scores of the features in standard units."""
    scores = softmax_regression((rows.z @ directions).T, rows.codes, len(rows.classes), rows.weights)
    return LinearModel(scores.coefficients @ directions.T, scores.intercept)


def _search(
    rows: ClassRows,
    number: int,
    systems: Sequence[Coordinates],
    settings: SearchSettings,
    progress: Progress | None,
) -> TableFindings:
    """The search for one class against all others."""

    def evidence_in(system: Coordinates) -> Evidence:
        directions = None if system.name == "features" else system.directions
        return logistic_evidence(rows.one_against_all(number, directions), settings.tolerance)

    return fit_linear(settings, rows.table, systems, evidence_in, progress)
