"""One mean of effects that were measured several times, and how much they differ beyond their errors."""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri, ndtri, stdtr

# More degrees of freedom than this are as good as infinitely many.
MANY_DEGREES = 1e9
BISECTIONS = 60


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
    high = np.sqrt(np.where(known, (b - b.min(0)) ** 2, 0.0).sum(0) / limit) + np.finfo(float).tiny
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
