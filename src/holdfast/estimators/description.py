"""What a fitted estimator of tables says about itself: effects with their errors, a summary, and what SGD does."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from holdfast.algorithms.losses.slopes import Slopes
from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.pooling import LinearModel, blend
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.search.dynamics import CoefficientPaths
from holdfast.estimators.search.selection import Selection
from holdfast.estimators.search.washout import Washing, Washout
from holdfast.estimators.summary import TableSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RunsOnDemand:
    """The runs of SGD that end nearest to the selected features, made when they are first asked for.

    Attributes:
        washing: the table as runs see it.
        selection: the features they should end at.
        slopes: at the fit of these.
    """

    washing: Washing
    selection: Selection
    slopes: Slopes

    @cached_property
    def result(self) -> Washout:
        """The runs."""
        return self.washing.towards(self.selection.selected, self.selection.fitted, self.slopes)

    @property
    def reason(self) -> str:
        """Why this amplification and step size, in words."""
        settings, selection = self.result.settings, self.selection
        if selection.pooled_test.degrees == 0:
            return "one environment: nothing to amplify"
        strength = settings.step_size * (1 + settings.amplification) ** 2
        dying = selection.varies & ~selection.selected
        exponents = (
            f"the exponents of what varies are at most {self.result.exponents[dying].max():.2g}"
            if dying.any()
            else "no other effect varies beyond sampling error"
        )
        survived = self.result.paths.survived
        agreeing = int((survived == selection.selected).all(1).sum())
        return (
            f"washing strength eta (1 + k)^2 = {strength:.3g}, comparing {settings.compared}: {exponents}; "
            f"{agreeing} of {len(survived)} runs ended exactly at the invariant features"
        )


class LinearFit(NamedTuple):
    """A linear fit to a table with environments, in the units of the table, and what it says besides.

    Attributes:
        blended: (1 - a) strict + a pooled.
        strict: of what is invariant alone.
        pooled: of all features.
        findings: about the table and what is invariant in it, of which the advice is made.
        coordinates: the features, or directions that were found.
        advice: sentences.
        runs: of SGD; None if class means are compared.
    """

    blended: LinearModel
    strict: LinearModel
    pooled: LinearModel
    findings: TableFindings
    coordinates: Coordinates
    advice: list[str]
    runs: RunsOnDemand | None = None

    @property
    def selected(self) -> np.ndarray:
        """(coordinates,), which of them are invariant."""
        return self.findings.selected


def linear_fit(
    findings: TableFindings, strict: LinearModel, pooled: LinearModel, coordinates: Coordinates
) -> LinearFit:
    """A fit in the units of its table, with advice, from models of features in standard units.

    Args:
        findings: about the table.
        strict: w_S and its intercept.
        pooled: w_A and its intercept.
        coordinates: in which features were selected.
    """
    table = findings.table

    def in_units(model: LinearModel) -> LinearModel:
        coefficients, shift = table.scaling.undo(model.coefficients * table.response_scale)
        return LinearModel(coefficients, model.intercept + shift + table.response_location)

    blended = in_units(blend(strict, pooled, findings.pooling.weight))
    return LinearFit(blended, in_units(strict), in_units(pooled), findings, coordinates, advise(findings))


def summarized(findings: TableFindings, curves: tuple[str, ...] = ()) -> TableSummary:
    """The findings as a printed table; `curves` are columns whose effect is one."""
    table = findings.table
    return TableSummary(
        findings.stability,
        table.task,
        round(float(findings.counts.sum())),
        len(table.labels),
        findings.explained_by_fit,
        findings.explained_by_all,
        findings.pooling.weight,
        table.level,
        table.response,
        table.compared != "effect",
        findings.of_class,
        curves,
        table.second_class,
    )


class DescribedFit:
    """The part of a fitted estimator that describes it.

    Attributes:
        effect_tables_: the effects in each environment, their standard errors and degrees of freedom, and what they
            have in common.
    """

    effect_tables_: EffectTables
    findings_: TableFindings
    _runs: RunsOnDemand | None

    def _describe(self, found: LinearFit) -> None:
        """Set the attributes of a fit."""
        self.coef_, self.strict_coef_, self.pooled_coef_ = (model.coefficients for model in found[:3])
        self.intercept_ = found.blended.intercept
        self.coordinates_, self.directions_ = found.coordinates
        self.invariant_, self.pooling_ = found.selected, found.findings.pooling.weight
        self.effect_tables_ = found.findings.tables
        self.effects_, self.stability_ = self.effect_tables_.effects, self.effect_tables_.stability
        self.advice_, self._runs, self.has_runs_ = found.advice, found.runs, found.runs is not None
        self.findings_, table = found.findings, found.findings.table
        self.environments_ = list(table.labels)
        self.scale_, self.response_scale_ = table.scaling.scale, table.response_scale

    def summary(self) -> TableSummary:
        """The fit as a printed table: `print(model.summary())`."""
        check_is_fitted(self)
        return summarized(self.findings_)

    def plot_effects(self, features: Sequence[str] | None = None) -> "Figure":
        """A forest plot of the effects.

        Args:
            features: their names; None: the first twelve, or six of more than 20 environments, those whose effects
                vary first.
        """
        from holdfast.plots.forest import draw_forest

        return draw_forest(self.effect_tables_, features, self.summary().units)

    def _dynamics(self) -> RunsOnDemand:
        check_is_fitted(self)
        if self._runs is None:
            raise AttributeError("no SGD belongs to a fit that compares class means; see has_runs_")
        return self._runs

    @property
    def paths_(self) -> CoefficientPaths:
        """Coefficients of standardised variables in runs of SGD, in several random orders of the environments."""
        return self._dynamics().result.paths

    @property
    def amplification_(self) -> float:
        """The amplification k of these runs, at which they end nearest to the invariant features."""
        return self._dynamics().result.settings.amplification

    @property
    def step_size_(self) -> float:
        """The step size eta of these runs."""
        return self._dynamics().result.settings.step_size

    @property
    def washout_(self) -> pd.DataFrame:
        """Features x (exponent, survived): the exponent of each, and the share of the runs in which it survived."""
        runs = self._dynamics().result
        columns = {"exponent": runs.exponents, "survived": runs.paths.survived.mean(0)}
        return pd.DataFrame(columns, index=self.stability_.index)

    @property
    def choice_(self) -> str:
        """Why this amplification and step size, in words."""
        return self._dynamics().reason
