"""Advice in sentences: what a table can and cannot say about invariance."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.moments import Scaling
from holdfast.estimators.pooling import Pooling
from holdfast.estimators.search.selection import Selection

FEW_ROWS = 20  # with fewer an environment says little about any effect
NAMED = 8  # features named in a sentence; more are counted
# Differences at a smaller probability than this are differences.
SIGNIFICANT = 0.001
# A mean error is clear if it is this many standard errors from zero, and small below this many standard deviations.
CLEAR_LEVEL, SMALL_LEVEL = 4.0, 0.05
# An effect that varies by less than the first share of itself is worth a second thought, if the second share of the
# response is lost with it.
MILD_SPREAD, WORTH_HAVING = 0.3, 0.05
# A selected effect that differs between environments at a smaller probability than this is in doubt.
DOUBTFUL = 0.01
# Less than this share of the response explained by all features together is next to nothing.
NEXT_TO_NOTHING = 0.01
NOT_COMPARABLE = (
    "No effect is measured in two environments, so effects cannot be compared and nothing is known about invariance."
)


class TableDescription(NamedTuple):
    """A table apart from its loss: names, labels and units.

    Attributes:
        names: of the features.
        labels: of the environments.
        scaling: means and standard deviations of the features.
        task: regression or classification.
        response: its name.
        response_location, response_scale: mean and standard deviation of the response; 0 and 1 for classes.
        loss_scale: standard deviation of the response as the loss sees it: 1 for one that is standardised,
            sqrt(p (1 - p)) for two classes with the shares p and 1 - p.
        level: "common": one intercept; "environment": one for each environment.
        second_class: of two classes, the one whose log-odds are fitted.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    scaling: Scaling
    task: Literal["regression", "classification"]
    response: str = "y"
    response_location: float = 0.0
    response_scale: float = 1.0
    loss_scale: float = 1.0
    level: Literal["common", "environment"] = "common"
    second_class: Any = None

    @property
    def without_features(self) -> str:
        """What is predicted if no feature is selected, in words."""
        regression = self.task == "regression"
        return "the mean of the response" if regression else "the share of each class, whatever the features are"


class TableFindings(NamedTuple):
    """What the sentences are made from.

    Attributes:
        table: names, labels and units.
        stability: table of features, as in `HeteroRegressor`.
        selection: the invariant features.
        pooling: how much of the prediction comes from all features.
        chosen: whether that weight was chosen from the data.
        counts: (environments,), rows.
        levels: (environments,), mean errors, in standard deviations of the response.
        explained, explained_by_all: share of the response that the selected features and that all features explain.
        groups: for each feature, the label of those that are judged together; empty if each is judged by itself.
    """

    table: TableDescription
    stability: pd.DataFrame
    selection: Selection
    pooling: Pooling
    chosen: bool
    counts: np.ndarray
    levels: np.ndarray
    explained: float
    explained_by_all: float
    groups: Sequence[Any] = ()

    @property
    def selected(self) -> np.ndarray:
        """(features,), which of them are invariant."""
        return self.selection.selected


def advise(findings: TableFindings) -> list[str]:
    """The advice, most important first."""
    return [*_verdict(findings), *_features(findings), *_pooling(findings), *_cautions(findings)]


def advise_matrix(
    selected: np.ndarray, pooled_significance: float, environments: int, explained: float, explained_by_all: float
) -> list[str]:
    """The advice for a matrix: the verdict, and how many directions are selected.

    Args:
        selected: (directions,), which of them survive.
        pooled_significance: probability of the differences between environments if there were none.
        environments: their number.
        explained: share of the response that the selected directions explain.
        explained_by_all: share that a full matrix explains.
    """
    if environments == 1:
        first = "There is only one environment, so nothing can be washed out: this is low-rank regression."
    elif pooled_significance >= SIGNIFICANT:
        first = (
            f"The {environments} environments do not differ beyond sampling error (p = {pooled_significance:.2g}): "
            "they cannot tell what is invariant from what is not."
        )
    elif not selected.any():
        first = "No direction has an effect that holds in all environments: the prediction is the mean of the response."
    else:
        first = (
            f"Selected: {int(selected.sum())} of {len(selected)} directions, whose effects hold in all environments."
        )
    return [first, f"They explain {explained:.0%} of the response, a full matrix {explained_by_all:.0%}."]


