"""One mean of effects that were measured several times, and how much they differ beyond their errors."""

from typing import NamedTuple

import numpy as np
from scipy.stats import f

# More degrees of freedom than this are as good as infinitely many.
MANY_DEGREES = 1e9


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
    environments. The test of equality is that of Welch, who corrects the law of Q for errors s_e that are estimated.

    Args:
        estimates: b, (environments, features); NaN where an effect is not measured.
        errors: s, their standard errors.
        degrees: the degrees of freedom of the errors; None: the errors are known exactly.

    Reference: R. DerSimonian and N. Laird, Controlled Clinical Trials 7 (1986) for tau; G. Knapp and J. Hartung,
        Statistics in Medicine 22 (2003) for the error of the mean; J. Higgins and S. Thompson, Statistics in Medicine
        21 (2002) for I^2; B. L. Welch, Biometrika 38 (1951) for the test.

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
        np.where(several, _welch(variation, precision / total, count, degrees), np.where(count > 0, 1.0, np.nan)),
        count,
    )


def _welch(variation: np.ndarray, shares: np.ndarray, count: np.ndarray, degrees: np.ndarray | None) -> np.ndarray:
    """(features,): the probability of a larger Q, from the shares of the environments in the weights."""
    groups = np.maximum(count, 2)
    estimated = np.zeros(len(count))
    if degrees is not None:
        estimated = np.where(shares > 0, (1 - shares) ** 2 / np.maximum(degrees, 1.0), 0.0).sum(0)
    correction = 1 + 2 * (groups - 2) / (groups**2 - 1) * estimated
    second = np.minimum((groups**2 - 1) / np.maximum(3 * estimated, 1 / MANY_DEGREES), MANY_DEGREES)
    return f.sf(variation / (groups - 1) / correction, groups - 1, second)
