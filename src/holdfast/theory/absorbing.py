"""The absorbing sets B_r of SGD on deep linear networks: balanced, of approximate rank r, bounded.

    (i)   ||W_l^T W_l - W_{l-1} W_{l-1}^T||_F^2 <= eps1      for neighbouring layers
    (ii)  sum_i f_alpha(s_i(W_l^T W_l)) <= r + eps2            for every layer
    (iii) ||W_l||_F^2 <= C                                     for every layer

f_alpha is concave and increasing, 0 at 0 and 1 above alpha. The slides leave its form and all constants open. Layers
here are NumPy arrays with any leading axes (runs, records, ...), W_1 first.

Reference: Wang and Jacot (ICLR 2024), definition of B_r, the theorem and the lemma of the slides.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Layers = tuple[np.ndarray, ...]


def smooth_count(share: np.ndarray) -> np.ndarray:
    """1 - (1 - x / alpha)^2: our choice of f_alpha, the simplest one whose slope is continuous."""
    return 1 - np.square(1 - np.minimum(share, 1))


# Of x / alpha, for x >= 0.
Count = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Constants:
    """The constants that the slides leave open in the definition of B_r.

    Attributes:
        balance: eps1.
        slack: eps2.
        level: alpha, above which a squared singular value counts as one.
        bound: C.
        count: f_alpha, as a function of x / alpha.
    """

    balance: float
    slack: float
    level: float
    bound: float
    count: Count = smooth_count


def imbalance(layers: Layers) -> np.ndarray:
    """The largest ||W_l^T W_l - W_{l-1} W_{l-1}^T||_F^2; 0 for a single layer, which has no neighbour."""
    gaps = [
        np.square(upper.swapaxes(-1, -2) @ upper - lower @ lower.swapaxes(-1, -2)).sum((-2, -1))
        for lower, upper in itertools.pairwise(layers)
    ]
    return np.max(gaps, axis=0) if gaps else np.zeros(layers[0].shape[:-2])


def layer_ranks(layers: Layers, level: float, count: Count = smooth_count) -> np.ndarray:
    """sum_i f_alpha(s_i(W_l^T W_l)) of every layer, on a last axis."""
    return np.stack([count(values / level).sum(-1) for values in squared_singular_values(layers)], -1)


def product_rank(fitted: np.ndarray, depth: int, level: float, count: Count = smooth_count) -> np.ndarray:
    """sum_i f_alpha(s_i(A)^(2/L)), the approximate rank of the product in the lemma on critical points."""
    values = np.linalg.svd(np.asarray(fitted, float), compute_uv=False)
    return count(values ** (2 / depth) / level).sum(-1)


def contains(layers: Layers, rank: float, constants: Constants) -> np.ndarray:
    """Whether states lie in B_r, fast enough for every step of many runs.

    Singular values are computed only where traces do not decide. With x_i = s_i^2, t = sum x_i, q = sum x_i^2 and n
    values, the largest lies between q / t and sqrt(q), and f is concave and 0 at 0, so

        f(q / t) + f(t - sqrt(q)) <= sum_i f(x_i) <= 1 + (n - 1) f((t - q / t) / (n - 1)).

    Args:
        layers: W_1, ..., W_L, with any leading axes.
        rank: r.
        constants: eps1, eps2, alpha, C and f.

    Example, the second singular value counts f(0.01 / 0.5) = 0.04:
        >>> layer = np.diag([1.0, 0.1])
        >>> bool(contains((layer, layer), 1, Constants(balance=0.1, slack=0.05, level=0.5, bound=4.0)))
        True
    """
    wide = tuple(np.asarray(layer, float) for layer in layers)
    limit, level, count = rank + constants.slack, constants.level, constants.count
    inside = imbalance(wide) <= constants.balance
    for layer in wide:
        gram = layer.swapaxes(-1, -2) @ layer if layer.shape[-2] > layer.shape[-1] else layer @ layer.swapaxes(-1, -2)
        total, squares = np.trace(gram, axis1=-2, axis2=-1), np.square(gram).sum((-2, -1))
        largest = squares / np.maximum(total, np.finfo(float).tiny)
        others = max(gram.shape[-1] - 1, 1)
        least = count(largest / level) + count(np.maximum(total - np.sqrt(squares), 0) / level)
        most = 1 + others * count(np.maximum(total - largest, 0) / level / others)
        inside = np.array(inside & (total <= constants.bound) & (least <= limit))  # not a scalar, for one state
        open_states = inside & (most > limit)
        values = np.maximum(np.linalg.eigvalsh(gram[open_states]), 0)
        inside[open_states] = count(values / level).sum(-1) <= limit
    return inside


def holding_size(ridge: float, residual: float, depth: int) -> float:
    """The singular value of balanced layers below which the ridge wins over any single entry, to first order.

        s <- s - 2 eta lambda s + eta |residual| s^(L-1) at most,    so s shrinks for s^(L-2) < 2 lambda / |residual|

    Below it a lost direction stays lost: this is what makes jumps one-way for three or more layers. With two layers
    both terms are linear, and the direction is held (infinity) or not (0) whatever its size; with one layer the entry
    always wins.

    Args:
        ridge: lambda.
        residual: the largest |A_ij - A*_ij| over the observed entries.
        depth: L.

    Example:
        >>> holding_size(0.25, 2.0, 3), holding_size(0.25, 2.0, 2)
        (0.25, 0.0)
    """
    ratio = 2 * ridge / abs(residual) if residual else np.inf
    if depth > 2:
        return float(ratio ** (1 / (depth - 2)))
    return np.inf if depth == 2 and ratio > 1 else 0.0


def successor(
    layers: Layers, row: int, column: int, value: float, step_size: float, ridge: float
) -> tuple[np.ndarray, ...]:
    """The state after a step of SGD on one entry, for any number of states: what can follow, without any draw.

        W_l <- (1 - 2 eta lambda) W_l - eta (A_ij - A*_ij) (W_L ... W_{l+1})^T e_i e_j^T (W_{l-1} ... W_1)^T

    Args:
        layers: W_1, ..., W_L, with any leading axes.
        row: i.
        column: j.
        value: A*_ij.
        step_size: eta.
        ridge: lambda.

    Example, one layer moves the entry alone:
        >>> successor((np.zeros((2, 2)),), 0, 1, value=3.0, step_size=0.5, ridge=0.0)[0].tolist()
        [[0.0, 1.5], [0.0, 0.0]]
    """
    prefixes = [np.eye(layers[0].shape[-1])]
    for layer in layers:
        prefixes.append(layer @ prefixes[-1])
    residual = prefixes[-1][..., row, column] - value
    suffix = np.eye(layers[-1].shape[-2])
    after: list[np.ndarray] = []
    for layer, prefix in zip(reversed(layers), reversed(prefixes[:-1]), strict=True):
        gradient = residual[..., None, None] * suffix[..., row, :, None] * prefix[..., None, :, column]
        after.insert(0, (1 - 2 * step_size * ridge) * layer - step_size * gradient)
        suffix = suffix @ layer
    return tuple(after)


class Closedness(NamedTuple):
    """Whether runs stay in a set once they are in it.

    Attributes:
        entered: (runs,), the first record inside, or -1.
        exits: (runs,), how often a run left the set again.
    """

    entered: np.ndarray
    exits: np.ndarray


def closedness(inside: np.ndarray) -> Closedness:
    """Entries and exits along trajectories.

    Args:
        inside: (runs, records), whether the run is in the set.

    Example:
        >>> closedness(np.array([[False, True, True], [True, False, True], [False, False, False]]))
        Closedness(entered=array([ 1,  0, -1]), exits=array([0, 1, 0]))
    """
    within = np.asarray(inside, bool)
    entered = np.where(within.any(1), within.argmax(1), -1)
    return Closedness(entered, (within[:, :-1] & ~within[:, 1:]).sum(1))


def squared_singular_values(layers: Layers) -> list[np.ndarray]:
    """s_i(W_l^T W_l) of every layer."""
    return [np.square(np.linalg.svd(layer, compute_uv=False)) for layer in layers]
