"""Estimates with intervals: of numbers over seeds, of waiting times, and of effects in several environments."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, chdtrc, chdtri, gammaincinv, ndtri, stdtr

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
# More degrees of freedom than this are as good as infinitely many.
MANY_DEGREES = 1e9
# Halvings of an interval until rounding ends them.
BISECTIONS = 60


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
    found = f"{missing} of {count}: leave out or count what was not measured"
    require(not missing, "values must not be NaN", found)
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


def event_rate(times: ArrayLike, happened: ArrayLike) -> Estimate:
    """Events per unit of time, with the exact 95 % interval for a Poisson number of events (Garwood, 1936).

        rate = events / total time,    bounds = quantiles of chi^2 / (2 total time)

    For events at a constant rate, censored times count as well as complete ones. The reciprocal is the mean waiting
    time.

    Args:
        times: time waited, until the event or the end of the run.
        happened: whether the event ended the waiting.

    Example:
        >>> event_rate([10.0, 30.0, 60.0], [True, True, False]).value
        0.02
    """
    exposure, events = float(np.sum(times)), int(np.sum(happened))
    if exposure <= 0:
        return Estimate(0.0, 0.0, np.inf)
    # The chi^2 quantiles, halved, are those of the gamma law.
    low = gammaincinv(events, LOWER) if events else 0.0
    high = gammaincinv(events + 1, UPPER)
    return Estimate(events / exposure, float(low / exposure), float(high / exposure))


class Survival(NamedTuple):
    """The share that has not yet had the event, a step function.

    Attributes:
        times: of the events, ascending, after a 0.
        share: from each of these times on.
        low: lower end of its interval.
        high: upper end.

    Example:
        >>> curve = kaplan_meier([1.0, 2.0], [True, True])
        >>> curve.times.tolist(), curve.share.tolist()
        ([0.0, 1.0, 2.0], [1.0, 0.5, 0.0])
    """

    times: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


def kaplan_meier(times: ArrayLike, happened: ArrayLike) -> Survival:
    """The survival curve of Kaplan and Meier (1958), with the interval of 95 % of Greenwood on the log-log scale.

        S(t) = prod_{t_i <= t} (1 - d_i / n_i)

    Args:
        times: time waited, until the event or the end of the run.
        happened: whether the event ended the waiting.

    Example:
        >>> kaplan_meier([1.0, 2.0, 3.0], [True, False, True]).share.round(3).tolist()
        [1.0, 0.667, 0.0]
    """
    waited, events = np.asarray(times, float), np.asarray(happened, bool)
    event_times = np.unique(waited[events])
    at_risk = (waited >= event_times[:, None]).sum(1)
    ended = ((waited == event_times[:, None]) & events).sum(1)
    share = np.cumprod(1 - ended / np.maximum(at_risk, 1))
    variance = np.cumsum(ended / np.maximum(at_risk * (at_risk - ended), 1))
    # On the log(-log) scale the interval stays within 0 and 1; at 0 and 1 themselves it has no width.
    inner = (share > 0) & (share < 1)
    log_share = np.log(np.where(inner, share, 0.5))
    half = NORMAL_QUANTILE * np.sqrt(variance) / np.abs(log_share)
    low, high = (np.where(inner, np.exp(log_share * np.exp(sign * half)), share) for sign in (1, -1))
    start = np.ones(1)
    curves = (np.concatenate([start, part]) for part in (share, low, high))
    return Survival(np.concatenate([[0.0], event_times]), *curves)


class RandomEffects(NamedTuple):
    """The random-effects analysis of each feature; all (features,).

    Attributes:
        mean: of the effect over environments; NaN if none measures it.
        error: its standard error.
        between: tau, the standard deviation of the effect over environments that sampling error does not explain.
        i_squared: the share of the variation of the estimates that sampling error does not explain.
        significance: the probability of a larger variation if the effect is the same everywhere.
        measured: the number of environments that measure the effect.

    Example:
        >>> found = random_effects(np.array([[1.0], [1.2], [0.9]]), np.full((3, 1), 0.2))
        >>> found.degrees.tolist(), found.between.tolist()
        ([2.0], [0.0])
    """

    mean: np.ndarray
    error: np.ndarray
    between: np.ndarray
    i_squared: np.ndarray
    significance: np.ndarray
    measured: np.ndarray

    @property
    def degrees(self) -> np.ndarray:
        """(features,): degrees of freedom of (mean - true mean) / error, by Student; one effect is its own mean."""
        return np.where(self.measured > 1, self.measured - 1.0, np.inf)


def random_effects(estimates: np.ndarray, errors: np.ndarray, degrees: np.ndarray | None = None) -> RandomEffects:
    """Mean, standard deviation between environments, and a test of equality, for each effect on its own.

        Q = sum_e (b_e - b)^2 / s_e^2,    b = the mean of b_e with weights 1 / s_e^2,    I^2 = max(0, 1 - (E - 1) / Q)
        tau^2 = max(0, (Q - E + 1) / (W - sum_e s_e^-4 / W)),    W = sum_e s_e^-2
        mean of b_e with weights v_e = 1 / (s_e^2 + tau^2),    V = sum_e v_e
        error^2 = max(1, sum_e v_e (b_e - mean)^2 / (E - 1)) / V

    The factor max(1, ...) and Student's law with E - 1 degrees of freedom count that tau itself is estimated, from few
    environments. The test of equality turns each (b_e - b) / s_e, a Student variable, into the normal variable of the
    same probability, and compares the sum of their squares with a chi-square law of E - 1 degrees of freedom: errors
    s_e that are estimated from few rows make neither few nor many environments look different.

    Args:
        estimates: b, (environments, features); NaN where an effect is not measured.
        errors: s, their standard errors.
        degrees: the degrees of freedom of the errors; None: the errors are known exactly.

    Reference: R. DerSimonian and N. Laird, Controlled Clinical Trials 7 (1986) for tau; G. Knapp and J. Hartung,
        Statistics in Medicine 22 (2003) for the error of the mean; J. Higgins and S. Thompson, Statistics in Medicine
        21 (2002) for I^2; R. A. Alexander and D. M. Govern, Journal of Educational Statistics 19 (1994) for the test.

    Example, effects 1 and 3, measured almost exactly:
        >>> found = random_effects(np.array([[1.0], [3.0]]), np.array([[0.01], [0.01]]))
        >>> found.mean.tolist(), found.between.round(2).tolist(), found.i_squared.round(2).tolist()
        ([2.0], [1.41], [1.0])
    """
    known = np.isfinite(estimates) & np.isfinite(errors) & (errors > 0)
    b, variance = np.where(known, estimates, 0.0), np.where(known, errors, 1.0) ** 2
    count = known.sum(0)
    several = count > 1
    spare = np.maximum(count - 1, 1)
    precision = known / variance
    total = np.where(count > 0, precision.sum(0), 1.0)
    variation = (precision * (b - (precision * b).sum(0) / total) ** 2).sum(0)
    distances = np.abs(b - (precision * b).sum(0) / total) / np.sqrt(variance)
    freedom = MANY_DEGREES if degrees is None else np.clip(np.nan_to_num(degrees, nan=1.0), 1.0, MANY_DEGREES)
    normal = np.where(known, ndtri(stdtr(freedom, -distances)) ** 2, 0.0).sum(0)
    unequal = np.where(several, total - (precision**2).sum(0) / total, 1.0)
    between = np.where(several, np.maximum(0.0, variation - spare) / unequal, 0.0)
    weight = known / (variance + between)
    total_weight = np.where(count > 0, weight.sum(0), 1.0)
    mean = (weight * b).sum(0) / total_weight
    inflation = np.maximum(1.0, (weight * (b - mean) ** 2).sum(0) / spare)
    return RandomEffects(
        np.where(count > 0, mean, np.nan),
        np.where(count > 0, np.sqrt(inflation / total_weight), np.nan),
        np.where(count > 0, np.sqrt(between), np.nan),
        np.where(several, np.maximum(0.0, 1 - spare / np.maximum(variation, spare)), np.where(count > 0, 0.0, np.nan)),
        np.where(several, chdtrc(spare, normal), np.where(count > 0, 1.0, np.nan)),
        count,
    )


def largest_spread(estimates: np.ndarray, errors: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """(features,): the largest standard deviation between environments that the estimates do not exclude.

    It is the tau at which Q(tau) = sum_e (b_e - mean)^2 / (s_e^2 + tau^2) has fallen to the quantile of its chi-square
    law that the confidence asks for; NaN for fewer than two estimates.

    Args:
        estimates: b, (environments, features); NaN where an effect is not measured.
        errors: s, their standard errors.
        confidence: of the bound.

    Reference: W. Viechtbauer, Statistics in Medicine 26 (2007), the Q-profile method.

    Example, of ten exact effects with standard deviation 1 that of all environments is at most 1.6:
        >>> random = np.random.default_rng(0)
        >>> effects = random.standard_normal((10, 1))
        >>> largest_spread(effects / effects.std(ddof=1), np.full((10, 1), 1e-6)).round(2).tolist()
        [1.65]
    """
    known = np.isfinite(estimates) & np.isfinite(errors) & (errors > 0)
    b, variance = np.where(known, estimates, 0.0), np.where(known, errors, 1.0) ** 2
    spare = known.sum(0) - 1
    limit = chdtri(np.maximum(spare, 1), confidence)

    def variation(between: np.ndarray) -> np.ndarray:
        weight = known / (variance + between**2)
        mean = (weight * b).sum(0) / np.maximum(weight.sum(0), np.finfo(float).tiny)
        return (weight * (b - mean) ** 2).sum(0)

    low = np.zeros(b.shape[1])
    # Q(tau) is at most the sum of squares over tau^2
    high = np.sqrt(np.where(known, (b - b.min(0, initial=0.0)) ** 2, 0.0).sum(0) / limit) + np.finfo(float).tiny
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = variation(middle) > limit
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(spare > 0, high, np.nan)


def detectable_spread(errors: np.ndarray, level: float, power: float = 0.8) -> np.ndarray:
    """(features,): the standard deviation between environments that a test of equality would find, with this power.

    With equal errors s, Q is (1 + tau^2 / s^2) times a chi-square variable; s^2 is taken to be the harmonic mean of the
    variances. NaN for fewer than two estimates.

    Args:
        errors: s, (environments, features); NaN where an effect is not measured.
        level: of the test.
        power: how often it rejects.

    Example:
        >>> detectable_spread(np.full((10, 1), 0.1), level=0.05).round(3).tolist()
        [0.146]
    """
    known = np.isfinite(errors) & (errors > 0)
    spare = np.maximum(known.sum(0) - 1, 1)
    variance = known.sum(0) / np.maximum((known / np.where(known, errors, 1.0) ** 2).sum(0), np.finfo(float).tiny)
    ratio = chdtri(spare, level) / chdtri(spare, power)
    return np.where(known.sum(0) > 1, np.sqrt(variance * np.maximum(ratio - 1, 0.0)), np.nan)
