"""Advice in sentences: what a table can and cannot say about invariance."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

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
    "No effect is measured in two environments, so the effects cannot be compared: nothing is known about what is "
    "invariant."
)


class TableFindings(NamedTuple):
    """The findings that the sentences are made from.

    Attributes:
        stability: table of features, as in `HeteroRegressor`.
        selection: the invariant features.
        pooling: how much of the prediction comes from all features.
        chosen: whether that weight was chosen from the data.
        labels: of the environments.
        counts: (environments,), rows.
        levels: (environments,), mean errors, in standard deviations of the response.
        explained, explained_by_all: share of the response that the selected features and that all features explain.
        constant: names of constant features.
        without_features: what is predicted if no feature is selected, in words.
        task: regression or classification.
        level: "common": one intercept; "environment": one for each environment.
        groups: for each feature, the label of those that are judged together; empty if each is judged by itself.
    """

    stability: pd.DataFrame
    selection: Selection
    pooling: Pooling
    chosen: bool
    labels: Sequence
    counts: np.ndarray
    levels: np.ndarray
    explained: float
    explained_by_all: float
    constant: Sequence[str]
    without_features: str
    task: Literal["regression", "classification"] = "regression"
    level: Literal["common", "environment"] = "common"
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
        first = "There is one environment only, so nothing can be washed out: this is low-rank regression."
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
        yield (
            "There is one environment only, so nothing can be said about what is invariant"
            + (": the coefficients are those of the pooled fit of all features" if f.pooling.weight == 1 else "")
            + ", and nothing is known about how they hold elsewhere."
        )
    elif not (comparable.any() or f.selection.varies.any()):
        yield NOT_COMPARABLE
    elif f.selection.pooled_test.significance >= SIGNIFICANT and not f.selection.varies.any():
        yield (
            f"The effects of the features do not differ between the {len(f.counts)} environments beyond sampling "
            f"error and what is tolerated (p = {f.selection.pooled_test.significance:.2g}, not below {SIGNIFICANT:g}): "
            "nothing was washed out, and these environments cannot tell what is invariant from what is not."
        )
    if not f.selected.any():
        # effects that cancel in the mean explain nothing together, and still vary
        if f.explained_by_all < NEXT_TO_NOTHING and not f.stability["varies"].any():
            yield (
                f"The features say next to nothing about the response (together {f.explained_by_all:.1%} of it): the "
                f"prediction is {f.without_features}."
            )
        elif len(f.counts) > 1 and comparable.any():
            yield (
                "No feature has an effect that holds in all environments"
                + (
                    f": everything was washed out, and the prediction is {f.without_features}"
                    if f.pooling.weight == 0
                    else ""
                )
                + f". All features together explain {f.explained_by_all:.0%} of the response in this table, by effects "
                "that change from one environment to the next."
            )


def _features(f: TableFindings) -> Iterator[str]:
    names, varies = f.stability.index, f.stability["varies"].to_numpy()
    if len(f.counts) == 1 and f.pooling.weight == 1:
        yield f"All features together explain {f.explained_by_all:.0%} of the response."
        return
    if f.selected.any():
        yield (
            f"Selected: {listed(names, f.selected)}. This explains {f.explained:.0%} of the response, all features "
            f"together {f.explained_by_all:.0%}."
        )
    washed = ~f.selected & varies
    if washed.any():
        lowest, highest = f.stability["lowest_effect"].to_numpy(), f.stability["highest_effect"].to_numpy()
        verdict = "Washed out, because the effect varies" if f.pooling.weight == 0 else "The effect varies"
        sentence = f"{verdict}: {listed(names, washed)}."
        known = washed & np.isfinite(highest - lowest)  # a curve has no lowest and highest effect
        if known.any():
            most = most_varying(f.stability, known)
            sentence += f" That of {names[most]} goes from {lowest[most]:.3g} to {highest[most]:.3g}."
        yield sentence + _carried(f, washed)
        between, effect = (f.stability[name].to_numpy() for name in ("between", "effect"))
        mild = washed & (between < MILD_SPREAD * np.abs(effect))
        if mild.any() and f.explained_by_all - f.explained > WORTH_HAVING:
            yield (
                f"Varying by less than {MILD_SPREAD:.0%} of the effect itself: {listed(names, mild)}. A larger "
                "tolerance would select what varies so little; use it only for features that cannot be consequences of "
                "the response."
            )
    left = ~f.selected & ~varies
    if left.any() and not left.all():
        yield not_needed(listed(names, left), f.pooling)


def not_needed(names: str, pooling: Pooling) -> str:
    """About features that are neither selected nor vary; a pooled fit has coefficients for them all the same.

    Example:
        >>> not_needed("soil", Pooling(0.0, 1.0, 0.2))
        'Left out, because they add nothing to the selected ones: soil.'
    """
    if pooling.weight == 0:
        return f"Left out, because they add nothing to the selected ones: {names}."
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
    """Which features go with another one of their column, whose effect varies, although their own does not."""
    if len(f.groups) != len(washed):
        return ""
    own = washed & ~(f.stability["significance"].to_numpy() >= SIGNIFICANT)  # NaN counts as the reason
    labels = pd.Series(list(f.groups), dtype=object)
    carried = washed & ~own & labels.isin(labels[own]).to_numpy()
    columns = ", ".join(dict.fromkeys(str(label) for label in labels[carried]))
    return f" {listed(f.stability.index, carried)} goes with the column it comes from: {columns}." if columns else ""


def pooling_sentences(pooling: Pooling, chosen: bool) -> Iterator[str]:
    """Why part of the prediction comes from all features, or why not.

    Args:
        pooling: the weight and where it comes from.
        chosen: whether it was chosen from the data.

    Example:
        >>> next(pooling_sentences(Pooling(0.5, 0.1, 0.3), chosen=False))
        'pooling=0.5 was asked for: coefficients are 50% strict and 50% pooled.'
    """
    a, share, varying = pooling
    if not chosen:
        yield f"pooling={a:g} was asked for: coefficients are {1 - a:.0%} strict and {a:.0%} pooled."
        return
    if a == 0 and share >= 1:
        yield (
            "In environments that were held out, the invariant features predict at least as well as all features: they "
            "predict alone (pooling 0)."
        )
        return
    reason = (
        f"In environments that were held out, the invariant features explain {share:.0%} of what all features explain, "
        f"and the effects of {varying:.0%} of the features vary"
    )
    if a == 0:
        yield f"{reason}: the invariant features predict alone (pooling 0)."
    else:
        yield (
            f"{reason}: too little to rely on the invariant features alone, so {a:.0%} of each coefficient comes from "
            f"the pooled fit of all features (pooling {a:.2f}). That is right if new environments are like those in "
            "this table; pooling=0 uses the invariant features alone."
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
        stability: features x `STABILITY_COLUMNS` of `holdfast.estimators.effects`.
        task: regression or classification.
        level: "common": one intercept; "environment": one for each environment.

    Example:
        >>> rows = {"selected": [True, True], "varies": [False, False], "significance": [0.4, 1e-9]}
        >>> next(doubtful_sentences(pd.DataFrame(rows, ["light", "fruits"]))).split(":")[1].split(".")[0]
        ' fruits'
    """
    selected, significance = stability["selected"].to_numpy(bool), stability["significance"]
    doubtful = selected & (significance < DOUBTFUL).to_numpy()
    differs = "although the effect by itself differs between environments by more than sampling error"
    if doubtful.any():
        missed = (
            " and with one intercept: it can miss one among many, or one of a feature whose mean differs much between "
            f"environments.{_about_levels(task, level)}"
            if level == "common"
            else ": it can miss one among many."
        )
        yield (
            f"Selected, {differs} (p < {DOUBTFUL:g}): {listed(stability.index, doubtful)}. The test that selects takes "
            f"the effects of all selected features together{missed}"
        )
    hidden = ~selected & ~stability["varies"].to_numpy(bool) & (significance < SIGNIFICANT).to_numpy()
    if hidden.any() and level == "common":
        yield (
            f"Not needed, {differs} (p < {SIGNIFICANT:g}): {listed(stability.index, hidden)}. With one intercept, the "
            "level of a feature whose mean differs much between environments hides its effect."
        )


