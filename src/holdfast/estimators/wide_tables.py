"""Tables with more features than their rows can tell apart: which are searched, and what is said about the others.

Features are ranked by the relation that each has to the response by itself, over all rows: with g_e the gradient of the
loss at a constant prediction in environment e, V_e the variance of its sampling error and p_e the share of the rows,

    score = |sum_e p_e g_e| / sqrt(sum_e p_e^2 V_e).

The strongest are searched, half as many as there are rows and at most `MOST_SEARCHED`; features of one group stay
together, and those that are declared come first. A feature that matters next to others only may be overlooked.

What few rows explain of themselves is mostly chance. With fewer than `FEW` rows for each feature, explained shares are
those of environments that were held out; of a single environment, those that are left when degrees of freedom count.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from holdfast.core.progress import counted
from holdfast.estimators.contract import SearchSettings
from holdfast.estimators.description import Coordinates, TableDescription, TableFindings
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.evidence import Evidence, SquaredEvidence

# All features of smaller tables are searched, and no more than this many of any.
SMALL, MOST_SEARCHED = 30, 500
# Rows for each feature, and environments that are held out where there are fewer.
FEW, HELD_OUT = 3, 8


def strongest_features(evidence: Evidence, groups: Sequence[Any] | None, declared: np.ndarray) -> np.ndarray | None:
    """The numbers of the features to be searched; None: all.

    Args:
        evidence: the table.
        groups: one label for each feature; None: one by one.
        declared: (features,), those that come before the response or after it.

    Example, 100 features of 80 rows, of which the last is the response:
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> x = np.random.default_rng(0).standard_normal((80, 100))
        >>> found = strongest_features(SquaredEvidence(standardized(collect_moments(x, x[:, -1]))), None, np.zeros(100))
        >>> len(found), 99 in found
        (40, True)
    """
    most = _most_searched(evidence)
    return None if most is None else _strongest(evidence, groups, np.where(declared, np.inf, 0.0), most)


def _most_searched(evidence: Evidence) -> int | None:
    """How many features are searched; None: all."""
    most = min(int(evidence.counts.sum()) // 2, MOST_SEARCHED)
    return None if evidence.dimension <= max(SMALL, most) else most


def _strongest(
    evidence: Evidence, groups: Sequence[Any] | None, bonus: np.ndarray, most: int, own: Any = slice(None)
) -> np.ndarray:
    """So many of the features with the highest scores in some environments, each score with a bonus."""
    slopes, weights = evidence.slopes(evidence.solve(np.arange(0))), evidence.weights[own, None]
    error = np.sqrt(np.maximum((weights**2 * slopes.variance[own]).sum(0), 1e-300))
    scores = bonus + np.abs((weights * slopes.gradient[own]).sum(0)) / error
    labels = pd.factorize(np.arange(len(scores)) if groups is None else pd.Series(list(groups), dtype=object))[0]
    ranked = pd.Series(scores).groupby(labels).agg(["max", "size"]).sort_values("max", ascending=False, kind="stable")
    chosen = ranked.index[ranked["size"].cumsum() <= max(most, ranked["size"].iloc[0])]
    return np.flatnonzero(np.isin(labels, chosen))


def narrowed(
    settings: SearchSettings, table: TableDescription, kept: np.ndarray, before: np.ndarray, after: np.ndarray
) -> tuple[SearchSettings, TableDescription]:
    """The settings and the description of some features of a table."""
    own: Any = copy(settings)
    own.groups = None if settings.groups is None else [list(settings.groups)[number] for number in kept]
    own.before, own.after = (np.flatnonzero(mask[kept]).tolist() for mask in (before, after))
    scaling = table.scaling._replace(**{name: part[kept] for name, part in table.scaling._asdict().items()})
    return own, table._replace(names=[table.names[number] for number in kept], scaling=scaling)


def widened(
    found: TableFindings, table: TableDescription, kept: np.ndarray, system: Coordinates, groups: Sequence[Any] | None
) -> TableFindings:
    """What was found for some features as findings about all: the others have the coefficient 0 and no effects.

    Args:
        found: for the features that were searched.
        table: all features.
        kept: the numbers of those that were searched.
        system: the coordinates of all features.
        groups: of all features.
    """
    features, directions = len(table.names), system.directions[:, kept]
    place = np.zeros(features, int)
    place[kept] = np.arange(len(kept))
    others = ~np.isin(np.arange(features), kept)
    narrow = found.relations
    relations = narrow.iloc[place].set_axis(pd.Index(list(table.names), name=narrow.index.name))
    for name in relations.columns:
        known: dict[Any, Any] = {"coefficient": 0.0, "selected": False, "given": False, "verdict": "cannot be told"}
        later: Any = np.arange(len(kept) + 1, features + 1) if name == "rank" else known.get(name, np.nan)
        relations.loc[others, name] = later
    parts = {"effects": found.tables.effects, "errors": found.tables.errors, "degrees": found.tables.degrees}
    wide = {
        name: pd.DataFrame(np.where(others, np.nan, part.to_numpy()[:, place]), part.index, list(table.names))
        for name, part in parts.items()
    }
    sentence = (
        f"{features:,} features are more than {counted(round(found.counts.sum()), 'row')} can tell apart: the "
        f"{len(kept)} with the strongest relation to {table.response}, each by itself, were searched. The others have "
        "the coefficient 0, and nothing is known about them."
    )
    return found._replace(
        table=table,
        strict=LinearModel(directions @ found.strict.coefficients, found.strict.intercept),
        pooled=LinearModel(directions @ found.pooled.coefficients, found.pooled.intercept),
        coordinates=system,
        tables=found.tables._replace(relations=relations, **wide),
        **{name: getattr(found, name)[place] & ~others for name in ("varies", "declared", "dropped")},
        groups=() if groups is None else list(groups),
        last=(*found.last, sentence),
    )


def explained_elsewhere(
    found: TableFindings, evidence_in: Callable[[Coordinates], Evidence], groups: Sequence[Any] | None
) -> TableFindings:
    """The findings with explained shares that are not those of the rows that were fitted, if these are few.

    Where some features were searched only, they are ranked anew without the environment that is held out: in place of
    the selected ones count as many of the strongest. At most `HELD_OUT` environments are held out, the largest ones.

    Args:
        found: about a table.
        evidence_in: system -> what the table says in its coordinates.
        groups: one label for each feature; None: one by one.
    """
    system = found.coordinates
    evidence = evidence_in(system)
    rows, usable = evidence.counts.sum(), np.ones(evidence.dimension, bool)
    usable[: len(found.dropped)] &= ~found.dropped[: evidence.dimension]
    if rows >= FEW * evidence.dimension:
        return found

    several, some = len(evidence.counts) > 1, np.argsort(-evidence.counts, kind="stable")[:HELD_OUT]
    most = _most_searched(evidence)

    def held_out(columns: np.ndarray) -> np.ndarray:
        if most is None or not len(columns):
            return evidence.held_out(columns)
        return evidence_in(Coordinates("strongest", system.directions[:, columns])).held_out(np.arange(len(columns)))

    if not several:
        left = rows - 1 - (found.selected.sum() if most is None else evidence.dimension), rows - 1 - evidence.dimension
        shares = [
            1 - (1 - share) * (rows - 1) / spare if spare > 0 else 0.0
            for share, spare in zip((found.explained, found.explained_by_all), left, strict=True)
        ]
    elif most is None:
        shares = [
            _share(evidence, held_out, some, [np.flatnonzero(columns)] * len(some))
            for columns in (found.selected, usable)
        ]
    else:
        others = [np.delete(np.arange(len(evidence.counts)), one) for one in some]
        shares = [
            _share(
                evidence,
                held_out,
                some,
                [_strongest(evidence, groups, np.where(usable, 0.0, -np.inf), size, own) for own in others],
            )
            for size in (int(found.selected.sum()), most)
        ]
    strict, pooled = (float(np.clip(share, 0.0, 1.0)) for share in shares)
    a = found.pooling.weight
    how = "are those of environments that were held out" if several else "allow for the number of features"
    return found._replace(
        explained=strict,
        explained_by_all=pooled,
        explained_by_fit=(1 - a) * strict + a * pooled,
        last=(*found.last, f"Explained shares {how}."),
    )


def _share(
    evidence: Evidence,
    losses: Callable[[np.ndarray], np.ndarray],
    held_out: np.ndarray,
    columns: Sequence[np.ndarray],
) -> float:
    """The share of the likelihood that these columns explain where they were not fitted, one set for each of these."""
    known = {own.tobytes(): own for own in columns}
    found = {key: losses(own) for key, own in known.items()}
    gains = np.array([found[own.tobytes()][number] for own, number in zip(columns, held_out, strict=True)])
    scale = 1 if isinstance(evidence, SquaredEvidence) else 2  # twice the logistic loss is the deviance
    gains -= evidence.held_out(np.arange(0))[held_out]
    return float(-np.expm1(scale * np.average(gains, weights=evidence.counts[held_out])))