def _verdict(f: TableFindings) -> Iterator[str]:
    # a curve has no numbers of its own
    comparable = f.stability["significance"].notna() | f.stability["coefficient"].isna()
    if len(f.counts) == 1:
        pooled = ": the coefficients are those of the pooled fit of all features" if f.pooling.weight == 1 else ""
        yield f"There is only one environment, so nothing is known about which effects hold elsewhere{pooled}."
    elif not (comparable.any() or f.selection.varies.any()):
        yield NOT_COMPARABLE
    elif f.selection.pooled_test.significance >= SIGNIFICANT and not f.selection.varies.any():
        yield (
            f"The effects do not differ between the {len(f.counts)} environments beyond sampling error and the "
            f"tolerance (p = {f.selection.pooled_test.significance:.2g}, not below {SIGNIFICANT:g}): nothing was "
            "washed out, and these environments cannot tell what is invariant from what is not."
        )
    if not f.selected.any():
        # effects that cancel in the mean explain nothing together, and still vary
        if f.explained_by_all < NEXT_TO_NOTHING and not f.stability["varies"].any():
            yield (
                f"The features say next to nothing about the response (together {f.explained_by_all:.1%} of it): the "
                f"prediction is {f.table.without_features}."
            )
        elif len(f.counts) > 1 and comparable.any():
            left = f": everything was washed out, and the prediction is {f.table.without_features}"
            yield (
                f"No feature has the same effect in all environments{left if f.pooling.weight == 0 else ''}. All "
                f"features together explain {f.explained_by_all:.0%} of the response in this table, through effects "
                "that change between environments."
            )


def _features(f: TableFindings) -> Iterator[str]:
    names, varies = f.stability.index, f.stability["varies"].to_numpy()
    if len(f.counts) == 1 and f.pooling.weight == 1:
        yield f"All features together explain {f.explained_by_all:.0%} of the response."
        return
    if f.selected.any():
        yield selected_sentence(names, f.selected, f.explained, f.explained_by_all)
    washed = ~f.selected & varies
    if washed.any():
        lowest, highest = f.stability["lowest_effect"].to_numpy(), f.stability["highest_effect"].to_numpy()
        sentence = f"{washed_out('effect', f.pooling)} varies: {listed(names, washed)}."
        known = washed & np.isfinite(highest - lowest)  # a curve has no lowest and highest effect
        if known.any():
            most = most_varying(f.stability, known)
            sentence += f" That of {names[most]} ranges from {lowest[most]:.3g} to {highest[most]:.3g}."
        yield sentence + _carried(f, washed)
        between, effect = (f.stability[name].to_numpy() for name in ("between", "effect"))
        mild = washed & (between < MILD_SPREAD * np.abs(effect))
        if mild.any() and f.explained_by_all - f.explained > WORTH_HAVING:
            yield (
                f"Varying by less than {MILD_SPREAD:.0%} of the effect itself: {listed(names, mild)}. A larger "
                "tolerance would select these too; use one only for features that cannot be consequences of the "
                "response."
            )
    left = ~f.selected & ~varies
    if left.any() and not left.all():
        yield not_needed(listed(names, left), f.pooling)


def selected_sentence(names: Iterable[Any], selected: np.ndarray, explained: float, by_all: float) -> str:
    """What is selected, and what it explains.

    Example:
        >>> selected_sentence(["soil", "light"], np.array([True, False]), 0.4, 0.5)
        'Selected: soil. It explains 40% of the response, all features 50%.'
    """
    words = "Together they explain" if selected.sum() > 1 else "It explains"
    return f"Selected: {listed(names, selected)}. {words} {explained:.0%} of the response, all features {by_all:.0%}."


