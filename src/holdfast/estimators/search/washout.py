"""Which features are left when what varies is washed out, and the amplification and step size that do it.

The choice uses the training table alone. It takes four steps, all based on the exponents of
`holdfast.theory.effects`:

1. The washing strengths eta (1 + k)^2 at which the single features would die, found from their effects at the start,
   give the range of strengths worth trying, from one that spares almost all of them to one that spares almost none.
2. Runs of the dynamics at each of them, from a small start and in random orders, leave sets of features alive.
3. Each set is taken to where the dynamics would take it in the end (`holdfast.estimators.search.feature_sets`).
4. Among the sets that stay as they are, the one that predicts best (by the Bayesian information criterion) is selected.
   For gradients and for effects, the strength whose runs came closest to it is a finalist, and so is the next larger
   amplification at which the exponents of all features that vary are clearly negative. The finalist whose repeated runs
   agree best with the selected set is chosen.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from holdfast.algorithms.hadamard import amplified, excess_share
from holdfast.estimators.search.dynamics import CoefficientPaths, Program, WashSettings, wash
from holdfast.estimators.search.evidence import Equality, Evidence, LinearModel, equality, tolerant_slopes
from holdfast.estimators.search.feature_sets import FeatureSetSearch
from holdfast.losses.slopes import Slopes
from holdfast.theory.effects import effect_exponents, washing_strength

STRENGTHS = 6  # tried, spaced geometrically
SCAN_ORDERS = 2  # random orders at each of them
LARGEST_STEP, SMALLEST_STEP = 0.05, 0.002
# The largest change of a factor in a step: beyond it log(1 - x) is no longer near -x - x^2/2 and factors hit the clip.
LARGEST_CHANGE = 0.7
# Clearly negative: a washed-out factor falls by this many powers of e in a run.
CLEARLY = 4.0


class SearchSettings(NamedTuple):
    """How to search.

    Attributes:
        significance: level of the tests for variation.
        orders: random orders of the environments in the runs that are reported.
        seed: of these orders.
        step_size: eta; None: chosen.
        amplification: k; None: chosen.
    """

    significance: float
    orders: int
    seed: int
    step_size: float | None = None
    amplification: float | None = None


class Washout(NamedTuple):
    """The features that are left, and why.

    Attributes:
        selected: (features,), the features that survive.
        fitted: the pooled fit of these features.
        settings: step size, amplification and scaling.
        slopes: gradients of all features at `fitted`.
        varies: (features,), whether an effect varies beyond sampling error at `fitted`, or the selected effects would
            vary with it.
        exponents: (features,), the larger of the exponents of u and v at `fitted`; for selected features that of the
            factor that carries the coefficient.
        paths: the runs at the chosen settings.
        test: of equal effects of the selected features.
        pooled_test: of equal effects of all features, at the pooled fit.
        pooled: the pooled fit of all features.
        sets_tried: how many sets of features were examined.
    """

    selected: np.ndarray
    fitted: LinearModel
    settings: WashSettings
    slopes: Slopes
    varies: np.ndarray
    exponents: np.ndarray
    paths: CoefficientPaths
    test: Equality
    pooled_test: Equality
    pooled: LinearModel
    sets_tried: int


def washout(evidence: Evidence, program: Program, settings: SearchSettings) -> Washout:
    """Wash out what varies.

    Args:
        evidence: the table, for decisions in double precision.
        program: the same table, for the runs.
        settings: how to search.
    """
    critical = critical_variation(evidence, settings.significance)
    washing = _Washing(evidence, program, critical, settings)
    candidates = washing.candidates()
    runs = wash(program, candidates, critical, SCAN_ORDERS, settings.seed)
    search = FeatureSetSearch(evidence, critical, settings.significance)
    everything, nothing = np.ones(evidence.dimension, bool), np.zeros(evidence.dimension, bool)
    for members in (nothing, everything, *(row for paths in runs for row in np.unique(paths.survived, axis=0))):
        search.settle(members)
    selected, fitted = search.best()
    finalists = washing.finalists(fitted, selected, list(zip(candidates, runs, strict=True)))
    repeated = wash(program, finalists, critical, settings.orders, settings.seed + 1)
    chosen = int(np.argmax([_agreement(paths, selected) for paths in repeated]))
    tolerant = tolerant_slopes(evidence, fitted)
    pooled = evidence.solve(np.arange(evidence.dimension))
    return Washout(
        selected,
        fitted,
        finalists[chosen],
        evidence.slopes(fitted),
        (np.asarray(excess_share(tolerant, evidence.weights, 1.0, critical)) > 0) | search.unsettling(selected, fitted),
        washing.exponents(tolerant, fitted, finalists[chosen]),
        repeated[chosen],
        equality(evidence, fitted, np.flatnonzero(selected)),
        equality(evidence, pooled, np.arange(evidence.dimension)),
        pooled,
        len(search.seen),
    )


def critical_variation(evidence: Evidence, significance: float) -> float:
    """The quantile of the variation of an effect that none of the features passes by chance (Bonferroni)."""
    environments = len(evidence.counts)
    return float(chi2.isf(significance / evidence.dimension, environments - 1)) if environments > 1 else np.inf


def _agreement(paths: CoefficientPaths, selected: np.ndarray) -> float:
    return float(np.mean(paths.survived == selected))


class _Washing(NamedTuple):
    """The choice of step size and amplification."""

    evidence: Evidence
    program: Program
    critical: float
    settings: SearchSettings

    def candidates(self) -> list[WashSettings]:
        """Strengths from one that spares almost all features to one that spares almost none, for both scalings."""
        step_size, amplification = self.settings.step_size, self.settings.amplification
        start = tolerant_slopes(self.evidence, LinearModel(np.zeros(self.evidence.dimension), 0.0))
        surplus = self._surplus(start, 0.0)
        largest = float(np.abs(surplus).max())
        if largest == 0:  # one environment, or none that differ: nothing to amplify
            return [WashSettings(step_size or LARGEST_STEP, amplification or 0.0, 0.0)]
        strengths = washing_strength(self.evidence.weights @ np.asarray(start.gradient), np.mean(surplus**2, 0))
        strengths = strengths[np.isfinite(strengths) & (strengths > 0)]
        highest = LARGEST_CHANGE**2 / (largest**2 * SMALLEST_STEP)
        # where all that varies has no mean effect at all, nothing grows and any strength will do
        weakest, strongest = (strengths.min(), strengths.max()) if len(strengths) else (0.0, 0.0)
        low = float(np.clip(weakest / 4, 1.0, highest / 10))
        high = float(np.clip(strongest * 4, 10 * low, highest))
        found = []
        for strength in np.geomspace(low, high, STRENGTHS):
            eta = step_size or float(np.clip(LARGEST_CHANGE**2 / (strength * largest**2), SMALLEST_STEP, LARGEST_STEP))
            k = max(np.sqrt(strength / eta) - 1, 0.0) if amplification is None else amplification
            found += [WashSettings(eta, float(k), scaling) for scaling in (0.0, 1.0)]
        return list(dict.fromkeys(found))

    def finalists(
        self, fitted: LinearModel, selected: np.ndarray, runs: list[tuple[WashSettings, CoefficientPaths]]
    ) -> list[WashSettings]:
        """For each scaling the candidate whose runs came closest to the set, as it is and with clear exponents."""
        found = []
        for scaling in sorted({candidate.scaling for candidate, _ in runs}):
            own = [run for run in runs if run[0].scaling == scaling]
            nearest, _ = max(own, key=lambda run: _agreement(run[1], selected))
            found += [self._clear(fitted, selected, nearest), nearest]
        return list(dict.fromkeys(found))

    def exponents(self, slopes: Slopes, fitted: LinearModel, candidate: WashSettings) -> np.ndarray:
        """(features,): the exponent of the factor that carries the coefficient, or the larger one if it is zero."""
        both = effect_exponents(candidate.step_size, self._amplified(slopes, candidate))
        w = fitted.coefficients
        return np.where(w > 0, both[0], np.where(w < 0, both[1], both.max(0)))

    def _amplified(self, slopes: Slopes, candidate: WashSettings) -> np.ndarray:
        k, scaling = candidate.amplification, candidate.scaling
        return np.asarray(amplified(slopes, self.evidence.weights, k, scaling, self.critical))

    def _surplus(self, slopes: Slopes, scaling: float) -> np.ndarray:
        """(environments, features): what an amplification of 1 adds to the gradients."""
        plain, once = (self._amplified(slopes, WashSettings(0.0, k, scaling)) for k in (0.0, 1.0))
        return once - plain

    def _clear(self, fitted: LinearModel, selected: np.ndarray, start: WashSettings) -> WashSettings:
        """The smallest amplification, from that of `start` on, that clearly washes out every effect that varies."""
        slopes = tolerant_slopes(self.evidence, fitted)
        surplus = self._surplus(slopes, start.scaling)
        varying = ~selected & (np.abs(surplus).max(0) > 0)
        if not varying.any() or self.settings.amplification is not None:
            return start
        largest = float(np.abs(surplus[:, varying]).max())
        candidate = start
        for k in (1 + start.amplification) * np.geomspace(1, 100, 25) - 1:
            # a larger amplification needs smaller steps, or the exponents would not describe the factors
            eta = float(np.clip(LARGEST_CHANGE / ((1 + k) * largest), SMALLEST_STEP, start.step_size))
            candidate = WashSettings(self.settings.step_size or eta, float(k), start.scaling)
            both = effect_exponents(candidate.step_size, self._amplified(slopes, candidate)[:, varying])
            visits = self.program.sweeps * self.program.environments
            if both.max() * visits < -CLEARLY or candidate.step_size <= SMALLEST_STEP:
                break
        return candidate
