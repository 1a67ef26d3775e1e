"""Finitely many environments drawn from a law: the exponent of a random panel, and how many environments it takes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from holdfast.core.validation import require
from holdfast.sensing.environments import Environments
from holdfast.theory.lyapunov import TINY, exponents
from holdfast.theory.strengths import strength_atoms


class PanelExponent(NamedTuple):
    """The logarithm of one random factor: what the exponents of random panels are averages of.

    A panel of E environments has the exponent mean_e log|1 + eta xi_e|. By the central limit theorem it is normal
    with mean lambda and variance sigma^2 / E.

    Attributes:
        mean: lambda, the exponent of the law.
        deviation: sigma, the standard deviation of log|1 + eta xi|.

    Example, the more environments, the surer a negative exponent of the law is that of the panel:
        >>> PanelExponent(mean=-0.05, deviation=0.5).negative([1, 100]).round(2).tolist()
        [0.54, 0.84]
    """

    mean: float
    deviation: float

    def negative(self, count: ArrayLike) -> np.ndarray:
        """The probability that a panel of so many environments has a negative exponent.

        P = Phi(-lambda sqrt(E) / sigma)

        Example, where the law is at its threshold every second panel washes out, whatever its size:
            >>> PanelExponent(0.0, 0.3).negative([2, 200]).tolist()
            [0.5, 0.5]
        """
        return ndtr(-self.mean * np.sqrt(np.asarray(count, float)) / max(self.deviation, TINY))

    def washed_out(self, count: ArrayLike, steps: int, init_scale: float, level: float) -> np.ndarray:
        """The probability that the spurious share is below a level after T steps on a random panel.

        log Q after T steps has mean log alpha + T lambda; its variance is that of the panel, T^2 sigma^2 / E, and that
        of the walk on it, T sigma^2 (1 - 1/E).

        Example, in the long run the exponent of the panel decides:
            >>> law = PanelExponent(-0.05, 0.5)
            >>> bool(abs(law.washed_out(8, 10**7, 1e-3, 0.05) - law.negative(8)) < 1e-3)
            True
        """
        count = np.asarray(count, float)
        spread = self.deviation * np.sqrt(steps**2 / count + steps * (1 - 1 / count))
        return ndtr((0.5 * np.log(level) - np.log(init_scale) - steps * self.mean) / np.maximum(spread, TINY))

    def needed(self, confidence: float) -> float:
        """The number of environments of which a panel washes out with a probability; infinite if the law does not.

        E = (z sigma / lambda)^2, rounded up, with z the quantile of the standard normal law; 1 where z is negative.

        Example, with a probability of one half a single one is enough:
            >>> [PanelExponent(-0.05, 0.5).needed(confidence) for confidence in (0.5, 0.95)]
            [1.0, 271.0]
        """
        require(0 < confidence < 1, "confidence must be a number between 0 and 1", confidence)
        if self.mean >= 0:
            return np.inf
        return float(max(1.0, np.ceil((max(ndtri(confidence), 0.0) * self.deviation / self.mean) ** 2)))


def panel_exponent(environments: Environments, step_size: float, *, direction: int = 0) -> PanelExponent:
    """Mean and standard deviation of log|1 + eta xi|, for panels drawn from a law of environments.

    Args:
        environments: the law that panels are drawn from, with strengths that commute.
        step_size: eta.
        direction: which spurious direction.

    Example:
        >>> from holdfast.sensing.environments import gaussian
        >>> law = panel_exponent(gaussian(1.0, 8.0), 0.05)
        >>> law.negative([2, 8, 32]).round(2).tolist()
        [0.55, 0.61, 0.71]
    """
    strengths, weights = strength_atoms(environments, direction)
    logarithms = np.log(np.maximum(np.abs(1 + step_size * strengths), TINY))
    spread = np.sqrt(weights @ np.square(logarithms - weights @ logarithms))
    return PanelExponent(float(exponents(environments, step_size)[direction]), float(spread))


def draw_panels(environments: Environments, count: int, panels: int, *, seed: int = 0) -> np.ndarray:
    """Strengths of random panels of one direction, (panels, count), in NumPy and by inverting the distribution.

    Example:
        >>> from holdfast.sensing.environments import uniform
        >>> draw_panels(uniform(1.0, 6.0), 4, 3).shape
        (3, 4)
    """
    strengths, weights = strength_atoms(environments)
    return np.random.default_rng(seed).choice(strengths, (panels, count), p=weights)
