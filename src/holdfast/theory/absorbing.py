"""The absorbing sets B_r of SGD on deep linear networks: balanced, of approximate rank r, bounded.

    (i)   ||W_l^T W_l - W_{l-1} W_{l-1}^T||_F^2 <= eps1      for neighbouring layers
    (ii)  sum_i f_alpha(s_i(W_l^T W_l)) <= r + eps2            for every layer
    (iii) ||W_l||_F^2 <= C                                     for every layer

f_alpha is concave and increasing, 0 at 0 and 1 above alpha. The slides leave its form and all constants open. Layers
here are NumPy arrays with any leading axes (runs, records, ...), W_1 first.

Reference: Wang and Jacot (ICLR 2024), definition of B_r, the theorem and the lemma of the slides.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Layers = tuple[np.ndarray, ...]


def smooth_count(share: np.ndarray) -> np.ndarray:
    """1 - (1 - x / alpha)^2: our choice of f_alpha, the simplest one whose slope is continuous."""
    return 1 - np.square(1 - np.minimum(share, 1))


def linear_count(share: np.ndarray) -> np.ndarray:
    """min(x / alpha, 1), the least concave of all."""
    return np.minimum(share, 1)


def root_count(share: np.ndarray) -> np.ndarray:
    """sqrt(x / alpha), capped at 1: small singular values weigh heavily."""
    return np.sqrt(np.minimum(share, 1))


# Of x / alpha, for x >= 0.
Count = Callable[[np.ndarray], np.ndarray]
COUNTS: tuple[Count, ...] = (smooth_count, linear_count, root_count)


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


class Margins(NamedTuple):
    """How far inside of each condition a state is; negative outside.

    Attributes:
        balance: eps1 - the largest squared difference of neighbouring layers.
        rank: r + eps2 - the largest approximate rank of a layer.
        bound: C - the largest squared norm of a layer.
    """

    balance: np.ndarray
    rank: np.ndarray
    bound: np.ndarray

    @property
    def inside(self) -> np.ndarray:
        """Whether all three conditions hold."""
        return (self.balance >= 0) & (self.rank >= 0) & (self.bound >= 0)


def imbalance(layers: Layers) -> np.ndarray:
    """The largest ||W_l^T W_l - W_{l-1} W_{l-1}^T||_F^2; 0 for a single layer, which has no neighbour."""
    gaps = [
        np.square(upper.swapaxes(-1, -2) @ upper - lower @ lower.swapaxes(-1, -2)).sum((-2, -1))
        for lower, upper in itertools.pairwise(layers)
    ]
    return np.max(gaps, axis=0) if gaps else np.zeros(layers[0].shape[:-2])


def layer_ranks(layers: Layers, level: float, count: Count = smooth_count) -> np.ndarray:
    """sum_i f_alpha(s_i(W_l^T W_l)) of every layer, on a last axis."""
    return np.stack([count(values / level).sum(-1) for values in _squared_singular_values(layers)], -1)


def product_rank(fitted: np.ndarray, depth: int, level: float, count: Count = smooth_count) -> np.ndarray:
    """sum_i f_alpha(s_i(A)^(2/L)), the approximate rank of the product in the lemma on critical points."""
    values = np.linalg.svd(np.asarray(fitted, float), compute_uv=False)
    return count(values ** (2 / depth) / level).sum(-1)


def margins(layers: Layers, rank: float, constants: Constants) -> Margins:
    """The margins of all three conditions of B_r.

    Args:
        layers: W_1, ..., W_L, with any leading axes.
        rank: r.
        constants: eps1, eps2, alpha, C and f.

    Example, two equal layers of rank one:
        >>> layer = np.diag([1.0, 0.0])
        >>> found = margins((layer, layer), 1, Constants(balance=0.1, slack=0.2, level=0.5, bound=4.0))
        >>> [round(float(margin), 3) for margin in found], bool(found.inside)
        ([0.1, 0.2, 3.0], True)
    """
    wide = tuple(np.asarray(layer, float) for layer in layers)
    largest = np.max([np.square(layer).sum((-2, -1)) for layer in wide], axis=0)
    counts = layer_ranks(wide, constants.level, constants.count).max(-1)
    return Margins(constants.balance - imbalance(wide), rank + constants.slack - counts, constants.bound - largest)


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


class Candidate(NamedTuple):
    """A choice of constants, and how often trajectories enter and leave its set.

    Attributes:
        constants: the choice.
        entered: share of the runs that enter the set.
        exits: number of times that any run left it.
    """

    constants: Constants
    entered: float
    exits: int


def search_constants(layers: Layers, rank: int, choices: Iterable[Constants]) -> Iterator[Candidate]:
    """Try constants for which B_r might be closed along trajectories.

    Args:
        layers: of the trajectories, each (runs, records, rows, columns).
        rank: r.
        choices: constants to try; see `grid`.

    Yields:
        One candidate for each choice, in the order given.
    """
    wide = tuple(np.asarray(layer, float) for layer in layers)
    gaps, values = imbalance(wide), _squared_singular_values(wide)
    norms = np.max([value.sum(-1) for value in values], axis=0)
    for constants in choices:
        counts = np.max([constants.count(value / constants.level).sum(-1) for value in values], axis=0)
        inside = (gaps <= constants.balance) & (counts <= rank + constants.slack) & (norms <= constants.bound)
        found = closedness(inside)
        yield Candidate(constants, float((found.entered >= 0).mean()), int(found.exits.sum()))


def grid(
    balances: Iterable[float],
    slacks: Iterable[float],
    levels: Iterable[float],
    bounds: Iterable[float],
    counts: Iterable[Count] = COUNTS,
) -> Iterator[Constants]:
    """All combinations of constants."""
    return itertools.starmap(Constants, itertools.product(balances, slacks, levels, bounds, counts))


def _squared_singular_values(layers: Layers) -> list[np.ndarray]:
    """s_i(W_l^T W_l) of every layer."""
    return [np.square(np.linalg.svd(layer, compute_uv=False)) for layer in layers]
