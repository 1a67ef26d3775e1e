"""The law of a spurious share in the long run: its tail, and what holds it between a floor and a ceiling.

Environments drawn independently multiply a small spurious signal by a = 1 + eta xi, sampling error kicks it by b: that
is Kesten's recursion q <- a q + b. Even if the signal shrinks on average, a run of large factors may carry it far, so
the law of its size has a power tail (Kesten 1973; Goldie 1991), which ends where the signal is large enough to hold
itself back. docs/theory.md derives the formulas.

Without sampling error the share x = Q^2 of a direction that survives follows x <- x (1 + eta (xi - x))^2. In y = log x
that is a random walk for small x, with the steps 2 log|1 + eta xi|, which a large x holds back; its stationary equation
is solved on a grid.
"""

from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_banded
from scipy.optimize import brentq
from scipy.special import gammainc, gammainccinv, gammaincinv

from holdfast.core.validation import POSITIVE, require
from holdfast.sensing.environments import Environments
from holdfast.theory.lyapunov import stationary_shares
from holdfast.theory.sampling import Sampling, SamplingOptions, mean_square_strength
from holdfast.theory.strengths import strength_atoms

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


# Tails with a larger index are no tails to speak of: the probability falls by 2^-200 from one level to twice it.
LARGEST_INDEX = 200.0
# Shares on the grid of a law, from this part of its floor, below which next to nothing is, to this many ceilings.
GRID, PART, CEILINGS = 2**14, 1e-30, 60.0
# Probabilities below and above the grid of a gamma law.
BELOW, ABOVE = 1e-9, 1e-15
# Nearer to zero than this, E|a|^index - 1 is lost in rounding errors, and its logarithm is index E log|a|.
SMALLEST_INDEX = 1e-6
# A median share below this is not given in digits.
NEGLIGIBLE = 1e-6


def tail_index(environments: Environments, step_size: float, *, learned: float = 0.0, direction: int = 0) -> float:
    """The index kappa of the tail P(|q| > x) ~ x^-kappa of a spurious signal, the root of E|a|^kappa = 1 beside zero.

        a = 1 + eta (xi - c),    xi the strength of a random environment

    It is positive where the exponent E log|a| is negative: the smaller, the heavier the tail. Where the exponent is
    positive, it is negative, and says how the law of a signal that survives vanishes near zero: P(|q| < x) ~ x^-kappa.

    Args:
        environments: the law of S(e), with strengths that commute.
        step_size: eta.
        learned: c, what holds q back. Zero for a direction of its own. What sampling error brings from the invariant
            signal lies in the columns of U that have learned it, where c is its eigenvalue.
        direction: which spurious direction.

    Returns:
        Infinite if no factor exceeds one in size, minus infinity if none is below one.

    Reference: H. Kesten, Acta Mathematica 131 (1973), theorem 5; C. M. Goldie, Annals of Applied Probability 1 (1991),
    theorem 4.1.

    Example, a mean factor of one and no change of sign make a tail like that of Cauchy's law:
        >>> from holdfast.sensing.environments import two_point
        >>> [round(tail_index(two_point(1.0, 10.0), 0.05, learned=share), 3) for share in (0.0, 1.0)]
        [0.604, 1.0]
    """
    POSITIVE.check("step_size", step_size)
    strengths, weights = strength_atoms(environments, direction)
    sizes = np.abs(1 + step_size * (strengths - learned))
    logarithms = np.log(np.maximum(sizes, np.finfo(float).tiny))
    exponent = float(weights @ logarithms)

    def excess(index: float) -> float:
        """The logarithm of E|a|^index, convex and zero at zero, divided by the index: it changes sign once."""
        if abs(index) <= SMALLEST_INDEX:
            return exponent
        powers = index * logarithms
        top = powers.max()
        return float(top + np.log(weights @ np.exp(powers - top))) / index

    if exponent == 0:
        return 0.0
    side = 1.0 if exponent < 0 else -1.0
    if not ((logarithms * side) > 0).any():
        return side * np.inf
    low = side * SMALLEST_INDEX
    high = side
    while excess(high) * exponent > 0:
        low, high = high, 2 * high
        if abs(high) > LARGEST_INDEX:
            return side * np.inf
    return float(brentq(excess, low, high))


class StationaryLaw(NamedTuple):
    """The law of the share Q^2 of a spurious direction in the long run.

    Attributes:
        tail_index: kappa, of the tail of |Q| between floor and ceiling; see the function `tail_index`.
        floor: the share at which sampling error moves Q as much as the environments do; zero without sampling error.
        ceiling: eta Var xi, the share at which what is learned holds Q back.
        values: shares, rising.
        distribution: the probability that Q^2 is at most that value.

    Example, the floor is about 1 / (2 m), and half of the runs are below it:
        >>> from holdfast.sensing.environments import two_point
        >>> law = stationary_law(two_point(1.0, 10.0), 0.05, batch_size=8000)
        >>> round(1 / law.floor, -2), round(1 / law.median, -2), round(law.above(0.01), 3)
        (15800.0, 16000.0, 0.047)
    """

    tail_index: float
    floor: float
    ceiling: float
    values: np.ndarray
    distribution: np.ndarray

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Quantiles of the share; 0 for one below the smallest value."""
        return np.interp(np.asarray(probability, float), self.distribution, self.values, left=0.0)

    def above(self, level: float) -> float:
        """The probability that the share is above a level."""
        return float(1 - np.interp(level, self.values, self.distribution, left=0.0, right=1.0))

    @property
    def median(self) -> float:
        """Half of the runs are below it."""
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        """The mean over runs, which the few above the floor dominate."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        return float(self.values[0] * self.distribution[0] + middles @ np.diff(self.distribution))

    @property
    def averages(self) -> str:
        """Mean and median in words."""
        half = f"of about {self.median:.2g}" if self.median > NEGLIGIBLE else f"below {NEGLIGIBLE:g}"
        return f"a mean of about {self.mean:.2g} and a median {half}"


