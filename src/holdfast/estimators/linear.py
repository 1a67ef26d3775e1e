"""From a standardised table to a linear predictor, with its effects, their stability and advice."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from holdfast.core.progress import Progress, stages
from holdfast.estimators.advice import advise, notes
from holdfast.estimators.contract import SearchSettings, declared
from holdfast.estimators.description import Coordinates, TableDescription, TableFindings
from holdfast.estimators.effects import EffectTables, describe_effects
from holdfast.estimators.pooling import LinearModel, blend, choose_pooling
from holdfast.estimators.relations import DANGEROUS, find_relations, may_change
from holdfast.estimators.search.evidence import Evidence, explained_share
from holdfast.estimators.search.feature_sets import LEAST_INFORMATION, Groups
from holdfast.estimators.search.selection import Selection, select
from holdfast.estimators.summary import TableSummary
from holdfast.estimators.wide_tables import explained_elsewhere, narrowed, strongest_features, widened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGE = 100  # units of a progress bar for one search
# The selected features are not in question if the fit of all has less than this weight beside them.
TRUSTED = 0.5


class SummarizedFit:
    """The part of a fitted estimator that summarizes it.

    Attributes:
        findings_: about the table.
        advice_, notes_: sentences.
    """

    findings_: TableFindings
    advice_: list[str]
    notes_: list[str]

    def summary(self) -> TableSummary:
        """The fit as a printed table: `print(model.summary())`."""
        check_is_fitted(self)
        return TableSummary(self.findings_, self.advice_, self.notes_)

    def plot_danger(self) -> "Figure":
        """For each feature, how much the error grows if its relation moves as far as it may, and if it breaks."""
        from holdfast.plots.danger import draw_danger

        check_is_fitted(self)
        return draw_danger(self.findings_.relations, DANGEROUS, self.findings_.table.response)


class DescribedFit(SummarizedFit):
    """The part of a fitted linear estimator that describes it.

    Attributes:
        effect_tables_: the effects in each environment, their standard errors and degrees of freedom, and what they
            have in common.
    """

    effect_tables_: EffectTables

    def _describe(self, found: TableFindings) -> None:
        """Set the attributes of a fit."""
        self.findings_, self.pooling_ = found, found.pooling.weight
        self.advice_, self.notes_ = advise(found), notes(found)
        self.coef_, self.intercept_ = found.in_units(blend(found.strict, found.pooled, self.pooling_))
        self.strict_coef_, self.pooled_coef_ = (
            found.in_units(fit).coefficients for fit in (found.strict, found.pooled)
        )
        self.coordinates_, self.directions_ = found.coordinates
        self.invariant_, self.effect_tables_ = found.selected, found.tables
        self.effects_, self.relations_ = found.tables.effects, found.relations
        self.environments_ = list(found.table.labels)
        self.scale_, self.response_scale_ = found.table.scaling.scale, found.table.response_scale

    def plot_effects(self, features: Sequence[str] | None = None) -> "Figure":
        """A forest plot of the effects of one standard deviation of each feature.

        Args:
            features: their names; None: the twelve most dangerous, or six of more than 20 environments.
        """
        from holdfast.plots.features import draw_forest

        scale = self.scale_ if self.coordinates_ == "features" else 1.0  # directions have the variance 1
        return draw_forest(self.effect_tables_, features, self.summary().units, scale)


def fit_linear(
    settings: SearchSettings,
    table: TableDescription,
    systems: Sequence[Coordinates],
    evidence_in: Callable[[Coordinates], Evidence],
    progress: Progress | None = None,
) -> TableFindings:
    """Select in each coordinate system, use the one whose invariant part predicts best, and describe the result.

    Args:
        settings: of the search.
        table: names, labels and units.
        systems: to be tried; one of them if the features are not rotated.
        evidence_in: system -> what the table says in its coordinates.
        progress: called with (done, total).
    """
    before, after = declared(settings, table.names)
    if settings.rotation and (before | after).any():
        raise ValueError("before and after must be empty with rotation=True, which mixes the features, got columns")
    whole = evidence_in(systems[0])
    kept = None if settings.rotation else strongest_features(whole, settings.groups, before | after)
    if kept is None:
        found = _searched(settings, table, systems, evidence_in, progress)
    else:
        _groups(settings, whole.dimension)  # labels are checked
        some = evidence_in(Coordinates("strongest", systems[0].directions[:, kept]))
        own, narrow = narrowed(settings, table, kept, before, after)
        found = _searched(own, narrow, [Coordinates("features", np.eye(len(kept)))], lambda _: some, progress)
        found = widened(found, table, kept, systems[0], settings.groups)
    return explained_elsewhere(found, evidence_in, settings.groups)


def _searched(
    settings: SearchSettings,
    table: TableDescription,
    systems: Sequence[Coordinates],
    evidence_in: Callable[[Coordinates], Evidence],
    progress: Progress | None,
) -> TableFindings:
    """Select in each coordinate system, and describe the best."""
    _, after = declared(settings, table.names)
    tried = []
    for system, report in zip(systems, stages(progress, [STAGE] * len(systems)), strict=True):
        evidence = evidence_in(system)
        groups = _groups(settings, evidence.dimension)
        dropped = np.zeros(evidence.dimension, bool)
        if after.any():
            dropped = groups.touched(may_change(evidence, after))
        usable = evidence.barring(dropped) if dropped.any() else evidence
        eliminate = settings.search == "elimination"
        found = select(usable, groups, settings.significance, eliminate=eliminate, progress=report)
        tried.append((system, evidence, usable, dropped, found))
    return _described(settings, table, *min(tried, key=lambda entry: entry[-1].criterion))


def _described(
    settings: SearchSettings,
    table: TableDescription,
    system: Coordinates,
    whole: Evidence,
    evidence: Evidence,
    dropped: np.ndarray,
    selection: Selection,
) -> TableFindings:
    """The coefficients that belong to a selection, with their effects, summary, findings and advice."""
    strict, pooled, selected = selection.fitted, selection.pooled, selection.selected
    # a fit that is sure of all rows leaves no errors to tell what would happen elsewhere
    stressed = evidence.stressed if evidence.information(pooled) >= LEAST_INFORMATION else None
    pooling = choose_pooling(evidence.held_out, evidence.weights, selected, selection.varying, stressed)
    plain = system.name == "features"
    before, after = declared(settings, table.names) if plain else np.zeros((2, whole.dimension), bool)
    relations = find_relations(whole, before, after, selected & (pooling.weight < TRUSTED))
    pooling = pooling.or_asked(settings.pooling)
    blended = blend(strict, pooled, pooling.weight)
    units = table.response_scale / table.scaling.scale if plain else table.response_scale
    tables = describe_effects(
        relations.own,
        blended.coefficients,
        selected=selected,
        names=table.names if plain else [f"{system.name} {number + 1}" for number in range(evidence.dimension)],
        labels=table.labels,
        units=units,
        more=relations.columns(units),
    )
    return TableFindings(
        table,
        LinearModel(system.directions @ strict.coefficients, strict.intercept),
        LinearModel(system.directions @ pooled.coefficients, pooled.intercept),
        system,
        tables,
        pooling,
        settings.pooling == "auto",
        evidence.counts,
        explained_share(evidence, strict),
        explained_share(evidence, pooled),
        explained_share(evidence, blended),
        varies=selection.varies,
        declared=before | after,
        dropped=dropped,
        groups=() if settings.groups is None else list(settings.groups),
        levels=evidence.slopes(blended).intercept / evidence.response_scale,
        equality=selection.test.significance,
        pooled_equality=selection.pooled_test.significance,
    )


def _groups(settings: SearchSettings, features: int) -> Groups:
    if settings.groups is None:
        return Groups(np.arange(features))
    if settings.rotation:
        raise ValueError("groups must be None with rotation=True, which mixes the features, got labels")
    labels = list(settings.groups)
    if len(labels) != features or pd.Series(labels, dtype=object).isna().any():
        raise ValueError(f"groups must hold one label for each of the {features} features, got {len(labels)} labels")
    single = {label: number for number, label in enumerate(dict.fromkeys(x for x in labels if not _is_pair(x, labels)))}
    needed = [label if _is_pair(label, labels) else (label, label) for label in labels]
    first, second = (np.array([single[pair[side]] for pair in needed]) for side in (0, 1))
    return Groups(first, second)


def _is_pair(label: Any, labels: Sequence) -> bool:
    """Whether this is the label of an interaction: a pair of two other labels."""
    single = isinstance(label, tuple) and len(label) == 2 and not any(isinstance(one, tuple) for one in label)
    return single and all(one in labels for one in label)
