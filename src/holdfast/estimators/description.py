"""What a fitted estimator of tables says about itself: effects with their errors, and a summary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.pooling import LinearModel, blend
from holdfast.estimators.search.coordinates import Coordinates
from holdfast.estimators.summary import TableSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LinearFit(NamedTuple):
    """A linear fit to a table with environments, in the units of the table, and what it says besides.

    Attributes:
        blended: (1 - a) strict + a pooled.
        strict: of what is invariant alone.
        pooled: of all features.
        findings: about the table and what is invariant in it, of which the advice is made.
        coordinates: the features, or directions that were found.
        advice: sentences.
    """

    blended: LinearModel
    strict: LinearModel
    pooled: LinearModel
    findings: TableFindings
    coordinates: Coordinates
    advice: list[str]

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

    def _describe(self, found: LinearFit) -> None:
        """Set the attributes of a fit."""
        self.coef_, self.strict_coef_, self.pooled_coef_ = (model.coefficients for model in found[:3])
        self.intercept_ = found.blended.intercept
        self.coordinates_, self.directions_ = found.coordinates
        self.invariant_, self.pooling_ = found.selected, found.findings.pooling.weight
        self.effect_tables_ = found.findings.tables
        self.effects_, self.stability_ = self.effect_tables_.effects, self.effect_tables_.stability
        self.advice_, self.findings_, table = found.advice, found.findings, found.findings.table
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
