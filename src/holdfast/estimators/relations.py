"""Both directions of the relation between each feature and the response, and how dangerous it is to rely on it.

A consequence of the response, z = c_e y + noise, has a reverse slope c_e (of the feature on the response), and a
forward effect (on the response) that saturates in c_e: a sixfold change looks small. A cause whose variance changes has
a constant forward effect, and a reverse slope that changes. So one direction alone does not tell what is dangerous.
Where the effects of all other features are equal once a few are left out, forward evidence decides; elsewhere the
reverse slope ranks best. Both come from one matrix: with T_e the inverse covariance of (x, y) in environment e,

    effect_ej = -T_jy / T_yy,    reverse_ej = -T_jy / T_jj,

each given all other features. With tau_j the standard deviation of the reverse slope between environments beyond
sampling error, w the pooled fit and r its errors, a move of d = -sign(reverse_j) K tau_j costs

    reverse_loss_j = ((w_j d)^2 Var(y) - 2 w_j d Cov(r, y)) / Var(r)    relative to the error within environments.

`docs/statistics.md` has how often the ranking and the verdicts are right.
"""

from typing import NamedTuple

import numpy as np

from holdfast.core.moments import StandardizedMoments
from holdfast.core.statistics import RandomEffects, detectable_spread, largest_spread, random_effects
from holdfast.estimators.directions import (
    ROUNDING,
    TINY,
    WithinEnvironments,
    effect_tests,
    regret,
    ridged_inverse,
    suspects_of,
)
from holdfast.estimators.effects import OwnEffects
from holdfast.estimators.search.evidence import Evidence

# A relation may move by so many of its standard deviations between environments: K.
FAR = 2.5
# Even then, a relation that holds costs less than the first share of the error, with 95 % confidence; a dangerous one
# costs more than the second.
HARMLESS, DANGEROUS = 0.05, 0.1
# Where a feature is compared alone: its difference holds if it cannot lose more than this share of itself.
HALF = 0.5
# Level of the tests behind a verdict, for all features together (Bonferroni).
LEVEL = 0.025


class Relations(NamedTuple):
    """What is known about each feature; all (features,), of standardised variables.

    Attributes:
        given: whether the effects of the others are given this feature: it is not in question.
        own: its effects in each environment, given those.
        forward: the analysis of its effects on the response.
        reverse: that of its slopes on the response, given all other features.
        after: whether it was declared to come after the response.
        detectable: the standard deviation between environments that this table would have shown: of its effect, or of
            its slope if it comes after the response.
        reliance: relative loss of the pooled fit if the feature loses its relation, as by a permutation of its rows.
        forward_loss: relative loss of the pooled fit if its effect moves by `FAR` standard deviations.
        reverse_loss: the same if the reverse slope moves towards zero, and beyond.
        price: relative loss of the pooled fit in this table if the feature is left out.
        regret: fall of the relative loss of common effects against own ones in each environment if it is left out.
        danger: the loss that counts: forward where the effect holds, else reverse, unless it was declared which.
        suspect: which features were left out until the effects of all others were equal, in this order 1, 2, ...;
            0 for the others.
        verdict: "holds", "varies", "dangerous" or "cannot be told".
    """

    given: np.ndarray
    own: OwnEffects
    forward: RandomEffects
    reverse: RandomEffects
    after: np.ndarray
    detectable: np.ndarray
    reliance: np.ndarray
    forward_loss: np.ndarray
    reverse_loss: np.ndarray
    price: np.ndarray
    regret: np.ndarray
    danger: np.ndarray
    suspect: np.ndarray
    verdict: np.ndarray

    def columns(self, units: np.ndarray | float) -> dict[str, np.ndarray]:
        """Those of a table of features; `units` turn standardised effects into those of the table."""
        several = np.where(self.reverse.measured > 1, 1.0, np.nan)
        return {
            "given": self.given,
            "detectable": self.detectable * np.where(self.after, 1 / units, units),
            "reverse": self.reverse.mean / units,
            "reverse_between": self.reverse.between * several / units,
            "reverse_i_squared": self.reverse.i_squared * several,
            "reverse_significance": self.reverse.significance * several,
            "reliance": self.reliance,
            "price": self.price,
            "regret": self.regret,
            "forward_loss": self.forward_loss,
            "reverse_loss": self.reverse_loss,
            "danger": self.danger,
            "rank": np.argsort(self.order) + 1,
            "verdict": self.verdict,
        }

    @property
    def order(self) -> np.ndarray:
        """(features,), the most dangerous first: the one whose removal makes effects equal, then by `danger`."""
        return np.lexsort((-np.nan_to_num(self.danger), self.suspect != 1))


