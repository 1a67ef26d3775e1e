"""What a fitted estimator of tables says about itself: effects with their errors, and a summary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from holdfast.estimators.advice import TableFindings, advise
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.pooling import blend
from holdfast.estimators.summary import TableSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def summarized(findings: TableFindings) -> TableSummary:
    """The findings as a printed table."""
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
        findings.curves,
        table.second_class,
    )


class SummarizedFit:
    """The part of a fitted estimator that summarizes it.

    Attributes:
        findings_: about the table.
    """

    findings_: TableFindings

    def summary(self) -> TableSummary:
        """The fit as a printed table: `print(model.summary())`."""
        check_is_fitted(self)
        return summarized(self.findings_)


class DescribedFit(SummarizedFit):
    """The part of a fitted linear estimator that describes it.

    Attributes:
        effect_tables_: the effects in each environment, their standard errors and degrees of freedom, and what they
            have in common.
    """

    effect_tables_: EffectTables

    def _describe(self, found: TableFindings) -> None:
        """Set the attributes of a fit."""
        self.findings_, self.advice_, self.pooling_ = found, advise(found), found.pooling.weight
        self.coef_, self.intercept_ = found.in_units(blend(found.strict, found.pooled, self.pooling_))
        self.strict_coef_, self.pooled_coef_ = (
            found.in_units(fit).coefficients for fit in (found.strict, found.pooled)
        )
        self.coordinates_, self.directions_ = found.coordinates
        self.invariant_, self.effect_tables_ = found.selected, found.tables
        self.effects_, self.stability_ = found.tables.effects, found.stability
        self.environments_ = list(found.table.labels)
        self.scale_, self.response_scale_ = found.table.scaling.scale, found.table.response_scale

    def plot_effects(self, features: Sequence[str] | None = None) -> "Figure":
        """A forest plot of the effects.

        Args:
            features: their names; None: the first twelve, or six of more than 20 environments, those whose effects
                vary first.
        """
        from holdfast.plots.forest import draw_forest

        return draw_forest(self.effect_tables_, features, self.summary().units)
