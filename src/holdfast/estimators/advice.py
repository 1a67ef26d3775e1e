"""Advice in sentences: what to rely on, what is dangerous and what it would cost, what to do; and notes besides."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from holdfast.estimators.description import TableFindings
from holdfast.estimators.pooling import Pooling
from holdfast.estimators.relations import DANGEROUS, FAR, HARMLESS

FEW_ROWS = 20  # with fewer an environment says little about any effect
NAMED = 8  # features named in a sentence; more are counted
# Differences at a smaller probability than this are differences.
SIGNIFICANT = 0.001
# A mean error is clear if it is this many standard errors from zero, and small below this many standard deviations.
CLEAR_LEVEL, SMALL_LEVEL = 4.0, 0.05
# Less than this share of the response explained by all features together is next to nothing.
NEXT_TO_NOTHING = 0.01
# A feature explains the response once more if its price is above this: the error without it is so many times as large.
COPY = 50.0


def advise(findings: TableFindings) -> list[str]:
    """At most three sentences, the most important first."""
    if len(findings.counts) == 1:
        return ["There is only one environment, so nothing is known about which relations hold elsewhere."]
    if findings.relations["effect"].isna().all() and not findings.curves:
        return ["No effect is measured in two environments, so nothing is known about which relations hold elsewhere."]
    return [_rely(findings), *_danger(findings), *_ask(findings)][:3]


def notes(findings: TableFindings) -> list[str]:
    """What to mind besides."""
    parts = [_about_copies, _about_prediction, _about_levels, _about_environments]
    return [*findings.first, *(sentence for part in parts for sentence in part(findings)), *findings.last]


def _rely(f: TableFindings) -> str:
    """What holds, or what these rows would have shown."""
    verdict, names = f.relations["verdict"].to_numpy(), f.relations.index
    effective = ((f.relations["low"] > 0) | (f.relations["high"] < 0) | f.relations["effect"].isna()).to_numpy()
    holds = (verdict == "holds") & effective
    alone = f.table.compared != "effect"
    if holds.any():
        meaning = (
            f"moves of {FAR:g} standard deviations would leave more than half of each difference"
            if alone
            else f"moves of {FAR:g} standard deviations between environments would raise the error by less than "
            f"{HARMLESS:.0%}"
        )
        words = "relations hold" if holds.sum() > 1 else "relation holds"
        return f"Rely on {listed(names, holds)}: the {words} in these environments ({meaning}, with 95 % confidence)."
    if (unknown := verdict == "cannot be told").any():
        shown = f.relations["detectable"].to_numpy()
        sizes = np.nan_to_num(np.abs(f.relations["effect"].to_numpy() / f.relations["effect_error"].to_numpy()))
        best = int(np.argmax(np.where(unknown & np.isfinite(shown), sizes, -1.0)))
        power = (
            f" Of {names[best]} they would show a standard deviation of {shown[best]:.2g} between environments, with "
            "80 % power."
            if np.isfinite(shown[best])
            else ""
        )
        return (
            f"No clear {f.table.compared} could be shown to hold: {f.counts.sum():,.0f} rows in {len(f.counts)} "
            f"environments are too few to tell.{power}"
        )
    varying = listed(names, effective & (verdict != "holds"))
    return f"No clear {f.table.compared} holds in all environments: {varying} differs by more than sampling error."


def _danger(f: TableFindings) -> Iterator[str]:
    """The most dangerous feature, and what it would cost."""
    dangerous = f.relations[f.relations["verdict"] == "dangerous"].sort_values("rank")
    if dangerous.empty:
        return
    first = dangerous.iloc[0]
    others = f" Dangerous as well: {listed(dangerous.index[1:])}." if len(dangerous) > 1 else ""
    if f.table.compared != "effect":
        yield (
            f"Dangerous: {dangerous.index[0]}. Its difference between the classes could vanish or change its sign in "
            f"the next environment (mean {first['effect']:.2g}, standard deviation {first['between']:.2g}).{others}"
        )
        return
    dropped = f.dropped[f.relations.index.get_loc(dangerous.index[0])]
    price = f"{'it is left out, which' if dropped else 'leaving it out'} raises it by {first['price']:.0%}"
    yield (
        f"Dangerous: {dangerous.index[0]}. If its relation to {f.table.response} moves by {FAR:g} standard deviations "
        "between environments, the squared error of "
        f"a fit of all features grows by {first['danger']:.0%}, and by {first['reliance']:.0%} if it breaks; {price} "
        f"in this table.{others}"
    )


def _ask(f: TableFindings) -> Iterator[str]:
    """What only people know: whether a feature was recorded after the response."""
    table = f.relations.assign(declared=f.declared).sort_values("rank")
    unsettled = (table["verdict"] != "holds") & (table["reverse_loss"] > DANGEROUS) & ~table["declared"]
    for name in table.index[unsettled][:1]:
        yield (
            f"Could {name} be recorded after {f.table.response}, or because of it? If so, say after=[{str(name)!r}], "
            f"and it is left out unless its relation holds; if it comes first, say before=[{str(name)!r}]."
        )


def _about_copies(f: TableFindings) -> Iterator[str]:
    """A feature that is the response once more."""
    copies = (f.relations["price"] > COPY).to_numpy() & (f.explained_by_all > 1 - 1 / COPY)
    if copies.any():
        yield (
            f"{listed(f.relations.index, copies)} nearly determines {f.table.response}: it may be a copy, or measured "
            "from it. If so, leave it out."
        )


def _about_prediction(f: TableFindings) -> Iterator[str]:
    """Which features predict, and how much of the prediction comes from all of them."""
    names, several = f.relations.index, len(f.counts) > 1
    if f.dropped.any():
        yield f"Left out, since after {f.table.response} and not shown to hold: {listed(names, f.dropped)}."
    if not several or f.explained_by_all < NEXT_TO_NOTHING:
        yield f"The features together explain {f.explained_by_all:.0%} of {f.table.response}."
        return
    if f.pooling.weight < 1:
        chosen = listed(names, f.selected) if f.selected.any() else "none"
        yield (
            f"Selected, as having equal effects together: {chosen}. They explain {f.explained:.0%} of "
            f"{f.table.response}, all {'other ' if f.dropped.any() else ''}features {f.explained_by_all:.0%}."
        )
    yield from pooling_sentences(f.pooling, f.chosen)


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
    elif varying == 0:
        yield "Among the features used, the search found no effect that varies: they are all used (pooling = 1)."
    elif a == 0 and share >= 1:
        yield (
            "In held-out environments the selected features predict at least as well as all features: only the "
            "selected ones are used (pooling = 0)."
        )
    else:
        part = (
            "only the selected ones are used"
            if a == 0
            else f"{a:.0%} of each coefficient comes from the fit of all features"
        )
        strict = "" if a == 0 else " pooling=0 uses the selected features alone."
        yield (
            f"In held-out environments the selected features bring {share:.0%} of the fall of the log error that all "
            f"features bring, and the effects of {varying:.0%} of the features vary: {part} (pooling = {a:.2g})."
            f"{strict}"
        )


def _about_levels(f: TableFindings) -> Iterator[str]:
    """Whether the response differs in a way that no effect explains."""
    if len(f.counts) == 1 or f.table.compared != "effect":
        return
    errors = np.abs(f.levels) * np.sqrt(f.counts / max(1 - f.explained_by_fit, 1e-12))
    if errors.max() > CLEAR_LEVEL and np.ptp(f.levels) > SMALL_LEVEL:
        high, low = (str(f.table.labels[int(index)]) for index in (np.argmin(f.levels), np.argmax(f.levels)))
        own = (
            ' level="environment" compares effects within environments.'
            if (f.table.task == "regression" and f.table.level == "common")
            else ""
        )
        yield (
            f"The level of {f.table.response} differs between environments: mean errors are {np.ptp(f.levels):.2g} "
            f"standard deviations apart from {low} to {high}. No feature used explains this, and a new "
            f"environment will have its own level.{own}"
        )


def _about_environments(f: TableFindings) -> Iterator[str]:
    """Whether there are environments and rows enough."""
    count, tiny = len(f.counts), f.counts < FEW_ROWS
    if count == 2:
        yield "With two environments an effect has only one chance to vary; a third would make every verdict safer."
    if tiny.any() and count > 1:
        few = listed(f.table.labels, tiny)
        yield f"Environments with fewer than {FEW_ROWS} rows: {int(tiny.sum())} of {count} ({few})."
    if f.counts.sum() < 3 * len(f.relations):
        yield (
            f"{f.counts.sum():.0f} rows are few for {len(f.relations)} features: what they explain here is mostly "
            "chance, and less is explained elsewhere."
        )
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
