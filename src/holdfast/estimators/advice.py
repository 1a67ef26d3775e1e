"""Advice in sentences: what a table can and cannot say about invariance."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from holdfast.estimators.description import TableFindings
from holdfast.estimators.pooling import Pooling

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


def advise(findings: TableFindings) -> list[str]:
    """The advice, most important first."""
    parts = [_about_comparison, _about_features, _about_levels, _about_environments]
    return [*findings.first, *(sentence for part in parts for sentence in part(findings)), *findings.last]


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


def _about_comparison(f: TableFindings) -> Iterator[str]:
    """Whether effects can be compared at all, and whether they differ."""
    if len(f.counts) == 1:
        pooled = ": the coefficients are those of the pooled fit of all features" if f.pooling.weight == 1 else ""
        yield f"There is only one environment, so nothing is known about which effects hold elsewhere{pooled}."
    elif not (f.comparable or f.varies.any()):
        yield NOT_COMPARABLE
    elif f.pooled_equality >= SIGNIFICANT and not f.varies.any():
        yield (
            f"The {f.table.compared}s do not differ between the {len(f.counts)} environments beyond sampling error and "
            f"the tolerance (p = {f.pooled_equality:.2g}, not below {SIGNIFICANT:g}): nothing was washed out, and "
            "these environments cannot tell what is invariant from what is not."
        )


def _about_features(f: TableFindings) -> Iterator[str]:
    """Which features are selected, washed out or not needed, and how much of the prediction comes from all of them."""
    names, several = f.stability.index, len(f.counts) > 1
    strict = f.pooling.weight == 0  # a pooled fit has coefficients for all features
    regression = f.table.task == "regression"
    constant = "the mean of the response" if regression else "the share of each class, whatever the features are"
    if not f.selected.any():
        # effects that cancel in the mean explain nothing together, and still vary
        if f.explained_by_all < NEXT_TO_NOTHING and not f.varies.any():
            yield (
                f"The features say next to nothing about the response (together {f.explained_by_all:.1%} of it): the "
                f"prediction is {constant}."
            )
        elif several and f.comparable:
            left = f": everything was washed out, and the prediction is {constant}"
            yield (
                f"No feature has the same {f.table.compared} in all environments"
                f"{left if strict else ''}. All features together explain {f.explained_by_all:.0%} of "
                "the response in this table, through what changes between environments."
            )
    if not several and f.pooling.weight == 1:
        yield f"All features together explain {f.explained_by_all:.0%} of the response."
        return
    if f.selected.any():
        words = "Together they explain" if f.selected.sum() > 1 else "It explains"
        yield (
            f"Selected: {listed(names, f.selected)}. {words} {f.explained:.0%} of the response, all features "
            f"{f.explained_by_all:.0%}."
        )
    washed = ~f.selected & f.varies
    if washed.any():
        numbers = f.stability[["lowest_effect", "highest_effect", "between", "effect"]].to_numpy(float)
        lowest, highest, between, effect = numbers.T
        because = "Washed out because the" if strict else "The"
        sentence = f"{because} {f.table.compared} varies: {listed(names, washed)}."
        known = washed & np.isfinite(highest - lowest)  # a curve has no lowest and highest effect
        if known.any():
            # I² has no units, as ranges have
            most = int(np.argmax(np.where(known, f.stability["i_squared"].fillna(0.0), -1.0)))
            sentence += f" That of {names[most]} ranges from {lowest[most]:.3g} to {highest[most]:.3g}."
        yield sentence + _carried(f, washed)
        mild = washed & (between < MILD_SPREAD * np.abs(effect))
        if mild.any() and f.explained_by_all - f.explained > WORTH_HAVING:
            yield (
                f"Varying by less than {MILD_SPREAD:.0%} of the {f.table.compared} itself: {listed(names, mild)}. A "
                "larger tolerance would select these too; use one only for features that cannot be consequences of "
                "the response."
            )
    left = ~f.selected & ~f.varies
    if left.any() and not left.all():
        without = "Left out because they add nothing to the selected features" if strict else "Not needed"
        yield f"{without}: {listed(names, left)}."
    if several and not f.selected.all():
        yield from pooling_sentences(f.pooling, f.chosen)


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


def doubtful_sentences(stability: pd.DataFrame, task: str, level: str) -> Iterator[str]:
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
        >>> (sentence,) = doubtful_sentences(pd.DataFrame(rows, ["light", "fruits"]), "regression", "common")
        >>> sentence.split(":")[1].split(".")[0]
        ' fruits'
    """
    selected, significance = stability["selected"].to_numpy(bool), stability["significance"]
    doubtful = selected & (significance < DOUBTFUL).to_numpy()
    differs = "although the effect by itself differs between environments beyond sampling error"
    if doubtful.any():
        missed = f", or that of a feature whose mean differs a lot between environments.{_without_levels(task, level)}"
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


def _without_levels(task: str, level: str) -> str:
    """What can be done about levels that differ; empty if nothing."""
    if task == "regression" and level == "common":
        return ' level="environment" removes the levels and compares effects within environments.'
    return ""


def _about_levels(f: TableFindings) -> Iterator[str]:
    """Where tests of effects disagree, and whether the response differs in a way that no effect explains."""
    if len(f.counts) == 1 or f.table.compared != "effect":
        return
    if f.selected.any() and f.equality < 0.01:
        yield (
            f"The selected features barely pass the test of equal effects (p = {f.equality:.2g}): the environments may "
            "act in a way that these features do not capture."
        )
    yield from doubtful_sentences(f.stability, f.table.task, f.table.level)
    errors = np.abs(f.levels) * np.sqrt(f.counts / max(1 - f.explained, 1e-12))
    if errors.max() > CLEAR_LEVEL and np.ptp(f.levels) > SMALL_LEVEL:
        high, low = (str(f.table.labels[int(index)]) for index in (np.argmin(f.levels), np.argmax(f.levels)))
        yield (
            f"The level of the response differs between environments: mean errors are {np.ptp(f.levels):.2g} standard "
            f"deviations apart from {low} to {high}. No feature explains this, and a new environment will have its own "
            f"level.{_without_levels(f.table.task, f.table.level)}"
        )


def _about_environments(f: TableFindings) -> Iterator[str]:
    """Whether there are environments and rows enough."""
    count, tiny = len(f.counts), f.counts < FEW_ROWS
    if count == 2:
        yield "With two environments an effect has only one chance to vary; a third would make the choice much safer."
    if tiny.any() and count > 1:
        few = listed(f.table.labels, tiny)
        yield f"Environments with fewer than {FEW_ROWS} rows: {int(tiny.sum())} of {count} ({few})."
    flat = f.table.scaling.constant
    if flat.any():
        yield f"Constant, and therefore without effect: {listed(f.table.names, flat, most=len(flat))}."


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