def washed_out(what: str, pooling: Pooling) -> str:
    """The beginning of a sentence about what varies; a pooled fit still uses it.

    Example:
        >>> washed_out("effect", Pooling(0.0, 1.0, 0.2)), washed_out("effect", Pooling(0.5, 1.0, 0.2))
        ('Washed out because the effect', 'The effect')
    """
    return f"{'Washed out because the' if pooling.weight == 0 else 'The'} {what}"


def not_needed(names: str, pooling: Pooling) -> str:
    """About features that are neither selected nor vary; a pooled fit still has coefficients for them.

    Example:
        >>> not_needed("soil", Pooling(0.0, 1.0, 0.2))
        'Left out because they add nothing to the selected features: soil.'
    """
    if pooling.weight == 0:
        return f"Left out because they add nothing to the selected features: {names}."
    return f"Not needed: {names}."


def most_varying(stability: pd.DataFrame, candidates: np.ndarray) -> int:
    """The number of the feature whose effect varies most: by I², which has no units, as ranges have.

    Of several with about the same I² it is the one of the widest range, as a share of its ends.

    Example:
        >>> table = pd.DataFrame({"i_squared": [1.0, 0.0], "lowest_effect": [0.1, -5.0], "highest_effect": [0.3, 9.0]})
        >>> most_varying(table, np.array([True, True]))
        0
    """
    share, low, high = (
        stability[name].fillna(0.0).to_numpy(float) for name in ("i_squared", "lowest_effect", "highest_effect")
    )
    relative = (high - low) / np.maximum(np.abs(high) + np.abs(low), 1e-300)
    return int(np.lexsort([np.where(candidates, relative, -1.0), np.where(candidates, share.round(2), -1.0)])[-1])


def _carried(f: TableFindings, washed: np.ndarray) -> str:
    """Which features are washed out with the rest of their column, although their own effect does not vary."""
    if len(f.groups) != len(washed):
        return ""
    own = washed & ~(f.stability["significance"].to_numpy() >= SIGNIFICANT)  # NaN counts as the reason
    labels = pd.Series(list(f.groups), dtype=object)
    carried = washed & ~own & labels.isin(labels[own]).to_numpy()
    columns = ", ".join(dict.fromkeys(str(label) for label in labels[carried]))
    return f" {listed(f.stability.index, carried)} goes with the rest of its column: {columns}." if columns else ""


def pooling_sentences(pooling: Pooling, chosen: bool) -> Iterator[str]:
    """Why part of the prediction comes from all features, or why not.

    Args:
        pooling: the weight and where it comes from.
        chosen: whether it was chosen from the data.

    Example:
        >>> next(pooling_sentences(Pooling(0.5, 0.1, 0.3), chosen=False))
        'pooling=0.5 was requested: coefficients are 50% strict and 50% pooled.'
    """
    a, share, varying = pooling
    if not chosen:
        yield f"pooling={a:g} was requested: coefficients are {1 - a:.0%} strict and {a:.0%} pooled."
        return
    if a == 0 and share >= 1:
        yield (
            "In held-out environments the invariant features predict at least as well as all features, so only they "
            "are used (pooling = 0)."
        )
        return
    reason = (
        f"In held-out environments the invariant features explain {share:.0%} of what all features explain, and the "
        f"effects of {varying:.0%} of the features vary"
    )
    if a == 0:
        yield f"{reason}: only the invariant features are used (pooling = 0)."
    else:
        yield (
            f"{reason}. That is too little to rely on the invariant features alone, so {a:.0%} of each coefficient "
            f"comes from the pooled fit of all features (pooling = {a:.2f}). This is right if new environments "
            "resemble those in this table; pooling=0 uses the invariant features alone."
        )