def stationary_law(
    environments: Environments,
    step_size: float,
    *,
    direction: int = 0,
    **sampling: Unpack[SamplingOptions],
) -> StationaryLaw:
    """The law of the share of a spurious direction in the long run: a power between a floor and a ceiling.

    For small steps Q is a diffusion in n dimensions with drift eta (E xi - c - Q^2) Q and variance eta^2 (v Q^2 + b), v
    the variance of xi and b = tau (E||S||^2 + sigma^2) sigma_i / m that of the kicks. Its stationary density is

        p(Q) ~ |Q|^(n-1) (1 + Q^2 / floor)^(-(kappa + n) / 2) exp(-Q^2 / (eta v)),    floor = b / v,

    with kappa = 1 - 2 (E xi - c) / (eta v). Larger steps change it, and each law retains what is exact about it:

    - With a positive exponent Q survives: n = 1, c = 0, no floor, which is a gamma law of Q^2. Its recursion is solved
      instead, see `survivor_law`: near the threshold, where the share spreads over many decades, the
      median of the diffusion is a factor of two too small. Only where a step may turn the sign of Q, at large steps
      and for laws without bounds, is it the gamma law, of scale eta v and of the mean of `stationary_shares`.
    - With a negative one only what sampling error sustains remains, in the n = r1 columns that have learned the
      invariant signal, c = sigma_i its eigenvalue. kappa is that of `tail_index`. Where it is above 2, E Q^2 is finite
      below the ceiling, n eta^2 b / (1 - E a^2), and the power begins where the law has that mean; it is a normal law
      of Q if kappa is infinite.

    A diffusion errs to first order in eta xi; the law of a signal that survives has no such error.

    Args:
        environments: the law of S(e), with strengths that commute.
        step_size: eta.
        direction: which spurious direction.
        sampling: the arguments of `Sampling`. Without a batch size nothing remains if the exponent is negative. The
            smallest eigenvalue of the spectrum pulls back, all of them kick. The dimension does not matter.

    Example, a signal that survives: the mean is not what most runs show:
        >>> from holdfast.sensing.environments import two_point
        >>> law = stationary_law(two_point(1.0, 6.0), 0.05)
        >>> round(law.mean, 2), law.median < 1e-4
        (0.11, True)
    """
    POSITIVE.check("step_size", step_size)
    measured = Sampling(**sampling)
    eigenvalues = measured.eigenvalues
    strengths, weights = strength_atoms(environments, direction)
    variance = float(weights @ np.square(strengths - weights @ strengths))
    require(variance > 0, "environments must differ in strength", f"one strength in direction {direction}")
    ceiling = step_size * variance
    index = tail_index(environments, step_size, direction=direction)
    if index < 0:
        share = float(stationary_shares(environments, step_size)[direction])
        contract = "step_size must be small enough for what is learned to stop the growth of the spurious signal"
        require(not np.isnan(share), contract, step_size)
        solved = survivor_law(strengths, weights, step_size, index)
        return StationaryLaw(index, 0.0, ceiling, *(solved or _gamma_law(share / ceiling, ceiling)))
    if measured.batch_size is None:
        return StationaryLaw(index, 0.0, ceiling, np.array([0.0, 1.0]), np.ones(2))
    pull, columns = float(eigenvalues.min()), len(eigenvalues)
    index = tail_index(environments, step_size, learned=pull, direction=direction)
    noise = mean_square_strength(environments) + measured.noise_variance
    kicks = measured.entry_variance * noise / measured.batch_size * float(eigenvalues.mean())
    floor = begin = kicks / variance
    if index > 2:
        mean_square = float(weights @ np.square(1 + step_size * (strengths - pull)))
        each = step_size**2 * kicks / (1 - mean_square)  # of every column
        if np.isinf(index):
            return StationaryLaw(index, floor, ceiling, *_gamma_law(columns / 2, 2 * each))
        begin = (index - 2) * each
    values = np.geomspace(PART * begin, CEILINGS * ceiling, GRID)
    density = columns / 2 * np.log(values) - values / ceiling - (index + columns) / 2 * np.log1p(values / begin)
    cells = np.exp(density - density.max())
    return StationaryLaw(index, floor, ceiling, values, (np.cumsum(cells) - cells / 2) / cells.sum())


def _gamma_law(shape: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and the distribution of a gamma law; what is too small for a number counts as zero."""
    low, high = max(gammaincinv(shape, BELOW) * scale, np.finfo(float).tiny), gammainccinv(shape, ABOVE) * scale
    values = np.geomspace(low, high, GRID)
    return values, gammainc(shape, values / scale)