def find_relations(evidence: Evidence, before: np.ndarray, after: np.ndarray, trusted: np.ndarray) -> Relations:
    """Both directions, losses and verdicts of all features.

    Args:
        evidence: the table.
        before: (features,), those recorded before the response, which are judged by their effect on it.
        after: (features,), those recorded after or because of it, which are judged by their slope on it.
        trusted: (features,), those whose effects are equal together and explain enough to be relied on.

    Example, the second feature follows the response more closely in some environments:
        >>> from holdfast.core import group_rows
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> from holdfast.estimators.search.evidence import SquaredEvidence
        >>> random = np.random.default_rng(0)
        >>> codes = np.repeat(np.arange(6), 500)
        >>> cause = random.standard_normal(3000)
        >>> y = cause + random.standard_normal(3000)
        >>> x = np.column_stack([cause, np.linspace(0.2, 1.2, 6)[codes] * y + 0.6 * random.standard_normal(3000)])
        >>> evidence = SquaredEvidence(standardized(collect_moments(x, y, group_rows(codes, 3000))))
        >>> find_relations(evidence, *np.zeros((3, 2), bool)).verdict.tolist()
        ['holds', 'dangerous']
    """
    moments = evidence.second_moments()
    table = WithinEnvironments.of(moments, evidence.working())
    pooled, tests = _Pooled.of(moments, table), effect_tests(table)
    features = len(before)
    level = LEVEL / max(features, 1)
    suspects, differ = suspects_of(table, np.argsort(tests.given_all, kind="stable"))

    reverse = random_effects(*table.reverse)
    reverse_loss, reverse_most = (
        pooled.reverse_loss(spread, reverse.mean) for spread in (reverse.between, largest_spread(*table.reverse[:2]))
    )
    turns = reverse.significance < level
    differs = tests.given_any < level
    if suspects:  # effects are equal without these, so that the others are not in question
        differs = np.isin(np.arange(features), suspects) & (tests.given_all < level)
    dangerous = turns & (reverse_loss > DANGEROUS) & ~before & ~after & differs & (bool(suspects) | ~trusted)
    last = _judged(reverse_most < HARMLESS, turns & (reverse_loss > DANGEROUS), turns)

    kept = ~(dangerous | (after & (last != "holds")))
    kept[suspects] &= not differ
    own = evidence.own_effects(kept)
    forward = random_effects(*own)
    forward_loss, forward_most = (
        _forward_loss(evidence, table, kept, forward, spread)
        for spread in (forward.between, largest_spread(own.estimates, own.errors))
    )
    varies = forward.significance < level
    holds = (forward_most < HARMLESS) & ~varies
    if not (suspects and differ):
        varies &= tests.given_any < level
    first = _judged(holds, varies & (forward_loss > DANGEROUS), varies)
    if evidence.saturates:
        holds &= reverse_loss <= DANGEROUS
    order = np.zeros(features, int)
    order[suspects] = np.arange(1, len(suspects) + 1)
    return Relations(
        kept,
        own,
        forward,
        reverse,
        after,
        np.where(after, detectable_spread(table.reverse.errors, level), detectable_spread(own.errors, level)),
        pooled.reliance,
        forward_loss,
        reverse_loss,
        pooled.price,
        regret(table),
        np.where(~after & (before | holds), forward_loss, reverse_loss),
        order,
        np.select([before, after], [first, last], _judged(holds, dangerous, varies)),
    )


def _judged(holds: np.ndarray, dangerous: np.ndarray, varies: np.ndarray) -> np.ndarray:
    """(features,), verdicts."""
    return np.select([dangerous, holds, varies], ["dangerous", "holds", "varies"], "cannot be told")


def _forward_loss(
    evidence: Evidence, table: "WithinEnvironments", kept: np.ndarray, forward: RandomEffects, spread: np.ndarray
) -> np.ndarray:
    """(features,): relative loss within environments if effects move by `FAR` such spreads.

    Where levels of environments differ, the coefficient of the pooled fit may be off the effect within them to begin
    with: by as much as two standard errors of the mean effect do not explain.
    """
    every = evidence.solve(np.arange(evidence.dimension)).coefficients
    fitted = np.where(kept, evidence.solve(np.flatnonzero(kept)).coefficients, every)
    off = np.maximum(np.abs(fitted - forward.mean) - 2 * forward.error, 0.0)
    mean = np.tensordot(table.counts / max(table.counts.sum(), 1), table.working, 1)
    errors = np.append(-every, 1.0)
    return (off + FAR * spread) ** 2 * np.diag(mean)[:-1] / max(float(errors @ mean @ errors), TINY)


