"""Invariant classification, and the search for effects in log-odds of one class against all others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from holdfast.algorithms.losses.logistic import BLOCK, LogisticRows
from holdfast.core.class_moments import class_statistics
from holdfast.core.moments import Scaling
from holdfast.core.progress import Progress, stages, watched
from holdfast.estimators.array_rows import ArrayRows, array_rows, class_codes
from holdfast.estimators.class_mean_form import fit_class_means
from holdfast.estimators.contract import LinearClassifier, SearchSettings, check_settings
from holdfast.estimators.description import (
    Coordinates,
    TableFindings,
    class_table,
    coordinate_systems,
)
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.linear import STAGE, DescribedFit, fit_linear
from holdfast.estimators.pooling import LinearModel, blend, choose_pooling
from holdfast.estimators.rows import ChunkRows, Rows, RowSums, dask_rows, sum_rows
from holdfast.estimators.search.class_evidence import LogisticEvidence
from holdfast.estimators.search.class_fits import softmax_regression
from holdfast.estimators.wide_tables import SMALL
from holdfast.tables.frames import is_dask_frame

Invariance = Literal["effects", "class_means"]


@dataclass(kw_only=True, eq=False, repr=False)
class HeteroClassifier(SearchSettings, DescribedFit, LinearClassifier):
    """Classification by what relates features and classes in the same way in all environments.

    There are two ways in which a relation can hold, and `invariance` says which is meant:

    - "effects": the class given the features is what stays (covariate shift). Logistic regression on the features whose
      effects on the log-odds are equal in all environments, as `HeteroRegressor` with the loss

          loss_e = mean over the rows of e of log(1 + exp(-s (z^T w + b))),    s = +-1

      Of more than two classes each is compared with all others, and multinomial regression gives the coefficients.
    - "class_means": the features given the class are what stays (label shift, noisy labels). A linear discriminant on
      the features in which the means of the classes differ by the same amount in all environments. With `rotation`, on
      the directions in which they do, after whitening by the covariance within classes.

    "auto" fits both and compares the log loss in each environment of logistic regressions fitted to all others on what
    either selects: class means are chosen if they explain more, effects otherwise.

    Fits of the "effects" have the weak ridge of one observation, so that they are finite if the classes can be
    separated; the advice says so if they are. They need all rows in one memory. Fits of the "class_means" need counts,
    means and covariances only, which add up: `fit` takes a Dask data frame for them, and `fit_chunks` any chunks.

    In both forms, part of the prediction comes from a fit of all features where the invariant ones explain too little
    in environments that were held out, as in `HeteroRegressor`, with log loss.

    Args:
        pooling: a: "auto", chosen from the data; 0, only what is invariant; 1, all features; or anything between.
        search: as in `HeteroRegressor`; matters when effects are compared.
        invariance: "auto", "effects" or "class_means".
        groups: one label for each feature; features of one label are selected and tested together. Only effects can be
            compared in groups, so "auto" compares effects if there are any. None: one by one.
        before, after: as in `HeteroRegressor`; "auto" compares effects if there are any.
        significance: level of the tests whether an effect or a difference varies. Smaller values select more features.
        tolerance: standard deviation of an effect, or of a difference between class means, over environments, as a
            share of it, that is too small to matter. With 0, the default, any variation beyond sampling error counts.
            A larger one needs more care than for regression: where classes are nearly separable, coefficients grow
            without bounds, and so does what is tolerated.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        verbose: 0: nothing is printed; 1: a progress bar on stderr; or a function of (done, total).

    Attributes:
        classes_: the labels.
        invariance_: "effects" or "class_means".
        coef_: (1, features), of the log-odds of the second of two classes, or (classes, features).
        intercept_: (1,) or (classes,).
        pooling_: a.
        strict_coef_, pooled_coef_: as `coef_`, of the invariant features alone, and of all features.
        effects_: environments x features, in log-odds; by `class_means`, those that a feature alone would have. Of more
            than two classes, on the one for which they have the widest range; `summary()` says which.
        invariant_, relations_, effect_tables_, advice_, environments_, directions_, coordinates_, scale_,
            response_scale_, passes_: as in `HeteroRegressor`.

    Example:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south", "west"], 1000)
        >>> cause = random.standard_normal(3000)
        >>> y = np.where(cause + random.logistic(size=3000) > 0, "yes", "no")
        >>> strength = np.repeat([2.0, 0.2, 1.0], 1000)
        >>> follower = strength * (y == "yes") + random.standard_normal(3000)
        >>> model = HeteroClassifier().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    invariance: Literal["auto", "effects", "class_means"] = "auto"

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: (rows, features); a data frame of pandas or Dask, or an array.
            y: (rows,), labels of two or more classes; with Dask, a column with the partitions of X.
            environments: one label for each row, of any kind, or the name of a column of X; None: one environment.
            sample_weight: how many rows each row stands for; with Dask, a column with the partitions of X.
        """
        given = (X, y, environments, sample_weight)
        return self._fit_rows(dask_rows(*given) if is_dask_frame(X) else array_rows(self, *given, classes=True))

    def fit_chunks(self, chunks: Iterable[tuple]) -> Self:
        """Fit to a table that does not fit into memory; `invariance` must be "class_means", which needs moments only.

        Args:
            chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight), in any order; read once.
        """
        return self._fit_rows(ChunkRows(chunks))

    def _fit_rows(self, rows: Rows) -> Self:
        check_settings(self)
        grouped = self.groups is not None and len(set(self.groups)) < len(list(self.groups))
        if grouped and self.invariance == "class_means":
            raise ValueError(
                'groups must be None for invariance="class_means", which compares features one by one, got labels'
            )
        ordered = any(np.size(columns) for columns in (self.before, self.after))
        if ordered and self.invariance == "class_means":
            raise ValueError(
                'before and after must be empty for invariance="class_means", where every feature follows the class, '
                "got columns"
            )
        table = rows if self.invariance == "class_means" else rows.together()
        if table is None:
            raise ValueError(
                f"invariance must be 'class_means' to fit {rows.name}, got {self.invariance!r}: effects need all rows "
                "in one memory"
            )
        total = table.sums(partial(sum_rows, classes=True))
        total.introduce(self)
        self.classes_, _ = class_codes(np.array(total.sums.classes))
        fits: dict[Invariance, TableFindings] = {}
        # covariances of so many features cannot be measured
        wide = self.invariance == "auto" and total.sums.features > max(SMALL, total.rows // 2)
        if self.invariance != "effects" and not (grouped or ordered or wide):
            settings = {name: getattr(self, name) for name in ("significance", "tolerance", "rotation", "pooling")}
            fits["class_means"] = fit_class_means(total.sums, total.features, response=total.response, **settings)
        if isinstance(table, ArrayRows) and self.invariance != "class_means":
            known = ClassRows(table, total, self.classes_, self.tolerance)
            with watched(self.verbose, "fitting") as progress:
                fits["effects"] = fit_effects(known, self, progress)
        chosen, reason = _choose(known, fits) if len(fits) == 2 else (next(iter(fits)), [])
        self.invariance_: Invariance = chosen
        self._describe(fits[chosen])
        # it travels to workers without the rest of the estimator
        separates = partial(_all_correct, self.coef_, self.intercept_, self.classes_)
        x, y, _ = total.drawn
        # one wrong row of the sample is enough to know
        separated = separates(x, y) and (len(y) == total.rows or table.all(separates))
        self.notes_ = [*reason, *self.notes_, *([_SEPARATED[chosen]] if separated else [])]
        self.passes_ = rows.passes.count
        return self


class ClassRows:
    """The rows of a table with classes, those of each environment together.

    Args:
        rows: that passed the checks.
        total: their sums, with means and standard deviations.
        classes: the labels.
        tolerance: of the evidence.

    Attributes:
        z: (rows, features), in standard units.
        codes: (rows,), the number of the class of each row.
        classes: their labels.
        weights: (rows,), how many rows each row stands for.
        parts: the rows of each environment, slices.
        table: names, labels and units.
    """

    def __init__(self, rows: ArrayRows, total: RowSums, classes: np.ndarray, tolerance: float):
        moments = class_statistics(total.sums)
        scaling = Scaling(moments.location, moments.scale, moments.constant)
        order = np.argsort(rows.grouping.codes, kind="stable")
        ends = np.cumsum(np.bincount(rows.grouping.codes, minlength=rows.grouping.count))
        self.parts = [slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        self.z, units = np.empty(rows.x.shape), ~scaling.constant / scaling.scale
        for begin in range(0, len(order), BLOCK):
            block = rows.x[order[begin : begin + BLOCK]]
            np.multiply(np.subtract(block, scaling.location, out=block), units, out=self.z[begin : begin + BLOCK])
        self.codes, self.weights, self.classes = np.searchsorted(classes, rows.y[order]), rows.weights[order], classes
        self.table = class_table(total.features, rows.grouping.labels, scaling, classes, rows.response)
        self._tolerance = tolerance
        self._evidence: dict[tuple[int, bytes | None], LogisticEvidence] = {}

    @property
    def counts(self) -> np.ndarray:
        """(environments,), rows."""
        return np.array([self.weights[own].sum() for own in self.parts])

    def evidence(self, number: int, system: Coordinates | None = None) -> LogisticEvidence:
        """The logistic loss of one class against all others, in some coordinates; None: the features themselves."""
        directions = None if system is None or system.name == "features" else system.directions
        key = number, None if directions is None else directions.tobytes()
        if key not in self._evidence:
            columns = (self.z if directions is None else self.z @ directions).T
            positive = (self.codes == number).astype(float)
            parts = [LogisticRows(columns[:, own], positive[own], self.weights[own]) for own in self.parts]
            self._evidence[key] = LogisticEvidence(parts, self._tolerance)
        return self._evidence[key]


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
    systems = [Coordinates("features", np.eye(len(rows.table.scaling.scale)))]
    if settings.rotation:
        systems = coordinate_systems(rows.evidence(1).second_moments().second, rows.counts, settings.rotation)
    if len(rows.classes) == 2:
        found = fit_linear(settings, rows.table, systems, partial(rows.evidence, 1), progress)
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
        parts = [
            fit_linear(settings, rows.table, [system], partial(rows.evidence, one), next(reports)) for one in classes
        ]
        varies = np.any([part.varies for part in parts], axis=0)
        selected = np.any([part.selected for part in parts], axis=0) & ~varies
        selected &= ~np.any([part.dropped for part in parts], axis=0)
        strict = _softmax(rows, system.directions[:, selected])
        chances = log_softmax(rows.z @ strict.coefficients.T + strict.intercept, axis=1)
        deviance = -2 * rows.weights @ np.take_along_axis(chances, rows.codes[:, None], 1)[:, 0]
        parameters = (len(classes) - 1) * selected.sum()
        criterion = float(deviance + parameters * np.log(max(rows.weights.sum(), 2.0)))
        tried.append((criterion, system, parts, selected, varies, strict))
    _, system, parts, selected, varies, strict = min(tried, key=lambda entry: entry[0])

    def held_out(columns: np.ndarray) -> np.ndarray:
        return np.sum([rows.evidence(each, system).held_out(columns) for each in classes], axis=0)

    weights = rows.counts / rows.counts.sum()
    pooling = choose_pooling(held_out, weights, selected, float(varies.mean())).or_asked(settings.pooling)
    dropped = np.any([part.dropped for part in parts], axis=0)
    pooled = _softmax(rows, system.directions[:, ~dropped])
    tables, widest = _of_widest(parts)
    own: Any = np.nan
    if system.name == "features":
        coefficients = blend(strict, pooled, pooling.weight).coefficients
        own = np.take_along_axis(coefficients - coefficients.mean(0), widest[None], 0)[0] / rows.table.scaling.scale
    relations = tables.relations.assign(coefficient=own, selected=selected)
    # ranks of several searches: of two equal ones the larger danger comes first
    relations["rank"] = np.argsort(np.lexsort((-relations["danger"].fillna(0), relations["rank"]))) + 1
    explained, explained_by_all, explained_by_fit = np.mean(
        [[each.explained, each.explained_by_all, each.explained_by_fit] for each in parts], axis=0
    ).tolist()
    return parts[0]._replace(
        strict=strict,
        pooled=pooled,
        tables=tables._replace(relations=relations),
        varies=varies,
        dropped=dropped,
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
    ranges = [table.relations["highest_effect"] - table.relations["lowest_effect"] for table in tables]
    widest = np.argmax(np.nan_to_num(ranges), axis=0)
    names = tables[0].relations.index
    effects, errors, degrees = (
        pd.DataFrame({name: getattr(tables[number], part)[name] for name, number in zip(names, widest, strict=True)})
        for part in ("effects", "errors", "degrees")
    )
    relations = pd.concat([tables[number].relations.iloc[[place]] for place, number in enumerate(widest)])
    return EffectTables(effects, errors, degrees, relations), widest


def _softmax(rows: ClassRows, directions: np.ndarray) -> LinearModel:
    """Multinomial regression on some directions, as scores of the features in standard units."""
    scores = softmax_regression((rows.z @ directions).T, rows.codes, len(rows.classes), rows.weights)
    return LinearModel(scores.coefficients @ directions.T, scores.intercept)


def _all_correct(
    coefficients: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray,
    X: Any,
    y: Any,
    environments: Any = None,
    positions: Any = None,
    weights: Any = None,
) -> bool:
    """Whether scores give the class of all rows that count."""
    scores = np.asarray(X, float) @ coefficients.T + intercept
    predicted = scores.argmax(1) if len(classes) > 2 else (scores[:, 0] > 0).astype(int)
    wrong = classes[predicted] != np.asarray(y)
    return not (wrong if weights is None else wrong & (np.asarray(weights) > 0)).any()


_SEPARATED = {
    "effects": "The scores classify every row of this table correctly: the classes are separable, so regularization "
    "decides the size of the coefficients, and probabilities near 0 and 1 mean little.",
    "class_means": "The scores classify every row of this table correctly: the classes are separable, so probabilities "
    "near 0 and 1 rest on the normal law that the discriminant assumes, not on observed errors.",
}


def _choose(rows: ClassRows, fits: Mapping[Invariance, TableFindings]) -> tuple[Invariance, list[str]]:
    """Which form of invariance explains more in environments that were not fitted, and a sentence about it."""
    if not any(fit.varies.any() for fit in fits.values()):
        return "effects", []  # nothing to choose by: logistic regression is the weaker assumption
    # of two classes one says it all
    numbers = range(1, 2) if len(rows.classes) == 2 else range(len(rows.classes))
    used: dict[str, tuple[Coordinates | None, np.ndarray]] = {"constant": (None, np.arange(0))}
    used |= {name: (fit.coordinates, np.flatnonzero(fit.selected)) for name, fit in fits.items()}
    weights = rows.counts / rows.counts.sum()
    loss = {
        name: sum(float(weights @ rows.evidence(number, system).held_out(columns)) for number in numbers)
        for name, (system, columns) in used.items()
    }
    share = {name: max(0.0, 1 - value / max(loss["constant"], 1e-300)) for name, value in loss.items()}
    words = (
        f"In held-out environments, features with equal class means explain {share['class_means']:.0%} of the log "
        f"loss, those with equal effects {share['effects']:.0%}"
    )
    if share["class_means"] > share["effects"]:
        return "class_means", [f'{words}: we assume that the features given the class stay (invariance="class_means").']
    return "effects", [f'{words}: we assume that the class given the features stays (invariance="effects").']