def _about_levels(task: str, level: str) -> str:
    """What can be done about levels that differ; empty if nothing."""
    if task == "regression" and level == "common":
        return ' level="environment" sets levels aside and compares effects within environments.'
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
        yield from doubtful_sentences(f.stability, f.task, f.level)
    if len(f.counts) == 2:
        yield "With two environments an effect has only one chance to vary; a third would make the choice much safer."
    errors = np.abs(f.levels) * np.sqrt(f.counts / max(1 - f.explained, 1e-12))
    if len(f.counts) > 1 and errors.max() > CLEAR_LEVEL and np.ptp(f.levels) > SMALL_LEVEL:
        high, low = (str(f.labels[int(index)]) for index in (np.argmin(f.levels), np.argmax(f.levels)))
        yield (
            f"The level of the response differs between environments: the mean errors are {np.ptp(f.levels):.2g} "
            f"standard deviations apart from {low} to {high}. No feature explains that, and a new environment will "
            f"have a level of its own.{_about_levels(f.task, f.level)}"
        )
    tiny = f.counts < FEW_ROWS
    if tiny.any() and len(f.counts) > 1:
        few = listed(f.labels, tiny)
        yield f"Environments with fewer than {FEW_ROWS} rows: {int(tiny.sum())} of {len(f.counts)} ({few})."
    if f.constant:
        yield f"Constant, and therefore without effect: {', '.join(f.constant)}."


def listed(names: Iterable[Any], chosen: np.ndarray) -> str:
    """The chosen names in a sentence; beyond `NAMED` of them, their number."""
    words = [str(name) for name, one in zip(names, chosen, strict=True) if one]
    if len(words) <= NAMED:
        return ", ".join(words)
    return f"{', '.join(words[:NAMED])} and {len(words) - NAMED} more"