def doubtful_sentences(
    stability: pd.DataFrame,
    task: Literal["regression", "classification"] = "regression",
    level: Literal["common", "environment"] = "common",
) -> Iterator[str]:
    """Where the search and the test of a single effect disagree, and why.

    The search tests the gradients at the pooled fit, those of all selected features at once. With one intercept, in an
    environment where the mean of a feature is far from the common one, the gradient says how the response follows that
    mean, and hardly how it follows the feature within the environment.

    Args:
        stability: as `describe_effects` in `holdfast.estimators.effects` makes it.
        task: regression or classification.
        level: "common": one intercept; "environment": one for each environment.

    Example:
        >>> rows = {"selected": [True, True], "varies": [False, False], "significance": [0.4, 1e-9]}
        >>> next(doubtful_sentences(pd.DataFrame(rows, ["light", "fruits"]))).split(":")[1].split(".")[0]
        ' fruits'
    """
    selected, significance = stability["selected"].to_numpy(bool), stability["significance"]
    doubtful = selected & (significance < DOUBTFUL).to_numpy()
    differs = "although the effect by itself differs between environments beyond sampling error"
    if doubtful.any():
        missed = f", or that of a feature whose mean differs a lot between environments.{_about_levels(task, level)}"
        yield (
            f"Selected, {differs} (p < {DOUBTFUL:g}): {listed(stability.index, doubtful)}. The selection test judges "
            f"all selected features together: it can miss one effect among many{missed if level == 'common' else '.'}"
        )
    hidden = ~selected & ~stability["varies"].to_numpy(bool) & (significance < SIGNIFICANT).to_numpy()
    if hidden.any() and level == "common":
        yield (
            f"Not needed, {differs} (p < {SIGNIFICANT:g}): {listed(stability.index, hidden)}. With one intercept, the "
            "level of a feature whose mean differs a lot between environments can hide its effect."
        )


def _about_levels(task: str, level: str) -> str:
    """What can be done about levels that differ; empty if nothing."""
    if task == "regression" and level == "common":
        return ' level="environment" removes the levels and compares effects within environments.'
    return ""


def _pooling(f: TableFindings) -> Iterator[str]:
    if len(f.counts) > 1 and not f.selected.all():
        yield from pooling_sentences(f.pooling, f.chosen)


def _cautions(f: TableFindings) -> Iterator[str]:
    if f.selected.any() and len(f.counts) > 1 and f.selection.test.significance < 0.01:
        yield (
            f"The selected features barely pass the test of equal effects (p = {f.selection.test.significance:.2g}): "
            "the environments may act in a way that these features do not capture."
        )
    if len(f.counts) > 1:
        yield from doubtful_sentences(f.stability, f.table.task, f.table.level)
    if len(f.counts) == 2:
        yield "With two environments an effect has only one chance to vary; a third would make the choice much safer."
    errors = np.abs(f.levels) * np.sqrt(f.counts / max(1 - f.explained, 1e-12))
    if len(f.counts) > 1 and errors.max() > CLEAR_LEVEL and np.ptp(f.levels) > SMALL_LEVEL:
        high, low = (str(f.table.labels[int(index)]) for index in (np.argmin(f.levels), np.argmax(f.levels)))
        yield (
            f"The level of the response differs between environments: mean errors are {np.ptp(f.levels):.2g} standard "
            f"deviations apart from {low} to {high}. No feature explains this, and a new environment will have its own "
            f"level.{_about_levels(f.table.task, f.table.level)}"
        )
    tiny = f.counts < FEW_ROWS
    if tiny.any() and len(f.counts) > 1:
        few = listed(f.table.labels, tiny)
        yield f"Environments with fewer than {FEW_ROWS} rows: {int(tiny.sum())} of {len(f.counts)} ({few})."
    if f.table.scaling.constant.any():
        constant = ", ".join(name for name, flat in zip(f.table.names, f.table.scaling.constant, strict=True) if flat)
        yield f"Constant, and therefore without effect: {constant}."


def listed(names: Iterable[Any], chosen: np.ndarray | None = None, most: int = NAMED) -> str:
    """The names, or the chosen ones, in a sentence; beyond `most` of them, their number.

    Example:
        >>> listed(["soil", "light", "wind"], np.array([True, False, True])), listed("abc", most=1)
        ('soil, wind', 'a and 2 more')
    """
    words = [str(name) for name in names]
    if chosen is not None:
        words = [name for name, one in zip(words, chosen, strict=True) if one]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
