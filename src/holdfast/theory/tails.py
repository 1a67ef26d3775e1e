"""The tail of the spurious share: Kesten's recursion q <- a q + b, and what holds it between a floor and a ceiling.

Environments drawn independently multiply a small spurious signal by a = 1 + eta xi, sampling error kicks it by b. Even
if it shrinks on average, a run of large factors may carry it far, so the law of its size has a power tail (Kesten 1973;
Goldie 1991), which ends where the signal is large enough to hold itself back. docs/theory.md derives the formulas.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from holdfast.core.validation import POSITIVE, require
from holdfast.environments import Environments
from holdfast.theory.sampling import entry_variance, mean_square_strength
from holdfast.theory.strengths import strength_atoms

# Tails with a larger index are no tails to speak of: the probability falls by 2^-200 from one level to twice it.
LARGEST_INDEX = 200.0
# The grid of log shares: from this share (powers of a small index reach far down) to this many ceilings.
SMALLEST_SHARE, CEILINGS, GRID = 1e-200, 60.0, 2**14


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
        >>> from holdfast.environments import two_point
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
        powers = index * logarithms
        top = powers.max()
        return float(top + np.log(weights @ np.exp(powers - top))) / index

    if exponent == 0:
        return 0.0
    side = 1.0 if exponent < 0 else -1.0
    if not ((logarithms * side) > 0).any():
        return side * np.inf
    low = side * 1e-9
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
        >>> from holdfast.environments import two_point
        >>> law = stationary_law(two_point(1.0, 10.0), 0.05, batch_size=8000)
        >>> round(1 / law.floor), round(1 / law.median), round(law.above(0.01), 3)
        (15842, 16040, 0.047)
    """

    tail_index: float
    floor: float
    ceiling: float
    values: np.ndarray
    distribution: np.ndarray

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Quantiles of the share."""
        return np.interp(np.asarray(probability, float), self.distribution, self.values)

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


def stationary_law(
    environments: Environments,
    step_size: float,
    *,
    batch_size: float | None = None,
    noise_variance: float = 0.0,
    spectrum: ArrayLike = 1.0,
    ensemble: str = "symmetric",
    direction: int = 0,
) -> StationaryLaw:
    """The law of the share of a spurious direction in the long run: a power between a floor and a ceiling.

    For small steps Q is a diffusion in n dimensions with drift eta (E xi - c - Q^2) Q and variance eta^2 (v Q^2 + b), v
    the variance of xi and b = tau (E||S||^2 + sigma^2) sigma_i / m that of the kicks. Its stationary density is

        p(Q) ~ |Q|^(n-1) (1 + Q^2 / floor)^(-(kappa + n) / 2) exp(-Q^2 / (eta v)),    floor = b / v.

    Its index 1 - 2 (E xi - c) / (eta v) is that of small steps; the exact one takes its place. With a positive exponent
    Q survives: n = 1, c = 0, no floor, and Q^2 has a gamma law. With a negative one only what sampling error sustains
    remains, in the n = r1 columns that have learned the invariant signal, c = sigma_i its eigenvalue.

    Args:
        environments: the law of S(e), with strengths that commute.
        step_size: eta.
        batch_size: m; None: no sampling error, and nothing remains if the exponent is negative.
        noise_variance: sigma^2, of the label noise.
        spectrum: sigma_i, eigenvalues of A*; the smallest pulls back, all of them kick.
        ensemble: of the measurements, "symmetric" (tau = 1/2) or "gaussian" (tau = 1).
        direction: which spurious direction.

    Example, a signal that survives: the mean is not what most runs show:
        >>> from holdfast.environments import two_point
        >>> law = stationary_law(two_point(1.0, 6.0), 0.05)
        >>> round(law.mean, 2), law.median < 1e-4
        (0.13, True)
    """
    strengths, weights = strength_atoms(environments, direction)
    variance = float(weights @ np.square(strengths - weights @ strengths))
    require(variance > 0, "environments must differ in strength", f"one strength in direction {direction}")
    eigenvalues = np.atleast_1d(np.asarray(spectrum, float))
    ceiling, floor, columns = step_size * variance, 0.0, 1
    index = tail_index(environments, step_size, direction=direction)
    if index > 0:
        index = tail_index(environments, step_size, learned=float(eigenvalues.min()), direction=direction)
        columns = len(eigenvalues)
        if batch_size is not None:
            kicks = entry_variance(ensemble) * (mean_square_strength(environments) + noise_variance) / batch_size
            floor = kicks * float(eigenvalues.mean()) / variance
    if (index > 0 and floor == 0) or np.isinf(index):
        return StationaryLaw(index, floor, ceiling, np.array([0.0, 1.0]), np.ones(2))
    logarithms = np.linspace(np.log(SMALLEST_SHARE), np.log(CEILINGS * ceiling), GRID)
    shares = np.exp(logarithms)
    density = columns / 2 * logarithms - shares / ceiling
    density -= (index + columns) / 2 * (np.log1p(shares / floor) if floor else logarithms)
    cells = np.exp(density - density.max())
    distribution = (np.cumsum(cells) - cells / 2) / cells.sum()
    return StationaryLaw(index, floor, ceiling, shares, distribution)
