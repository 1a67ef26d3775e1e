"""What SGD itself does on a table: the runs that wash out what varies, with the amplification and step size that do it.

The choice uses the training table alone and the exponents of `holdfast.theory.effects`:

1. The washing strengths eta (1 + k)^2 at which the single features would die, found from their effects at the start,
   give the range of strengths worth trying, from one that spares almost all of them to one that spares almost none.
2. Runs of the dynamics at each of them, from a small start and in random orders, leave sets of features alive. With
   `search="dynamics"` these are the sets from which `holdfast.estimators.search.selection` starts.
3. For gradients and for effects, the strength whose runs came closest to the selected set is a finalist, and so is the
   next larger amplification at which the exponents of all features that vary are clearly negative. The finalist whose
   repeated runs agree best with the selected set is chosen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from holdfast.algorithms.amplification import amplified
from holdfast.algorithms.losses.slopes import Slopes
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.dynamics import CoefficientPaths, Program, WashSettings, wash
from holdfast.theory.effects import effect_exponents, washing_strength

STRENGTHS = 6  # tried, spaced geometrically
SCAN_RUNS = 2  # runs at each of them
LARGEST_STEP, SMALLEST_STEP = 0.05, 0.002
# The largest change of a factor in a step: beyond it log(1 - x) is no longer near -x - x^2/2 and factors hit the clip.
LARGEST_CHANGE = 0.7
# Clearly negative: a washed-out factor falls by this many powers of e in a run.
CLEARLY = 4.0


class Washout(NamedTuple):
    """Runs that wash out what varies.

    Attributes:
        settings: the chosen step size and amplification.
        exponents: (features,), of the factors that carry the coefficients, at the selected fit.
        paths: the coefficients in the runs.
    """

    settings: WashSettings
    exponents: np.ndarray
    paths: CoefficientPaths


@dataclass(frozen=True)
class Washing:
    """The runs on a table, made when they are first asked for.

    Attributes:
        program: the table, as the runs see it.
        weights: (environments,), p_e, the shares of the rows.
        start: slopes where nothing is fitted yet.
        significance: level of the tests for variation.
        n_runs: runs that are reported, each with its own random order of the environments.
        seed: of these runs.
        step_size: eta; None: chosen.
        amplification: k; None: chosen.
    """

    program: Program
    weights: np.ndarray
    start: Slopes
    significance: float
    n_runs: int
    seed: int
    step_size: float | None
    amplification: float | None

    @property
    def critical(self) -> float:
        """The quantile of the variation of an effect that none of the features passes by chance (Bonferroni)."""
        degrees = len(self.weights) - 1
        level = self.significance / self.program.dimension
        return float(chi2.isf(level, degrees)) if degrees else np.inf

    @cached_property
    def scan(self) -> list[tuple[WashSettings, CoefficientPaths]]:
        """Runs at all strengths worth trying."""
        candidates = self._candidates()
        runs = wash(self.program, candidates, self.critical, SCAN_RUNS, self.seed)
        return list(zip(candidates, runs, strict=True))

    def survivors(self) -> Iterator[np.ndarray]:
        """(features,), masks of what the runs leave alive."""
        for _, paths in self.scan:
            yield from np.unique(paths.survived, axis=0)

    def towards(self, selected: np.ndarray, fitted: LinearModel, slopes: Slopes) -> Washout:
        """The runs that end nearest to a set of features.

        Args:
            selected: (features,), the set.
            fitted: the pooled fit of the set.
            slopes: there.
        """
        finalists = []
        for scaling in sorted({candidate.scaling for candidate, _ in self.scan}):
            own = [run for run in self.scan if run[0].scaling == scaling]
            nearest, _ = max(own, key=lambda run: _agreement(run[1], selected))
            finalists += [self._clear(slopes, selected, nearest), nearest]
        finalists = list(dict.fromkeys(finalists))
        repeated = wash(self.program, finalists, self.critical, self.n_runs, self.seed + 1)
        best = int(np.argmax([_agreement(paths, selected) for paths in repeated]))
        return Washout(finalists[best], self._exponents(slopes, fitted, finalists[best]), repeated[best])

    def _candidates(self) -> list[WashSettings]:
        """Strengths from one that spares almost all features to one that spares almost none, for both scalings."""
        surplus = self._surplus(self.start, 0.0)
        largest = float(np.abs(surplus).max())
        if largest == 0:  # one environment, or none that differ: nothing to amplify
            return [WashSettings(self.step_size or LARGEST_STEP, self.amplification or 0.0)]
        strengths = washing_strength(self.weights @ self.start.gradient, np.mean(surplus**2, 0))
        strengths = strengths[np.isfinite(strengths) & (strengths > 0)]
        highest = LARGEST_CHANGE**2 / (largest**2 * SMALLEST_STEP)
        # where all that varies has no mean effect at all, nothing grows and any strength will do
        weakest, strongest = (strengths.min(), strengths.max()) if len(strengths) else (0.0, 0.0)
        low = float(np.clip(weakest / 4, 1.0, highest / 10))
        high = float(np.clip(strongest * 4, 10 * low, highest))
        found = []
        for strength in np.geomspace(low, high, STRENGTHS):
            fitting = np.clip(LARGEST_CHANGE**2 / (strength * largest**2), SMALLEST_STEP, LARGEST_STEP)
            eta = self.step_size or float(fitting)
            k = max(np.sqrt(strength / eta) - 1, 0.0) if self.amplification is None else self.amplification
            found += [WashSettings(eta, float(k), scaling) for scaling in (0.0, 1.0)]
        return list(dict.fromkeys(found))

    def _exponents(self, slopes: Slopes, fitted: LinearModel, candidate: WashSettings) -> np.ndarray:
        """(features,): the exponent of the factor that carries the coefficient, or the larger one if it is zero."""
        both = effect_exponents(candidate.step_size, self._amplified(slopes, candidate))
        w = fitted.coefficients
        return np.where(w > 0, both[0], np.where(w < 0, both[1], both.max(0)))

    def _amplified(self, slopes: Slopes, candidate: WashSettings) -> np.ndarray:
        return amplified(slopes, self.weights, candidate.amplification, candidate.scaling, self.critical)

    def _surplus(self, slopes: Slopes, scaling: float) -> np.ndarray:
        """(environments, features): what an amplification of 1 adds to the gradients."""
        plain, once = (self._amplified(slopes, WashSettings(0.0, k, scaling)) for k in (0.0, 1.0))
        return once - plain

    def _clear(self, slopes: Slopes, selected: np.ndarray, start: WashSettings) -> WashSettings:
        """The smallest amplification, from that of `start` on, that clearly washes out every effect that varies."""
        surplus = self._surplus(slopes, start.scaling)
        varying = ~selected & (np.abs(surplus).max(0) > 0)
        if not varying.any() or self.amplification is not None:
            return start
        largest = float(np.abs(surplus[:, varying]).max())
        candidate = start
        for k in (1 + start.amplification) * np.geomspace(1, 100, 25) - 1:
            # a larger amplification needs smaller steps, or the exponents would not describe the factors
            eta = float(np.clip(LARGEST_CHANGE / ((1 + k) * largest), SMALLEST_STEP, start.step_size))
            candidate = WashSettings(self.step_size or eta, float(k), start.scaling)
            both = effect_exponents(candidate.step_size, self._amplified(slopes, candidate)[:, varying])
            visits = self.program.sweeps * self.program.environments
            if both.max() * visits < -CLEARLY or candidate.step_size <= SMALLEST_STEP:
                break
        return candidate


def _agreement(paths: CoefficientPaths, selected: np.ndarray) -> float:
    return float(np.mean(paths.survived == selected))
