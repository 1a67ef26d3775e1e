"""Between strict and pooled: how much of the prediction may come from effects that vary.

The features whose effects hold in all environments are safe, and on many tables they are not enough: effects vary a
little everywhere, and whoever drops them all predicts badly. Cross-validation over environments does not help with the
choice, since a consequence of the response predicts well in every environment that was seen. Two things tell the
situations apart: how much the invariant features explain by themselves, and how many features they are. If a mechanism
was disturbed, a few effects change; if nearly all of them vary, the environments are merely not exactly alike.

    L_c = mean over e, weighted by rows, of the log of the error in e of the fit of c to all other environments

for c = nothing (0), the invariant features (S) and all features (A). With s the share of what can be explained that the
invariant features explain, and v the share of features (or groups of them) whose effects vary,

    s = (L_0 - L_S) / (L_0 - L_A),    t = s (1 - v),    a = clip((0.4 - t) / 0.35, 0, 1)

or a = 0 if all features predict no better than S (L_A >= L_S) or than nothing (L_0 - L_A < 0.001). If nothing varies,
a = 1. And strictness has to pay: with J_c the loss of the fit of c in environments that are ten times as far from it as
these are (`Evidence.stressed`), a is at least clip(1/2 + log(J_S / J_A) / 0.2, 0, 1). The coefficients are
(1 - a) w_S + a w_A. The constants were chosen on tables and simulated models of which half had been put aside;
`docs/tabular.md` has the results on both halves.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast.core.moments import StandardizedMoments

# With this trust t the invariant features predict alone, and with the other they have no say.
TRUSTED, NOT_TRUSTED = 0.4, 0.05
# If all features together lower the logarithm of the error by less, nothing can be explained.
NOTHING = 0.001
# Between a tenth less and a tenth more, the losses far from these environments share the decision.
UNDECIDED = 0.2
# Directions with less than this share of the largest eigenvalue are collinear features, not measured ones.
NEGLIGIBLE = 1e-12


class LinearModel(NamedTuple):
    """Linear predictions, or scores of classes whose softmax are their probabilities.

    Attributes:
        coefficients: (features,), w, or (classes, features).
        intercept: b, or (classes,).
    """

    coefficients: np.ndarray
    intercept: Any


class Pooling(NamedTuple):
    """The weight of the pooled fit of all features, and where it comes from.

    Attributes:
        weight: a, from 0, only invariant features, to 1, all features.
        explained: s, the share of what can be explained elsewhere that the invariant features explain.
        varying: v, the share of features whose effects vary.
    """

    weight: float
    explained: float
    varying: float

    def or_asked(self, asked: float | Literal["auto"]) -> "Pooling":
        """With the weight that was asked for, unless it is "auto"."""
        return self if asked == "auto" else self._replace(weight=float(asked))


def blend(strict: LinearModel, pooled: LinearModel, weight: float) -> LinearModel:
    """(1 - a) strict + a pooled.

    Example:
        >>> blend(LinearModel(np.zeros(1), 0.0), LinearModel(np.ones(1), 2.0), 0.25)
        LinearModel(coefficients=array([0.25]), intercept=0.5)
    """
    return LinearModel(*((1 - weight) * one + weight * other for one, other in zip(strict, pooled, strict=True)))


def choose_pooling(
    held_out: Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray,
    selected: np.ndarray,
    varying: float,
    stressed: Callable[[np.ndarray], float] | None = None,
) -> Pooling:
    """The weight that the held-out errors ask for; 1 for a single environment, which cannot say what is invariant.

    Args:
        held_out: columns -> (environments,), logarithms of errors, or log losses, of the fit to all others.
        weights: (environments,), the shares of the rows.
        selected: (features,), the invariant ones.
        varying: v.
        stressed: columns -> the loss far from these environments (`Evidence.stressed`); None: it is not asked.
    """
    if len(weights) == 1:
        return Pooling(1.0, float("nan"), varying)
    sets = (np.zeros_like(selected), selected, np.ones_like(selected))
    nothing, strict, pooled = (float(weights @ held_out(np.flatnonzero(columns))) for columns in sets)
    found = pooling_weight(nothing, strict, pooled, varying)
    if varying == 0:
        return found._replace(weight=1.0)
    if stressed is None or found.weight == 1:
        return found
    reserve = stressed_weight(*(stressed(np.flatnonzero(one)) for one in sets[1:]))
    return found._replace(weight=max(found.weight, reserve))


def pooling_weight(nothing: float, strict: float, pooled: float, varying: float) -> Pooling:
    """The weight from L_0, L_S, L_A and v.

    Example, the invariant features explain all but a tenth, or a tenth, of what can be explained:
        >>> pooling_weight(0.0, -0.9, -1.0, varying=0.2).weight, pooling_weight(0.0, -0.1, -1.0, varying=0.5).weight
        (0.0, 1.0)
    """
    possible = nothing - pooled
    explained = (nothing - strict) / possible if possible >= NOTHING else 1.0
    trust = explained * (1 - varying)
    gains = pooled < strict and possible >= NOTHING
    weight = float(np.clip((TRUSTED - trust) / (TRUSTED - NOT_TRUSTED), 0.0, 1.0)) if gains else 0.0
    return Pooling(weight, explained, varying)


def stressed_weight(strict: float, pooled: float) -> float:
    """The least weight of the pooled fit, from the losses of both far from these environments.

    Example, strictness has to pay:
        >>> stressed_weight(strict=1.2, pooled=1.0), stressed_weight(strict=1.0, pooled=1.0)
        (1.0, 0.5)
    """
    if not np.isfinite(pooled):  # no environment could be fitted by itself, so that nothing speaks against all features
        return 1.0
    if not np.isfinite(strict) or pooled <= 0 or strict <= 0:
        return 0.0
    return float(np.clip(0.5 + np.log(strict / pooled) / UNDECIDED, 0.0, 1.0))


def held_out_squares(moments: StandardizedMoments, columns: np.ndarray) -> np.ndarray:
    """(environments,): the mean squared error in each environment of least squares on the rows of all others.

    Both have an intercept, unless each environment is centred about its own means.

    Args:
        moments: of all environments, two at least.
        columns: the features that are fitted.

    Example, the slope is 1 in one environment and 3 in the other:
        >>> x, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([-1.0, 1.0, -3.0, 3.0])
        >>> from holdfast.core.grouping import group_rows
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> known = standardized(collect_moments(x, y, group_rows([0, 0, 1, 1], 4)))
        >>> (held_out_squares(known, np.array([0])) * known.scale[-1] ** 2).round(3).tolist()
        [4.0, 4.0]
    """
    counts, blocks = moments.counts[:, None, None], mean_products(moments, columns)
    others = (counts * blocks).sum(0) - counts * blocks
    fitted = np.linalg.pinv(others[:, :-1, :-1], rcond=NEGLIGIBLE, hermitian=True) @ others[:, :-1, -1:]
    errors = np.concatenate([-fitted, np.ones((len(counts), 1, 1))], axis=1)
    return np.maximum((errors.swapaxes(1, 2) @ blocks @ errors)[:, 0, 0], 0.0)


def mean_products(moments: StandardizedMoments, columns: np.ndarray) -> np.ndarray:
    """(environments, columns + 2, columns + 2): means of r r^T, with r = (1, z, t) of some features z.

    Args:
        moments: of all features and of the response t.
        columns: numbers of the features.

    Example:
        >>> from holdfast.core.moments import collect_moments, standardized
        >>> known = standardized(collect_moments(np.array([[1.0], [3.0]]), np.array([5.0, 9.0])))
        >>> mean_products(known, np.array([0])).round(9).tolist()
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]]
    """
    found = np.empty((len(moments.counts), len(columns) + 2, len(columns) + 2))
    means = moments.means[:, [*columns, -1]] * (not moments.within)
    found[:, 0, 0], found[:, 0, 1:], found[:, 1:, 0] = 1.0, means, means
    found[:, 1:-1, 1:-1] = moments.second[:, columns[:, None], columns]
    found[:, 1:-1, -1] = found[:, -1, 1:-1] = moments.cross[:, columns]
    found[:, -1, -1] = moments.square
    return found
