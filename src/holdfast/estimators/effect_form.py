"""Invariance of the class given the features: effects in log-odds, of one class against all others."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from holdfast.estimators.linear import TableDescription, fit_linear
from holdfast.estimators.scaling import Scaling
from holdfast.estimators.search.coordinates import Coordinates, coordinate_systems
from holdfast.estimators.search.discriminant import ClassScores
from holdfast.estimators.search.dynamics import logistic_program
from holdfast.estimators.search.evidence import logistic_evidence
from holdfast.estimators.search.logistic_fit import softmax_regression
from holdfast.losses.logistic import LogisticRows


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
    """

    z: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    parts: Sequence[np.ndarray]
    labels: Sequence[Any]
    names: Sequence[str]
    scaling: Scaling

    def one_against_all(self, number: int, directions: np.ndarray | None = None) -> list[LogisticRows]:
        """The rows of each environment for the logistic loss of one class, in coordinates z^T directions."""
        columns = (self.z if directions is None else self.z @ directions).T
        positive = (self.codes == number).astype(float)
        return [LogisticRows(columns[:, own], positive[own], self.weights[own]) for own in self.parts]


class EffectForm(NamedTuple):
    """The features whose effects on the log-odds are equal in all environments, and their logistic regression.

    Attributes:
        coefficients: (1, features) of two classes, (classes, features) of more, in the units of the table.
        intercepts: (1,) or (classes,), at the mean of all features.
        attributes: what `fit_linear` found, by the names of the attributes of the estimator.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    attributes: dict[str, Any]


def fit_effects(rows: ClassRows, settings: Mapping[str, Any], seed: int) -> EffectForm:
    """Compare effects, of the second of two classes, or of each of more classes against all others.

    Of more than two classes, a feature is selected if the search for some class selects it and its effect varies for
    none; multinomial logistic regression gives the coefficients, so that probabilities add up to one.

    Args:
        rows: the table.
        settings: the arguments of the estimator.
        seed: of the random orders of the environments.
    """
    counts = np.array([rows.weights[own].sum() for own in rows.parts])
    second = np.stack([
        (rows.z[own] * rows.weights[own, None]).T @ rows.z[own] / rows.weights[own].sum() for own in rows.parts
    ])  # fmt: skip
    systems = coordinate_systems(second, counts, settings["rotation"])
    if len(rows.classes) == 2:
        attributes, coefficients, intercept = _search(rows, 1, systems, settings, seed)
        return EffectForm(coefficients[None], np.atleast_1d(intercept), attributes)
    tried = []
    for system in systems:
        found = [_search(rows, number, [system], settings, seed)[0] for number in range(len(rows.classes))]
        varies = np.any([each["stability_"]["varies"] for each in found], axis=0)
        selected = np.any([each["invariant_"] for each in found], axis=0) & ~varies
        columns = (rows.z @ system.directions[:, selected]).T
        scores = softmax_regression(columns, rows.codes, len(rows.classes), rows.weights)
        chances = log_softmax(columns.T @ scores.coefficients.T + scores.intercepts, axis=1)
        deviance = -2 * rows.weights @ np.take_along_axis(chances, rows.codes[:, None], 1)[:, 0]
        parameters = (len(rows.classes) - 1) * selected.sum()
        criterion = float(deviance + parameters * np.log(max(rows.weights.sum(), 2.0)))
        tried.append((criterion, system, found, selected, scores))
    _, system, found, selected, scores = min(tried, key=lambda entry: entry[0])
    directions = system.directions[:, selected]
    return EffectForm(
        scores.coefficients @ directions.T / rows.scaling.scale,
        scores.intercepts,
        _together(rows, found, selected, scores, plain=system.name == "features"),
    )


def _search(
    rows: ClassRows, number: int, systems: Sequence[Coordinates], settings: Mapping[str, Any], seed: int
) -> tuple[dict[str, Any], np.ndarray, float]:
    """The search for one class against all others: its attributes, coefficients and intercept."""
    share = float(np.average(rows.codes == number, weights=rows.weights))
    deviation, words = float(np.sqrt(share * (1 - share))), "the share of each class, whatever the features are"
    scaling = rows.scaling
    table = TableDescription(rows.names, rows.labels, scaling.scale, 1.0, scaling.constant, deviation, words)

    def problem(system: Coordinates):
        parts = rows.one_against_all(number, None if system.name == "features" else system.directions)
        tolerance = settings["tolerance"]
        return logistic_evidence(parts, tolerance), logistic_program(parts, tolerance, seed)

    found = SimpleNamespace(**settings)
    coefficients, intercept = fit_linear(found, table, systems, problem, seed)
    return {name: value for name, value in vars(found).items() if name.endswith("_")}, coefficients, intercept


def _together(
    rows: ClassRows, found: Sequence[Mapping[str, Any]], selected: np.ndarray, scores: ClassScores, plain: bool
) -> dict[str, Any]:
    """The attributes of the searches for the single classes, as those of one search."""
    tables = {label: each["stability_"] for label, each in zip(rows.classes, found, strict=True)}
    features = found[0]["stability_"].index
    widest = pd.DataFrame({label: table["effect_range"] for label, table in tables.items()}).fillna(0.0)
    stability = pd.DataFrame(
        [tables[label].loc[feature] for feature, label in widest.idxmax(axis=1).items()], index=features
    ).astype(found[0]["stability_"].dtypes)
    own = np.zeros((len(rows.classes), len(features)))
    own[:, selected] = scores.coefficients / (rows.scaling.scale[selected] if plain else 1.0)
    largest = np.take_along_axis(own, np.abs(own).argmax(0)[None], 0)[0]
    varies = np.any([table["varies"] for table in tables.values()], axis=0)
    stability = stability.assign(
        coefficient=largest,
        varies=varies,
        exponent=np.min([table["exponent"] for table in tables.values()], axis=0),
        survived=np.min([table["survived"] for table in tables.values()], axis=0),
    )
    effects = pd.concat({label: each["effects_"] for label, each in zip(rows.classes, found, strict=True)}, axis=1)
    effects = effects.swaplevel(axis=1)[list(features)].rename_axis(columns=["feature", "class"])
    names = np.asarray(features)
    advice = [
        f"Selected for all {len(rows.classes)} classes together: {', '.join(map(str, names[selected])) or 'none'}."
    ]
    if varies.any():
        advice.append(f"Washed out, because the effect on some class varies: {', '.join(map(str, names[varies]))}.")
    advice += [sentence for sentence in found[0]["advice_"] if all(sentence in each["advice_"] for each in found)]
    return dict(found[0]) | {
        "stability_": stability,
        "effects_": effects,
        "advice_": advice,
        "invariant_": selected,
        "choice_": "; ".join(f"{label}: {each['choice_']}" for label, each in zip(rows.classes, found, strict=True)),
    }
