"""Estimates with intervals, for numbers measured over seeds."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv

from holdfast.core.validation import require


class Estimate(NamedTuple):
    """A number with its interval.

    Example:
        >>> median(np.arange(101.0)).low
        40.0
    """

    value: float
    low: float
    high: float


# The share of the sampling distribution that an interval covers.
CONFIDENCE = 0.95
# The quantiles of the sampling distribution at which it begins and ends.
LOWER, UPPER = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
# The half width of such an interval in standard errors, for a normal law.
NORMAL_QUANTILE = 1.959964
# Fewer values than this have too few different resamples: from 4 normal values an interval of 95 % covers 77 %.
FEW_VALUES = 10


def median(values: ArrayLike) -> Estimate:
    """The median with its order-statistic interval, which assumes nothing about the distribution.

    The number of values below the true median is binomial(n, 1/2), so the interval between two order statistics
    has an exact coverage; the narrowest symmetric pair that covers at least 95 % is taken.

    Args:
        values: (n,), independent of one another: one number per seed, not several records of a run; at least 6.

    Example:
        >>> median(np.arange(101.0))
        Estimate(value=50.0, low=40.0, high=60.0)
    """
    ordered = np.sort(np.asarray(values, float))
    contract = "values must have one dimension, one number per seed"
    require(ordered.ndim == 1, contract, f"the shape {ordered.shape}")
    count, missing = len(ordered), int(np.isnan(ordered).sum())
    if missing:
        raise ValueError(f"values must not be NaN, got {missing} of {count}: leave out or count what was not measured")
    below = int(np.searchsorted(bdtr(np.arange(count), count, 0.5), LOWER, side="right"))
    contract = f"a {CONFIDENCE:.0%} interval of a median needs at least 6 values"
    require(below > 0, contract, f"{count}: use more seeds")
    return Estimate(float(np.median(ordered)), float(ordered[below - 1]), float(ordered[count - below]))


def bootstrap(values: np.ndarray, statistic, *, samples: int = 1000) -> Estimate:
    """A statistic of rows (one per seed) with its percentile bootstrap interval; the resampling has a fixed seed.

    Example:
        >>> [round(number) for number in bootstrap(np.arange(101.0), np.mean)]
        [50, 44, 56]
    """
    random = np.random.default_rng(0)
    rows = random.integers(0, len(values), (samples, len(values)))
    draws = np.array([statistic(values[row]) for row in rows])
    low, high = np.quantile(draws, [LOWER, UPPER])
    return Estimate(float(statistic(values)), float(low), float(high))


def mean_interval(values: ArrayLike) -> Estimate:
    """The mean with its bootstrap interval, or with Student's t interval for fewer than `FEW_VALUES` values.

    One value says nothing about its error: the interval is then the whole line.

    Example, four values:
        >>> [round(each, 2) for each in mean_interval([1.0, 2.0, 3.0, 4.0])]
        [2.5, 0.45, 4.55]
    """
    known = np.asarray(values, float)
    if len(known) >= FEW_VALUES:
        return bootstrap(known, np.mean)
    centre = float(known.mean())
    if len(known) == 1:
        return Estimate(centre, -np.inf, np.inf)
    from scipy.stats import t  # takes a while to import, and only comparisons of few values need it

    half = float(t.ppf(UPPER, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return Estimate(centre, centre - half, centre + half)


def proportion(successes: int, count: int) -> Estimate:
    """A share of successes with Wilson's interval of 95 %.

    Example:
        >>> proportion(64, 64).low > 0.94
        True
    """
    z = NORMAL_QUANTILE
    share = successes / count
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    # Rounding must not put the share outside of its own interval, nor the interval outside of what a share can be.
    low, high = float(centre - half), float(centre + half)
    return Estimate(share, max(0.0, min(share, low)), min(1.0, max(share, high)))


def exact_proportion(successes: int, count: int) -> Estimate:
    """A share of successes with the exact interval of Clopper and Pearson, for shares near 0 or 1.

    Of n successes in n the lower end is 0.025^(1/n): 368 of 368 say that the probability is above 0.99.

    Args:
        successes: how many of them.
        count: n.

    Example:
        >>> exact_proportion(367, 367).low < 0.99 < exact_proportion(368, 368).low
        True
    """
    low = betaincinv(successes, count - successes + 1, LOWER) if successes else 0.0
    high = betaincinv(successes + 1, count - successes, UPPER) if successes < count else 1.0
    return Estimate(successes / count, float(low), float(high))
