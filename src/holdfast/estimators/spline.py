"""Invariant regression with smooth effects and interactions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.grouping import group_rows
from holdfast.core.moments import Scaling, standard_units, standardized
from holdfast.core.progress import Progress, stages, watched
from holdfast.estimators.advice import advise, listed, notes
from holdfast.estimators.array_rows import array_rows, two_classes
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.contract import FitSettings, Level, Search, check_settings, declared
from holdfast.estimators.description import TableFindings, rotated
from holdfast.estimators.effects import describe_effects
from holdfast.estimators.expansion import SAMPLED_ROWS, EffectExpansion, TermSettings, effect_curves
from holdfast.estimators.linear import TRUSTED, SummarizedFit
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.estimators.relations import find_relations
from holdfast.estimators.rows import ChunkRows, Rows, RowSums, dask_rows, sum_rows
from holdfast.estimators.screening import MOST_INTERACTING, logistic_errors, squared_errors
from holdfast.estimators.search.evidence import SquaredEvidence
from holdfast.tables.frames import is_dask_frame, map_rows

# Of a progress bar: looking for curves and products, the fit of straight lines, and the fit with curves and products.
STAGES = (30, 30, 40)


if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(kw_only=True, eq=False, repr=False)
class CurveSettings(TermSettings, FitSettings):
    """How invariant columns with curves and products are searched for; `HeteroSplineRegressor` explains the fields."""

    search: Search = "elimination"
    level: Level = "common"


class ExpandedFit(NamedTuple):
    """A linear model of the expansion of a table, and what it says about the columns of the table.

    Attributes:
        expansion: curves and products.
        model: of the expanded columns.
        findings: about the columns.
        columns: their sums.
        sums: those that the model was fitted to.
    """

    expansion: EffectExpansion
    model: HeteroRegressor | HeteroClassifier
    findings: TableFindings
    columns: RowSums
    sums: RowSums

    def describe(self, estimator: Any) -> None:
        """Set the attributes of an estimator of the columns."""
        estimator.relations_ = self.findings.relations.copy()
        estimator.relations_.insert(0, "shape", np.where(self.expansion.curved_, "curve", "line"))
        estimator.invariant_ = self.findings.selected
        estimator.advice_, estimator.notes_ = advise(self.findings), notes(self.findings)
        estimator.pooling_, estimator.environments_ = self.model.pooling_, self.model.environments_


def fit_expanded(
    settings: CurveSettings,
    rows: Rows,
    *,
    classes: bool = False,
    groups: Sequence[Any] | None = None,
    progress: Progress | None = None,
) -> ExpandedFit:
    """Fit a linear model to the curves and products that a table needs.

    Args:
        settings: of the terms and of the search.
        rows: of the table, summed once for its columns, and once more if it needs curves or products. Of two classes
            all rows are needed, in memory.
        classes: whether the response holds two classes.
        groups: one label for each column; columns of one label are selected and tested together. None: one by one.
        progress: called with (done, total).
    """
    screening, straight, expanded = stages(progress, STAGES)
    columns = rows.sums(partial(sum_rows, classes=classes, sampled=SAMPLED_ROWS))
    x, y, labels = columns.drawn
    x, parts = np.asarray(x, float), group_rows(labels, len(x)).rows()
    shared: dict[str, Any] = {
        name: getattr(settings, name) for name in ("pooling", "search", "significance", "tolerance")
    }
    before, after = declared(settings, columns.features)
    shared |= {"before": np.flatnonzero(before).tolist(), "after": np.flatnonzero(after).tolist()}
    model: HeteroRegressor | HeteroClassifier
    if classes:  # effects are what curves and products are about
        model = HeteroClassifier(**shared, invariance="effects", groups=groups, verbose=straight)
        errors, scaling = logistic_errors(x, two_classes(y)[1], parts), standard_units(x)
    else:
        model = HeteroRegressor(**shared, level=settings.level, groups=groups, verbose=straight)
        known = standardized(columns.sums)
        scaling = Scaling(known.location[:-1], known.scale[:-1], known.constant)
        errors = squared_errors(x, y, parts)
    terms = {field.name: getattr(settings, field.name) for field in fields(TermSettings)}
    expansion = EffectExpansion(**terms).fit_errors(x, errors, rows=round(columns.sums.counts.sum()), scaling=scaling)
    screening(1, 1)

    def fit(expand: Callable[[np.ndarray], np.ndarray] | None = None) -> RowSums:
        if isinstance(model, HeteroRegressor):
            own = columns if expand is None else rows.sums(partial(sum_rows, expand=expand, sampled=0))
            model._fit_sums(own._replace(names=None))
            return own
        whole = rows.together()
        assert whole is not None
        model._fit_rows(whole._replace(x=whole.x if expand is None else expand(whole.x), names=None))
        return columns

    sums = fit()
    varied = model.findings_.varies & ~model.invariant_
    if expansion.has_terms:
        # a product comes before the response if both columns do, and after it if one of them does
        parts_of = [np.atleast_1d(each) for each in expansion.groups_]
        model.set_params(
            groups=_labelled(expansion.groups_, groups),
            before=[place for place, each in enumerate(parts_of) if before[each].all()],
            after=[place for place, each in enumerate(parts_of) if after[each].any()],
            verbose=expanded,
        )
        sums = fit(expansion.transform)
    return _described(expansion, model, columns, sums, varied, scaling.constant, groups)


def _labelled(numbers: Sequence[Any], groups: Sequence[Any] | None) -> list:
    """The groups of expanded columns, by the labels of the columns instead of their numbers."""
    if groups is None:
        return list(numbers)
    return [tuple(groups[one] for one in each) if isinstance(each, tuple) else groups[each] for each in numbers]


def _described(
    expansion: EffectExpansion,
    model: HeteroRegressor | HeteroClassifier,
    columns: RowSums,
    sums: RowSums,
    varied_as_lines: np.ndarray,
    constant: np.ndarray,
    groups: Sequence[Any] | None,
) -> ExpandedFit:
    """What a model of the expanded columns says about the columns."""
    model.set_params(verbose=0)
    names = columns.features
    starts = [expansion.groups_.index(number) for number in range(len(names))]  # the first feature speaks for a column
    relations = model.relations_.iloc[starts].set_axis(pd.Index(names, name="feature"))
    if expansion.has_terms and isinstance(model, HeteroRegressor):
        relations = _relations_of_terms(expansion, model, sums, names)
    invariant, findings = model.invariant_[starts], model.findings_
    relations.loc[expansion.curved_, "coefficient"] = np.nan  # a curve has no single one
    relations["rank"] = relations["rank"].rank().astype(int)  # products have left gaps
    scaling = findings.table.scaling._replace(constant=constant)
    findings = findings._replace(
        table=findings.table._replace(names=names, scaling=scaling),
        tables=findings.tables._replace(relations=relations),
        varies=findings.varies[starts],
        declared=findings.declared[starts],
        dropped=findings.dropped[starts],
        groups=groups or (),
        curves=tuple(str(name) for name, curved in zip(names, expansion.curved_, strict=True) if curved),
        first=(*_about_terms(expansion, names), *_about_straight_lines(varied_as_lines & invariant, names)),
    )
    return ExpandedFit(expansion, model, findings, columns, sums)


def _relations_of_terms(
    expansion: EffectExpansion, model: HeteroRegressor, sums: RowSums, names: Sequence[str]
) -> pd.DataFrame:
    """The relations of the columns; of a curve those of what it adds to the fit of all columns, whose effect is 1."""
    known, findings = standardized(sums.sums, within=model.level == "environment"), model.findings_
    numbers = list(dict.fromkeys(expansion.groups_))  # the columns come first, then products
    whose = np.array([numbers.index(each) for each in expansion.groups_])
    curved = np.bincount(whose) > 1
    directions = np.zeros((len(whose), len(numbers)))
    # the model does without columns that come after the response; their curves are judged all the same
    curves = SquaredEvidence(known).solve(np.arange(len(whose))).coefficients
    directions[np.arange(len(whose)), whose] = np.where(curved[whose], curves, 1.0)
    first = [expansion.groups_.index(number) for number in numbers]
    evidence = SquaredEvidence(rotated(known, directions), model.tolerance)
    before, after = (part[first] for part in declared(model, findings.table.names))
    trusted = model.invariant_[first] & (findings.pooling.weight < TRUSTED)
    found = find_relations(evidence, before, after, trusted)
    units = np.where(curved, 1.0, known.scale[-1] / known.scale[:-1][first])
    table = describe_effects(
        found.own,
        (model.coef_[first] / units) * ~curved,
        selected=model.invariant_[first],
        names=[str(number) for number in numbers],
        labels=findings.table.labels,
        units=units,
        more=found.columns(units),
    ).relations
    return table.iloc[: len(names)].set_axis(pd.Index(names, name="feature"))


def _about_terms(expansion: EffectExpansion, names: Sequence[str]) -> Iterator[str]:
    """Which terms a model has besides straight lines, in words."""
    terms = [f"a curve of {name}" for name, curved in zip(names, expansion.curved_, strict=True) if curved]
    terms += [f"the product {names[first]} * {names[second]}" for first, second in expansion.interacting_]
    if terms:
        yield f"The model has {listed(terms)} besides straight lines."
    elif "auto" in (expansion.effects, expansion.interactions):
        yield "Straight lines describe each environment: no curve and no interaction was found."
    if expansion.interactions == "auto" and len(names) > MOST_INTERACTING:
        yield f"Interactions were not searched for, since there are more than {MOST_INTERACTING} columns."


def _about_straight_lines(bent: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    """When a straight line was the reason why an effect varied, in words: of columns that vary as lines alone."""
    if bent.any():
        yield (
            f"With straight lines alone the effect of {listed(names, bent)} varies between environments; with these "
            "terms it is the same in all of them, so it varies only because a straight line cannot follow it."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class HeteroSplineRegressor(CurveSettings, SummarizedFit, RegressorMixin, BaseEstimator):
    """Regression with smooth effects and interactions that are the same in all environments.

        y = b + sum_j f_j(x_j) + sum_ij c_ij x_i x_j + error

    A straight line is an approximation that depends on where the rows lie: if y follows a curve, its best straight
    lines differ between environments, and `HeteroRegressor` washes them out. This estimator finds which columns need a
    curve and which pairs interact (`EffectExpansion`), fits `HeteroRegressor` to them with all columns of a curve in
    one group, and by default adds nothing where straight lines suffice. Knots are placed, and terms looked for, in a
    random sample of at most 131,072 rows; tests and fits see all of them, by their second moments, which add up, so
    that `fit` takes a Dask data frame as well, and `fit_chunks` any chunks.

    Args:
        effects: "auto": curves for columns that need one; "smooth": for all columns; "linear": for none.
        interactions: "auto": products of pairs that need one; True: of all pairs; False: of none.
        knots: of each curve, or "auto".
        groups: one label for each column; columns of one label are selected and tested together. None: one by one.
        pooling, significance, tolerance, level: as in `HeteroRegressor`.
        search, before, after, verbose: as in `HeteroRegressor`, of columns.

    Attributes:
        invariant_: (columns,), whose relation to the response holds in all environments.
        relations_: table of columns: line or curve, and what `HeteroRegressor` says of a line.
        effects_: table of environments x columns without a curve: their effects, as in `HeteroRegressor`.
        advice_: sentences; they say where a straight line is the reason why an effect varies.
        pooling_: as in `HeteroRegressor`.
        environments_: labels.
        expansion_: the fitted `EffectExpansion`.
        regressor_: the `HeteroRegressor` of the expanded columns.
        passes_: how often the rows were read: for straight lines and a sample, for curves if there are any, and before
            that to count the rows of a Dask data frame.
        curves_: column -> its effect along the column, in the fit and in each environment (`EffectCurves`).

    Example, the best straight line through a parabola falls in one environment and rises in the other:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["low", "high"], 1000)
        >>> x = np.where(environments == "low", -1.0, 1.0) + random.standard_normal(2000)
        >>> y = x**2 + random.standard_normal(2000)
        >>> HeteroRegressor().fit(x[:, None], y, environments=environments).invariant_.tolist()
        [False]
        >>> model = HeteroSplineRegressor().fit(x[:, None], y, environments=environments)
        >>> model.invariant_.tolist(), model.predict([[2.0]]).round().tolist()
        ([True], [4.0])
    """

    groups: Sequence[Any] | None = None

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroSplineRegressor":
        """Fit to a table.

        Args:
            X: (rows, columns); a data frame of pandas or Dask, which is read three times, or an array.
            y: (rows,); with Dask, a column with the partitions of X.
            environments: one label for each row, of any kind, or the name of a column of X; None: one environment.
            sample_weight: how many rows each row stands for; with Dask, a column with the partitions of X.
        """
        given = (X, y, environments, sample_weight)
        return self._fit_rows(dask_rows(*given).counted() if is_dask_frame(X) else array_rows(self, *given))

    def fit_chunks(self, chunks: Iterable[tuple]) -> "HeteroSplineRegressor":
        """Fit to a table that does not fit into memory, and is read twice.

        Args:
            chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight), in any order; the same ones
                each time they are read.
        """
        if isinstance(chunks, Iterator):
            raise ValueError(
                f"chunks must be something that can be read twice, such as a list, got {type(chunks).__name__}, which "
                "can be read once"
            )
        return self._fit_rows(ChunkRows(chunks))

    def _fit_rows(self, rows: Rows) -> "HeteroSplineRegressor":
        check_settings(self)
        groups = None if self.groups is None else list(self.groups)
        with watched(self.verbose, "fitting") as progress:
            found = fit_expanded(self, rows, groups=groups, progress=progress)
        found.columns.introduce(self)
        found.describe(self)
        self.passes_ = rows.passes.count
        self.expansion_, self.regressor_, self.findings_ = expansion, model, _ = found[:3]
        x, _, labels = found.columns.drawn
        curves = effect_curves(expansion, found.sums.sums, (x, labels), model.coef_, model.invariant_)
        names = self.relations_.index
        self.curves_ = dict(zip(map(str, names), curves, strict=True))
        lines = np.flatnonzero(~expansion.curved_).tolist()
        positions = [expansion.groups_.index(number) for number in lines]
        self.effects_ = model.effects_.iloc[:, positions].set_axis(names[lines], axis="columns")
        return self

    def plot_effects(self, columns: Sequence[str] | None = None) -> "Figure":
        """The effect of each column, in each environment with a band of 95 %, and in the fit.

        Args:
            columns: their names; None: the first twelve of the table.
        """
        from holdfast.plots.features import draw_curves

        summary = self.summary()
        verdicts = {str(name): str(word) for name, word in summary.table["verdict"].items()}
        return draw_curves(self.curves_, self.environments_, verdicts, columns, self.findings_.table.response)

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses; of a Dask data frame, a column of Dask."""
        check_is_fitted(self)
        if is_dask_frame(X):
            return map_rows(X, self.predict)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.regressor_.predict(self.expansion_.transform(X))
