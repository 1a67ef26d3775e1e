"""The search for constants of the sets B_r that no run leaves, on a grid."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from holdfast.theory.absorbing import (
    Constants,
    Count,
    Layers,
    closedness,
    imbalance,
    smooth_count,
    squared_singular_values,
)


def linear_count(share: np.ndarray) -> np.ndarray:
    """min(x / alpha, 1), the least concave of all."""
    return np.minimum(share, 1)


def root_count(share: np.ndarray) -> np.ndarray:
    """sqrt(x / alpha), capped at 1: small singular values weigh heavily."""
    return np.sqrt(np.minimum(share, 1))


COUNTS: tuple[Count, ...] = (smooth_count, linear_count, root_count)


def most_interior(closed: np.ndarray, entered: np.ndarray) -> tuple[int, ...]:
    """The constants furthest from those for which the set is not closed, by their position in a grid.

    Those with the most neighbours, one step along one axis, for which the set is closed as well; of equals the one
    that most runs enter. A choice at the edge would be one that happened to hold on the runs it was chosen on.

    Args:
        closed: whether no run left the set, on a grid of constants.
        entered: share of the runs that enter it, on the same grid.

    Example:
        >>> most_interior(np.array([False, True, True, True]), np.array([1.0, 0.9, 0.8, 0.7]))
        (2,)
    """
    if not closed.any():
        raise ValueError("closed must be true for some constants, got none: search a wider grid")
    padded = np.pad(closed.astype(int), 1)
    neighbours = sum(np.roll(padded, way, axis) for axis in range(closed.ndim) for way in (-1, 1))
    inner = np.asarray(neighbours)[(slice(1, -1),) * closed.ndim]
    score = np.where(closed, inner + np.clip(entered, 0, 1) / 2, -1.0)
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(score)), closed.shape))


def search_constants(layers: Layers, rank: int, tried: Mapping[str, Sequence]) -> xr.Dataset:
    """Which constants B_r might be closed with: entries and exits along trajectories, for all combinations.

    Args:
        layers: of the trajectories, each (runs, records, rows, columns).
        rank: r.
        tried: the values of each field of `Constants`, in their order.

    Returns:
        entered, the share of the runs that enter the set, and exits, the number of times that any run left it.
    """
    wide = tuple(np.asarray(layer, float) for layer in layers)
    gaps, values = imbalance(wide), squared_singular_values(wide)
    norms = np.max([value.sum(-1) for value in values], axis=0)
    shape = tuple(map(len, tried.values()))
    entered, exits = np.empty(shape), np.empty(shape, int)
    for place, choice in zip(np.ndindex(shape), itertools.product(*tried.values()), strict=True):
        constants = Constants(*choice)
        counts = np.max([constants.count(value / constants.level).sum(-1) for value in values], axis=0)
        inside = (gaps <= constants.balance) & (counts <= rank + constants.slack) & (norms <= constants.bound)
        found = closedness(inside)
        entered[place], exits[place] = (found.entered >= 0).mean(), found.exits.sum()
    names = {name: [getattr(value, "__name__", value) for value in values] for name, values in tried.items()}
    return xr.Dataset({"entered": (list(tried), entered), "exits": (list(tried), exits)}, names)
