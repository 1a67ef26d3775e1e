"""Invariant regression with smooth effects and interactions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.progress import Progress, stages, watched
from holdfast.estimators.advice import advise, listed
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.contract import check_settings, response_name, two_classes
from holdfast.estimators.curves import effect_curves
from holdfast.estimators.expansion import EffectExpansion
from holdfast.estimators.grouping import group_rows
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.estimators.screening import MOST_INTERACTING, logistic_errors, squared_errors
from holdfast.estimators.summary import TableSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of a progress bar: looking for curves and products, the fit of straight lines, and the fit with curves and products.
STAGES = (30, 30, 40)


class ExpandedFit(NamedTuple):
    """A linear model of the expansion of a table, and what it says about the columns of the table.

    Attributes:
        expansion: curves and products.
        model: of the expanded columns.
        stability: table of columns: whether each is a line or a curve, its coefficient if it is a line, whether its
            relation to the response varies, and whether it is invariant.
        advice: sentences.
        summary: of the columns.
    """

    expansion: EffectExpansion
    model: HeteroRegressor | HeteroClassifier
    stability: pd.DataFrame
    advice: list[str]
    summary: TableSummary

    @property
    def invariant(self) -> np.ndarray:
        """(columns,), whose relation to the response holds in all environments."""
        return self.stability["invariant"].to_numpy()


def fit_expanded(
    settings: Any,
    x: np.ndarray,
    y: np.ndarray,
    environments: Any,
    names: Sequence[str],
    *,
    classes: bool = False,
    progress: Progress | None = None,
) -> ExpandedFit:
    """Fit a linear model to the curves and products that a table needs.

    Args:
        settings: an estimator with the settings of `HeteroSplineRegressor`.
        x: (rows, columns), checked.
        y: (rows,), numbers or two classes.
        environments: one label for each row; None: one environment.
        names: of the columns.
        classes: whether y holds classes.
        progress: called with (done, total).
    """
    expansion = EffectExpansion(
        effects=settings.effects,
        interactions=settings.interactions,
        knots=settings.knots,
        significance=settings.significance,
    )
    shared = {name: getattr(settings, name) for name in ("pooling", "search", "significance", "tolerance")}
    # effects are what curves and products are about
    model = (
        HeteroClassifier(**shared, invariance="effects") if classes else HeteroRegressor(**shared, level=settings.level)
    )
    screening, straight, expanded = stages(progress, STAGES)
    rows = group_rows(environments, len(x)).rows()
    expansion.fit_errors(x, logistic_errors(x, two_classes(y)[1], rows) if classes else squared_errors(x, y, rows))
    screening(1, 1)
    model.set_params(verbose=straight).fit(x, y, environments=environments)
    varied_as_lines = model.stability_["varies"].to_numpy() & ~model.invariant_
    if expansion.curved_.any() or expansion.interacting_:
        model.set_params(groups=expansion.groups_, verbose=expanded)
        model.fit(expansion.transform(x), y, environments=environments)
    model.set_params(verbose=0)
    owners = [group if isinstance(group, tuple) else (group, group) for group in expansion.groups_]
    first = np.array([pair[0] for pair in owners])
    main = first == np.array([pair[1] for pair in owners])
    starts = np.searchsorted(first[main], np.arange(x.shape[1]))  # the first feature of each column speaks for it
    stability = model.stability_.iloc[starts].set_axis(pd.Index(names, name="feature"))
    invariant = model.invariant_[starts]
    # a curve has no single effect that could be low or high
    numbers = stability.columns.difference(["varies", "selected"])
    stability.loc[expansion.curved_, numbers] = np.nan
    findings = model.findings_
    selection = findings.selection._replace(selected=invariant, varies=stability["varies"].to_numpy())
    constant = [name for name, flat in zip(names, np.ptp(x, axis=0) == 0, strict=True) if flat]
    advice = advise(findings._replace(stability=stability, selection=selection, constant=constant, groups=()))
    curved = tuple(str(name) for name, bent in zip(names, expansion.curved_, strict=True) if bent)
    summary = replace(model.summary(), stability=stability, curves=curved)
    stability = stability[["coefficient", "lowest_effect", "highest_effect", "varies"]].assign(invariant=invariant)
    stability.insert(0, "shape", np.where(expansion.curved_, "curve", "line"))
    return ExpandedFit(
        expansion,
        model,
        stability,
        [*_shapes(expansion, names), *_straight_lines(varied_as_lines, invariant, names), *advice],
        summary,
    )


def _shapes(expansion: EffectExpansion, names: Sequence[str]) -> list[str]:
    terms = [f"a curve of {name}" for name, curved in zip(names, expansion.curved_, strict=True) if curved]
    terms += [f"the product {names[first]} * {names[second]}" for first, second in expansion.interacting_]
    sentences = []
    if terms:
        sentences.append(f"The model has {listed(terms, np.ones(len(terms), bool))} besides straight lines.")
    elif "auto" in (expansion.effects, expansion.interactions):
        sentences.append("Straight lines describe each environment: no curve and no interaction was found.")
    if expansion.interactions == "auto" and len(names) > MOST_INTERACTING:
        sentences.append(f"Interactions were not looked for, since there are more than {MOST_INTERACTING} columns.")
    return sentences


def _straight_lines(varied: np.ndarray, invariant: np.ndarray, names: Sequence[str]) -> list[str]:
    """When a straight line was the reason why an effect varied."""
    if not (varied & invariant).any():
        return []
    return [
        f"With straight lines alone the effect of {listed(names, varied & invariant)} varies between environments; "
        "with these terms it is the same in all of them, so the straight line is the reason why it varies."
    ]


class HeteroSplineRegressor(RegressorMixin, BaseEstimator):
    """Regression with smooth effects and interactions that are the same in all environments.

        y = b + sum_j f_j(x_j) + sum_ij c_ij x_i x_j + error

    A straight line is an approximation that depends on where the rows lie: if y follows a curve, its best straight
    lines differ between environments, and `HeteroRegressor` washes them out. This estimator finds which columns need a
    curve and which pairs interact (`EffectExpansion`), fits `HeteroRegressor` to them with all columns of a curve in
    one group, and by default adds nothing where straight lines suffice.

    Args:
        effects: "auto": curves for columns that need one; "smooth": for all columns; "linear": for none.
        interactions: "auto": products of pairs that need one; True: of all pairs; False: of none.
        knots: of each curve, or "auto".
        pooling, significance, tolerance, level: as in `HeteroRegressor`.
        search, verbose: as in `HeteroRegressor`.

    Attributes:
        invariant_: (columns,), whose relation to the response holds in all environments.
        stability_: table of columns: line or curve, coefficient of a line, whether it varies, whether it is invariant.
        advice_: sentences; they say where a straight line is the reason why an effect varies.
        pooling_: as in `HeteroRegressor`.
        environments_: labels.
        expansion_: the fitted `EffectExpansion`.
        regressor_: the `HeteroRegressor` of the expanded columns.
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

    def __init__(
        self,
        *,
        effects="auto",
        interactions="auto",
        knots="auto",
        pooling="auto",
        search="elimination",
        significance=0.001,
        tolerance=0.0,
        level="common",
        verbose=0,
    ):
        self.effects = effects
        self.interactions = interactions
        self.knots = knots
        self.pooling = pooling
        self.search = search
        self.significance = significance
        self.tolerance = tolerance
        self.level = level
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "HeteroSplineRegressor":
        """Fit to a table.

        Args:
            X: (rows, columns).
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
        """
        check_settings(self)
        response = response_name(y)
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        names = getattr(self, "feature_names_in_", [f"x{number}" for number in range(X.shape[1])])
        with watched(self.verbose, "fitting") as progress:
            found = fit_expanded(self, X, y, environments, names, progress=progress)
        self.expansion_, self.regressor_, self.stability_, self.advice_, summary = found
        self._summary = replace(summary, response=response)
        self.invariant_ = found.invariant
        rows = group_rows(environments, len(X)).rows()
        curves = effect_curves(self.expansion_, X, y, rows, self.regressor_.coef_, self.regressor_.invariant_)
        self.curves_ = dict(zip(map(str, names), curves, strict=True))
        self.pooling_, self.environments_ = found.model.pooling_, found.model.environments_
        return self

    def summary(self) -> TableSummary:
        """The fit as a printed table of the columns: `print(model.summary())`."""
        check_is_fitted(self)
        return self._summary

    def plot_effects(self, columns: Sequence[str] | None = None) -> "Figure":
        """The effect of each column, in each environment with a band of 95 %, and in the fit.

        Args:
            columns: their names; None: the first twelve of the table.
        """
        from holdfast.plots.curves import draw_curves

        check_is_fitted(self)
        verdicts = {str(name): str(word) for name, word in self._summary.table["verdict"].items()}
        return draw_curves(self.curves_, self.environments_, verdicts, columns, self._summary.response)

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.regressor_.predict(self.expansion_.transform(X))
