"""The law of a spurious signal that survives, from the stationary equation of its recursion, solved on a grid.

Without sampling error the share x = Q^2 of a direction follows x <- x (1 + eta (xi - x))^2. In y = log x that is a
random walk for small x, with the steps 2 log|1 + eta xi|, which a large x holds back.
"""

import numpy as np
from scipy.linalg import solve_banded

# The walk is free below this share: what is learned then changes a factor by less than a millionth of the step size.
FREE = 1e-6
# Cells of the grid in one standard deviation of a step of y, and the widest of them. Spreading a step over two cells
# adds at most a quarter of the square of a cell to its variance, which is then 1/1600 of it.
CELLS_OF_A_STEP, WIDEST = 20, 0.02
# Points of the distribution below the grid, and the smallest share that is a number.
POINTS_BELOW, SMALLEST = 4096, np.log(np.finfo(float).tiny)
# A tail that falls by less than exp(-20) over the grid holds mass that counts; one that falls by more does not, and to
# start from its end would multiply rounding errors by that factor.
LIGHT_TAIL = 20.0
# Below the grid the distribution is followed down to this probability.
LEAST = 1e-9


def survivor_law(
    strengths: np.ndarray, weights: np.ndarray, step_size: float, index: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values of the share in the long run, rising, and the probability of at most each.

    Below the grid the density of y is exp(-index y / 2), which solves the equation of the free walk; the probabilities
    on the grid solve p = P p, with what comes from below.

    Args:
        strengths: of the environments.
        weights: their probabilities.
        step_size: eta.
        index: kappa of `tail_index`, below zero.

    Returns:
        None if a step may turn the sign of the signal: a share may then fall to zero at once, and y has no least step.

    Example, at weak heterogeneity the share stays near the mean strength:
        >>> values, distribution = survivor_law(np.array([0.9, 1.1]), np.array([0.5, 0.5]), 0.05, -np.inf)
        >>> round(float(np.interp(0.5, distribution, values)), 2)
        1.0
    """
    largest = _largest_share(strengths, step_size)
    if 1 + step_size * (strengths.min() - largest) <= 0:
        return None
    factors = 2 * np.log1p(step_size * strengths)
    spread = np.sqrt(weights @ np.square(factors - weights @ factors))
    cell = min(WIDEST, spread / CELLS_OF_A_STEP)
    first = np.log(_smallest_share(strengths, step_size, largest)) - cell if strengths.min() > 0 else np.log(FREE)
    count = int(np.ceil((np.log(largest) - first) / cell)) + 2
    below = int(np.ceil(max(factors.max(), 0.0) / cell)) + 1
    source = np.arange(-below, count)
    y = first + cell * source
    reached = source[:, None] + 2 / cell * np.log1p(step_size * (strengths - np.exp(y)[:, None]))
    lower = np.floor(reached).astype(int)
    part = reached - lower
    # What is below the grid falls off from its first cell, in whose column it counts.
    decay = -index / 2
    outside = np.exp(np.minimum(source, 0) * decay * cell) if np.isfinite(decay) else (source >= 0).astype(float)
    chance = outside[:, None] * weights
    rows = np.concatenate([lower.ravel(), lower.ravel() + 1])
    columns = np.tile(np.repeat(np.maximum(source, 0), len(strengths)), 2)
    entries = np.concatenate([(chance * (1 - part)).ravel(), (chance * part).ravel()])
    on_grid = (rows >= 0) & (rows < count)
    rows, columns, entries = rows[on_grid], columns[on_grid], entries[on_grid]
    # One of the equations follows from the others. We replace it and set the probability of one cell to 1 for now: that
    # of the first, whose equation is the least exact, or, if hardly anything is there, of the one at the mean strength.
    middle = round((np.log(weights @ strengths) - first) / cell)
    given = 0 if decay * middle * cell < LIGHT_TAIL else middle
    others = rows != given
    up, down = max(0, (columns - rows)[others].max()), max(0, (rows - columns)[others].max())
    bands = np.zeros((up + down + 1, count))
    np.add.at(bands, (up + (rows - columns)[others], columns[others]), -entries[others])
    bands[up] += 1.0
    return _distribution(solve_banded((down, up), bands, np.eye(1, count, given)[0]), first, cell, decay)


def _largest_share(strengths: np.ndarray, step_size: float) -> float:
    """No step leads above it from below: the largest strength, or where a step from there overshoots to."""
    top = float(strengths.max())
    # x (1 + eta (xi - x))^2 has its maximum at (1 + eta xi) / (3 eta).
    peak = (1 + step_size * top) / (3 * step_size)
    return top if peak >= top else peak * (1 + step_size * (top - peak)) ** 2


def _smallest_share(strengths: np.ndarray, step_size: float, largest: float) -> float:
    """No step leads below it, if every step leads up from small shares: the least strength, or one from the largest."""
    least = float(strengths.min())
    return min(least, largest * (1 + step_size * (least - largest)) ** 2)


def _distribution(mass: np.ndarray, first: float, cell: float, decay: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities from the masses of the cells, with what is below the grid."""
    mass = np.maximum(mass, 0.0)  # rounding errors, where next to nothing is
    edges = np.exp(first + cell * (np.arange(len(mass)) + 0.5))
    if np.isinf(decay):  # every step leads up as long as the share is small
        return edges, np.cumsum(mass) / mass.sum()
    left = mass[0] / np.expm1(decay * cell)
    deepest = max(SMALLEST, first + np.log(LEAST) / decay)
    under = np.linspace(deepest, first - cell / 2, POINTS_BELOW, endpoint=False)
    values = np.append(np.exp(under), edges)
    totals = np.append(left * np.exp(decay * (under - first + cell / 2)), left + np.cumsum(mass))
    return values, totals / totals[-1]
