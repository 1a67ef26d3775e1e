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

`docs/tabular.md` has how often the ranking and the verdicts are right.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from holdfast.core.moments import StandardizedMoments
from holdfast.core.statistics import RandomEffects, detectable_spread, largest_spread, random_effects
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
# The effects of a set of features are equal if differences as large have at least this probability.
EQUAL = 0.001
# A feature is left out on the way to such a set if more than this share of the differences goes with it.
SHARE = 0.25
# Features that are tried at each step, those whose own effects differ most.
CANDIDATES = 20
# With more features, what each one adds to the differences between environments is not computed.
MOST_REGRETS = 100
# Rows that an environment needs beyond the number of features, and beyond two columns.
SPARE, FEWEST = 10, 2
# Covariances get this share of their mean variance as a ridge, and what they say below the second share is rounding.
RIDGE, ROUNDING = 1e-8, 1e-10
# Variances of slopes are not below this share of the units.
TINY = 1e-14


class Relations(NamedTuple):
    """What is known about each feature; all (features,), of standardised variables.

    Attributes:
        given: whether the effects of the others are given this feature: it is not in question.
        own: its effects in each environment, given those.
        forward: the analysis of its effects on the response.
        reverse: that of its slopes on the response, given all other features.
        detectable: the standard deviation of its effect between environments that this table would have shown.
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
            "detectable": self.detectable * units,
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
    table = _Within.of(moments, evidence.working())
    pooled, tests = _Pooled.of(moments, table), _tests_in_company(table)
    features = len(before)
    level = LEVEL / max(features, 1)
    suspects = _suspects(table, np.argsort(tests.given_all, kind="stable"))

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
    kept[suspects] = False
    own = evidence.own_effects(kept)
    forward = random_effects(*own)
    forward_loss, forward_most = (
        _forward_loss(evidence, table, kept, forward, spread)
        for spread in (forward.between, largest_spread(own.estimates, own.errors))
    )
    varies = forward.significance < level
    holds = (forward_most < HARMLESS) & ~varies
    if not suspects:
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
        np.where(after, detectable_spread(table.reverse.errors, level), detectable_spread(own.errors, level)),
        pooled.reliance,
        forward_loss,
        reverse_loss,
        pooled.price,
        _regret(table),
        np.where(~after & (before | holds), forward_loss, reverse_loss),
        order,
        np.select([before, after], [first, last], _judged(holds, dangerous, varies)),
    )


def _judged(holds: np.ndarray, dangerous: np.ndarray, varies: np.ndarray) -> np.ndarray:
    """(features,), verdicts."""
    return np.select([holds, dangerous, varies], ["holds", "dangerous", "varies"], "cannot be told")


def _forward_loss(
    evidence: Evidence, table: "_Within", kept: np.ndarray, forward: RandomEffects, spread: np.ndarray
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
    table = _Within.of(moments, evidence.working())
    most = _Pooled.of(moments, table).reverse_loss(
        largest_spread(*table.reverse[:2]), random_effects(*table.reverse).mean
    )
    return after & ~(most < HARMLESS)


class _Within(NamedTuple):
    """Covariances of features and response within the environments that have rows enough.

    Attributes:
        counts: (environments,), rows.
        covariance: (environments, features + 1, features + 1), the response last.
        working: those whose regressions are the effects.
        precision: the inverse of these; None where fewer than two environments have more rows than features.
        reverse: the slopes of each feature on the response, given the others.
    """

    counts: np.ndarray
    covariance: np.ndarray
    working: np.ndarray
    precision: np.ndarray | None
    reverse: OwnEffects

    @classmethod
    def of(cls, moments: StandardizedMoments, working: np.ndarray) -> "_Within":
        counts, features = moments.counts, moments.cross.shape[1]
        covariance = moments.covariances
        rich = counts >= features + SPARE
        if rich.sum() > 1:
            counts, covariance, working = counts[rich], covariance[rich], working[rich]
            reverse = _slopes(_inverse(covariance), counts - features - 1)[1]
            return cls(counts, covariance, working, _inverse(working), reverse)
        rich = counts > FEWEST
        counts, covariance = counts[rich], covariance[rich]
        return cls(counts, covariance, working[rich], None, _reverse_by_pooling(counts, covariance))


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """(..., columns, columns), with a ridge that is too small to matter unless columns are collinear."""
    size = covariance.shape[-1]
    mean = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / size
    return np.linalg.pinv(covariance + RIDGE * mean * np.eye(size), rcond=ROUNDING, hermitian=True)


def _slopes(precision: np.ndarray, degrees: np.ndarray) -> tuple[OwnEffects, OwnEffects]:
    """The effect of each feature on the response given the others, and its slope on the response given the others."""
    own, last = np.einsum("ejj->ej", precision)[:, :-1], precision[:, -1, -1, None]
    both, spare = precision[:, :-1, -1], degrees[:, None].astype(float)
    own, last = np.maximum(own, TINY), np.maximum(last, TINY)
    spread = np.broadcast_to(spare, both.shape)
    forward = np.sqrt(np.maximum((own - both**2 / last) / last / spare, TINY))
    reverse = np.sqrt(np.maximum((last - both**2 / own) / own / spare, TINY))
    return OwnEffects(-both / last, forward, spread), OwnEffects(-both / own, reverse, spread)


def _reverse_by_pooling(counts: np.ndarray, covariance: np.ndarray) -> OwnEffects:
    """Reverse slopes where an environment has fewer rows than features: all share what the others say.

    What the other features say about x_j and about y is taken from all environments together.
    """
    features = covariance.shape[-1] - 1
    if not len(counts):
        return OwnEffects(*np.full((3, 0, features), np.nan))
    mean = np.tensordot(counts / counts.sum(), covariance, 1)
    inner, whole = _inverse(mean[:-1, :-1]), _inverse(mean)
    # columns: x_j less what the others say about it, and y less what the others than x_j say about it
    feature = np.vstack([inner / np.maximum(np.diag(inner), TINY), np.zeros(features)])
    response = whole[:, -1:] - whole[:, :-1] * (whole[:-1, -1] / np.maximum(np.diag(whole)[:-1], TINY))
    response /= np.maximum(response[-1], TINY)
    across, size, variance = (
        np.einsum("ij,eij->ej", one, covariance @ other)
        for one, other in ((feature, response), (response, response), (feature, feature))
    )
    size, variance = np.maximum(size, TINY), np.maximum(variance, TINY)
    degrees = np.broadcast_to(counts[:, None] - FEWEST, across.shape)
    error = np.sqrt(np.maximum((variance - across**2 / size) / size / degrees, TINY))
    return OwnEffects(across / size, error, degrees)


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
    def of(cls, moments: StandardizedMoments, table: _Within) -> "_Pooled":
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
        inverse = _inverse(self.matrix)
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


class _Tests(NamedTuple):
    """(features,) each: the probability of differences between effects as large as these, if there are none.

    Attributes:
        given_all: of the effect given all other features.
        given_any: the largest, given all others, and given all others but any one.
    """

    given_all: np.ndarray
    given_any: np.ndarray


def _tests_in_company(table: _Within) -> _Tests:
    features = table.covariance.shape[-1] - 1
    if table.precision is None:
        return _Tests(np.ones(features), np.ones(features))
    spare = table.counts - features - 1
    given_all = random_effects(*_slopes(table.precision, spare)[0]).significance
    given_any = given_all.copy()
    for gone in range(features if features > 1 else 0):
        company = np.delete(np.arange(features), gone)
        fewer = random_effects(*_slopes(_without(table.precision, gone), spare + 1)[0]).significance
        given_any[company] = np.maximum(given_any[company], fewer)
    return _Tests(given_all, given_any)


def _regret(table: _Within) -> np.ndarray:
    """(features,): how much nearer common effects come to those of each environment without the feature."""
    features = table.covariance.shape[-1] - 1
    if table.precision is None or features > MOST_REGRETS:
        return np.full(features, np.nan)
    every = np.arange(features)
    tests = [_differences(table, table.precision, every)]
    tests += [_differences(table, _without(table.precision, one), np.delete(every, one)) for one in every]
    excess = np.array([statistic - degrees for statistic, degrees in tests]) / table.counts.sum()
    return excess[0] - excess[1:]


def _suspects(table: _Within, ranking: np.ndarray) -> list[int]:
    """The features without which the effects of all others are equal; none if half of them do not suffice."""
    features = table.covariance.shape[-1] - 1
    if table.precision is None:
        return []
    inside, precision = np.arange(features), table.precision
    found: list[int] = []
    statistic, degrees = _differences(table, precision, inside)
    while len(inside) > 1 and len(found) < max(features // 2, 1):
        tried = [int(np.flatnonzero(inside == one)[0]) for one in ranking if one in inside][:CANDIDATES]
        smaller = [(place, _without(precision, place)) for place in tried]
        results = [_differences(table, less, np.delete(inside, place)) for place, less in smaller]
        best = int(np.argmax([degree - value for value, degree in results]))
        excess, left = statistic - degrees, results[best][0] - results[best][1]
        if excess - left <= SHARE * max(excess, 0.0):
            break
        place, precision = smaller[best]
        found.append(int(inside[place]))
        inside = np.delete(inside, place)
        statistic, degrees = results[best]
        if chdtrc(degrees, statistic) > EQUAL:
            return found
    return []


def _without(precision: np.ndarray, gone: int) -> np.ndarray:
    """The precision of all columns but one."""
    left = np.delete(np.arange(precision.shape[-1]), gone)
    column = precision[:, left, gone]
    own = np.maximum(precision[:, gone, gone], TINY)[:, None, None]
    return precision[:, left[:, None], left] - column[:, :, None] * column[:, None, :] / own


def _differences(table: _Within, precision: np.ndarray, inside: np.ndarray) -> tuple[float, int]:
    """Chow's test that these effects are equal in all environments: the statistic and its degrees of freedom."""
    spare = table.counts - precision.shape[-1]
    last = np.maximum(precision[:, -1, -1], TINY)
    effects = -precision[:, :-1, -1] / last[:, None]
    information = table.working[:, inside[:, None], inside] * (last * spare)[:, None, None]
    mean = np.linalg.lstsq(information.sum(0), np.einsum("eij,ej->i", information, effects), rcond=ROUNDING)[0]
    apart = effects - mean
    squares = np.einsum("ei,eij,ej->e", apart, information, apart)
    # a squared Student variable is larger than that of a normal one
    return float(squares @ (np.maximum(spare - 2, 1) / spare)), (len(spare) - 1) * len(inside)