def may_change(evidence: Evidence, after: np.ndarray) -> np.ndarray:
    """(features,): which of those recorded after the response are not shown to hold; a prediction does without them."""
    moments = evidence.second_moments()
    table = WithinEnvironments.of(moments, evidence.working())
    most = _Pooled.of(moments, table).reverse_loss(
        largest_spread(*table.reverse[:2]), random_effects(*table.reverse).mean
    )
    return after & ~(most < HARMLESS)


class _Pooled(NamedTuple):
    """Least squares on all rows, and what its loss within environments would become.

    Attributes:
        matrix: (features + 1, features + 1), mean products of all rows about their means.
        fit: (features,), w.
        within: (features + 1,), variances within environments.
        across: (features + 1,), the covariances of the errors of the fit with features and response, within them.
        loss: the variance of these errors.
    """

    matrix: np.ndarray
    fit: np.ndarray
    within: np.ndarray
    across: np.ndarray
    loss: float

    @classmethod
    def of(cls, moments: StandardizedMoments, table: WithinEnvironments) -> "_Pooled":
        weights = moments.weights
        second, cross = np.tensordot(weights, moments.second, 1), weights @ moments.cross
        matrix = np.block([[second, cross[:, None]], [cross[None], weights @ moments.square]])
        fit = np.linalg.lstsq(second, cross, rcond=ROUNDING)[0]
        mean = np.tensordot(table.counts / max(table.counts.sum(), 1), table.covariance, 1)
        errors = np.append(-fit, 1.0)
        return cls(matrix, fit, np.diag(mean), mean @ errors, max(float(errors @ mean @ errors), TINY))

    def reverse_loss(self, spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """(features,): relative loss if single reverse slopes move by `FAR` such spreads, towards zero and beyond."""
        move = -np.sign(mean) * FAR * spread * self.fit
        return np.maximum((move**2 * self.within[-1] - 2 * move * self.across[-1]) / self.loss, 0.0)

    @property
    def reliance(self) -> np.ndarray:
        """(features,): relative loss if the values of a feature are permuted within environments."""
        return np.maximum(2 * self.fit * (self.across[:-1] + self.fit * self.within[:-1]) / self.loss, 0.0)

    @property
    def price(self) -> np.ndarray:
        """(features,): relative loss over these rows if the feature is left out and the others are fitted again."""
        inverse = ridged_inverse(self.matrix)
        own, last = np.diag(inverse)[:-1], inverse[-1, -1]
        return 1 / np.maximum(1 - inverse[:-1, -1] ** 2 / np.maximum(own * last, TINY), TINY) - 1


def relations_alone(own: OwnEffects, units: np.ndarray | float) -> dict[str, np.ndarray]:
    """The columns of `Relations.columns` for features that are compared by themselves, as means of classes are.

    The class decides about the features there, so that their differences are what holds or not. `danger` is the share
    of the difference that would be lost if it moved by `FAR` standard deviations; above 1 it changes its sign.

    Args:
        own: differences in each environment.
        units: what turns them into those of the table.

    Example, measured almost exactly in five environments:
        >>> differences = np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [0.1, 1.0, 2.0, 0.5, 1.5]]).T
        >>> own = OwnEffects(differences, np.full((5, 2), 0.01), np.full((5, 2), 1e6))
        >>> relations_alone(own, 1.0)["verdict"].tolist()
        ['holds', 'dangerous']
    """
    found, level = random_effects(*own), LEVEL / max(own.estimates.shape[1], 1)
    size = np.maximum(np.abs(found.mean), TINY)
    danger, most = (FAR * spread / size for spread in (found.between, largest_spread(own.estimates, own.errors)))
    differs = (found.measured > 1) & (found.significance < level)
    verdict = np.select(
        [differs & (danger > 1), differs, most < HALF], ["dangerous", "varies", "holds"], "cannot be told"
    )
    nothing = np.full(len(size), np.nan)
    known = {
        "given": np.zeros(len(size), bool),
        "detectable": detectable_spread(own.errors, level) * units,
        "danger": danger,
        "rank": np.argsort(np.argsort(-np.nan_to_num(danger), kind="stable")) + 1,
    }
    unknown = ("reverse", "reverse_between", "reverse_i_squared", "reverse_significance")
    losses = ("reliance", "price", "regret", "forward_loss", "reverse_loss")
    return {**dict.fromkeys((*unknown, *losses), nothing), **known, "verdict": verdict}
