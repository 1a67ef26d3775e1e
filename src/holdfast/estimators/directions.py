"""Effects and slopes in each environment from one inverse covariance, and which features make effects differ.

With T_e the inverse covariance of features and response in environment e,

    effect_ej = -T_jy / T_yy,    slope_ej = -T_jy / T_jj,

of feature j on the response and of feature j on it, each given all other features. Without feature k, T is
T - T_k T_k^T / T_kk, so that all sets of features but one cost no more than the set of all.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from holdfast.core.moments import StandardizedMoments
from holdfast.core.statistics import random_effects
from holdfast.estimators.effects import OwnEffects

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


class WithinEnvironments(NamedTuple):
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
    def of(cls, moments: StandardizedMoments, working: np.ndarray) -> "WithinEnvironments":
        """Those of a table; where few environments have more rows than features, all with more than two rows."""
        counts, features = moments.counts, moments.cross.shape[1]
        covariance = moments.covariances
        rich = counts >= features + SPARE
        if rich.sum() > 1:
            counts, covariance, working = counts[rich], covariance[rich], working[rich]
            reverse = effects_and_slopes(ridged_inverse(covariance), counts - features - 1)[1]
            return cls(counts, covariance, working, ridged_inverse(working), reverse)
        rich = counts > FEWEST
        counts, covariance = counts[rich], covariance[rich]
        return cls(counts, covariance, working[rich], None, slopes_by_pooling(counts, covariance))


def ridged_inverse(covariance: np.ndarray) -> np.ndarray:
    """(..., columns, columns), with a ridge that is too small to matter unless columns are collinear."""
    size = covariance.shape[-1]
    mean = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / size
    return np.linalg.pinv(covariance + RIDGE * mean * np.eye(size), rcond=ROUNDING, hermitian=True)


def effects_and_slopes(precision: np.ndarray, degrees: np.ndarray) -> tuple[OwnEffects, OwnEffects]:
    """The effect of each feature on the response given the others, and its slope on the response given the others."""
    own, last = np.einsum("ejj->ej", precision)[:, :-1], precision[:, -1, -1, None]
    both, spare = precision[:, :-1, -1], degrees[:, None].astype(float)
    own, last = np.maximum(own, TINY), np.maximum(last, TINY)
    spread = np.broadcast_to(spare, both.shape)
    forward = np.sqrt(np.maximum((own - both**2 / last) / last / spare, TINY))
    reverse = np.sqrt(np.maximum((last - both**2 / own) / own / spare, TINY))
    return OwnEffects(-both / last, forward, spread), OwnEffects(-both / own, reverse, spread)


def slopes_by_pooling(counts: np.ndarray, covariance: np.ndarray) -> OwnEffects:
    """Reverse slopes where an environment has fewer rows than features: all share what the others say.

    What the other features say about x_j and about y is taken from all environments together.
    """
    features = covariance.shape[-1] - 1
    if not len(counts):
        return OwnEffects(*np.full((3, 0, features), np.nan))
    mean = np.tensordot(counts / counts.sum(), covariance, 1)
    inner, whole = ridged_inverse(mean[:-1, :-1]), ridged_inverse(mean)
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


class EffectTests(NamedTuple):
    """(features,) each: the probability of differences between effects as large as these, if there are none.

    Attributes:
        given_all: of the effect given all other features.
        given_any: the largest, given all others, and given all others but any one.
    """

    given_all: np.ndarray
    given_any: np.ndarray


def effect_tests(table: WithinEnvironments) -> EffectTests:
    """Tests of every effect, in the company of all others and of all but one; 1 where there are too few rows."""
    features = table.covariance.shape[-1] - 1
    if table.precision is None:
        return EffectTests(np.ones(features), np.ones(features))
    spare = table.counts - features - 1
    given_all = random_effects(*effects_and_slopes(table.precision, spare)[0]).significance
    given_any = given_all.copy()
    for gone in range(features if features > 1 else 0):
        company = np.delete(np.arange(features), gone)
        fewer = random_effects(*effects_and_slopes(without(table.precision, gone), spare + 1)[0]).significance
        given_any[company] = np.maximum(given_any[company], fewer)
    return EffectTests(given_all, given_any)


def regret(table: WithinEnvironments) -> np.ndarray:
    """(features,): how much nearer common effects come to those of each environment without the feature."""
    features = table.covariance.shape[-1] - 1
    if table.precision is None or features > MOST_REGRETS:
        return np.full(features, np.nan)
    every = np.arange(features)
    tests = [differences(table, table.precision, every)]
    tests += [differences(table, without(table.precision, one), np.delete(every, one)) for one in every]
    excess = np.array([statistic - degrees for statistic, degrees in tests]) / table.counts.sum()
    return excess[0] - excess[1:]


def suspects_of(table: WithinEnvironments, ranking: np.ndarray) -> tuple[list[int], bool]:
    """The features without which the effects of all others are equal, and whether all effects differ to begin with.

    If they do not, there is still one feature that adds most to what little they differ. There are none if half of the
    features, one at least, do not suffice.
    """
    features = table.covariance.shape[-1] - 1
    if table.precision is None:
        return [], False
    inside, precision = np.arange(features), table.precision
    found: list[int] = []
    statistic, degrees = differences(table, precision, inside)
    differ = bool(chdtrc(degrees, statistic) <= EQUAL)
    while len(inside) > 1 and len(found) < max(features // 2, 1):
        tried = [int(np.flatnonzero(inside == one)[0]) for one in ranking if one in inside][:CANDIDATES]
        smaller = [(place, without(precision, place)) for place in tried]
        results = [differences(table, less, np.delete(inside, place)) for place, less in smaller]
        best = int(np.argmax([degree - value for value, degree in results]))
        excess, left = statistic - degrees, results[best][0] - results[best][1]
        if excess - left <= SHARE * max(excess, 0.0):
            break
        place, precision = smaller[best]
        found.append(int(inside[place]))
        inside = np.delete(inside, place)
        statistic, degrees = results[best]
        if chdtrc(degrees, statistic) > EQUAL:
            return found, differ
    return [], differ


def without(precision: np.ndarray, gone: int) -> np.ndarray:
    """The precision of all columns but one."""
    left = np.delete(np.arange(precision.shape[-1]), gone)
    column = precision[:, left, gone]
    own = np.maximum(precision[:, gone, gone], TINY)[:, None, None]
    return precision[:, left[:, None], left] - column[:, :, None] * column[:, None, :] / own


def differences(table: WithinEnvironments, precision: np.ndarray, inside: np.ndarray) -> tuple[float, int]:
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
