"""Settings that wash the spurious signal out and learn the invariant one, with a wanted probability."""

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from holdfast.core.statistics import NORMAL_QUANTILE
from holdfast.core.validation import require
from holdfast.sensing.ensembles import Ensemble
from holdfast.sensing.environments import Environments
from holdfast.theory.finite_time import log_share
from holdfast.theory.sampling import Sampling
from holdfast.theory.shares import SimulatedShares, simulate_shares
from holdfast.theory.strengths import diagonalised
from holdfast.theory.window import Window, sharp_window

# An invariant signal counts as learned for good when its share has reached this.
LEARNED = 0.95
# The smallest alpha that is considered is 10^-16: its square still fits into float32.
SMALLEST_EXPONENT = 16.0
# Runs that choose settings, and runs that a promise is computed from; the latter know a probability of 0.001.
FEW_RUNS, MANY_RUNS = 2000, 10_000
# Decades of alpha below what is small enough without sampling error: they cost steps, and soon gain nothing more.
FURTHER = 3.0
# Starting points that are tried after the first that few runs favour.
TRIED = 3
LARGEST_CONFIDENCE = 0.999
# Batches of up to 2^12 times the size are considered as sufficient.
LARGEST_DOUBLING = 12


class Advice(NamedTuple):
    """Settings that wash the spurious signal out and learn the invariant one, with a wanted probability.

    Attributes:
        step_size: eta.
        init_scale: alpha.
        steps: T, the time that the invariant signal needs from this starting point.
        failure: at most the probability that the spurious share is above the tolerance at T or the run has diverged;
            the upper end of a 95 % interval.
        diverged: the part of it that is runs that diverged.
        median: of the spurious share at T: half of the runs end below it.
        mean: of the spurious share at T over the runs that did not diverge; far above the median, because a few runs
            keep large shares.
        invariant: median share of the invariant signal at T.

    Example, the bound on the probability of failure holds with the wanted confidence:
        >>> from holdfast.sensing.environments import two_point
        >>> advised = advise(two_point(1.0, 6.0), step_size=0.1)
        >>> advised.steps, advised.failure < 0.05, advised.median < advised.mean
        (76, True, True)
    """

    step_size: float
    init_scale: float
    steps: int
    failure: float
    diverged: float
    median: float
    mean: float
    invariant: float


def learning_time(step_size: float, init_scale: float, spectrum: ArrayLike = 1.0, level: float = LEARNED) -> int:
    """Steps until the slowest invariant direction has learned a share of its eigenvalue, without sampling error.

    r <- r (1 + eta (sigma - r^2)) grows by 1 + eta sigma a step while it is small. The logistic curve with that rate,
    which r^2 / sigma follows for small steps and overtakes for larger ones, gives

        T = (logit level - logit(alpha^2 / sigma)) / (2 log(1 + eta sigma))

    Example:
        >>> learning_time(step_size=0.05, init_scale=1e-3)
        172
    """
    eigenvalue = float(np.min(spectrum))
    if not 0 < step_size * eigenvalue < 1:
        raise ValueError(f"step_size must be between 0 and {1 / eigenvalue:.4g} for this spectrum, got {step_size}")
    start = min(init_scale**2 / eigenvalue, 0.5)
    return math.ceil((logit(level) - logit(start)) / (2 * np.log1p(step_size * eigenvalue)))


def advise(
    environments: Environments,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    spectrum: ArrayLike = 1.0,
    dimension: int = 100,
    batch_size: float | None = None,
    noise_variance: float = 0.0,
    ensemble: str | Ensemble = "symmetric",
    step_size: float | None = None,
    window: Window | None = None,
) -> Advice | None:
    """The settings with the fewest steps that leave a spurious share below the tolerance, with this confidence.

    For each step size of the sharp window, alpha is lowered until the spurious share, at the time T at which the
    invariant signal is learned, exceeds the tolerance, or the run diverges, with a probability of at most
    1 - confidence: by the law of `simulate_shares`, with sampling error if a batch size is given.

    Args:
        environments: the law of S(e), with strengths that commute.
        confidence: wanted probability of success, at most 0.999.
        tolerance: largest spurious share that counts as washed out.
        spectrum: eigenvalues of A*; a single one stands for r1 = 1.
        dimension: d. The other directions keep what they start with, d alpha^2 in all, so that stays below the
            tolerance as well.
        batch_size: m, fresh measurements of one environment in each step; None: no sampling error.
        noise_variance: of the label noise.
        ensemble: of the measurements, "symmetric", "gaussian" or an `Ensemble`.
        step_size: eta, if it is given; otherwise it is chosen.
        window: the sharp window, if it is known already.

    Returns:
        None if the window is empty, or the given step size is outside of it, or no starting point keeps the promise,
        for instance because sampling error brings back too much: see `sufficient_batch_size`.

    Example, no step size washes out strengths that never change sign:
        >>> from holdfast.sensing.environments import two_point
        >>> advise(two_point(1.0, 0.5)) is None
        True
        >>> advise(two_point(1.0, 6.0), step_size=0.1).steps
        76
    """
    contract = f"confidence must be above 0 and at most {LARGEST_CONFIDENCE}"
    require(0 < confidence <= LARGEST_CONFIDENCE, contract, confidence)
    require(0 < tolerance < 1, "tolerance must be between 0 and 1", tolerance)
    sampling = Sampling(batch_size, noise_variance, dimension, spectrum, ensemble).check()
    if window is None:
        window = sharp_window(environments, spectrum)
    step_sizes = _candidates(window, step_size) if diagonalised(environments) is not None else []
    return _Search(environments, 1 - confidence, tolerance, sampling).run(step_sizes)


def sufficient_batch_size(
    environments: Environments,
    batch_size: int,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    spectrum: ArrayLike = 1.0,
    dimension: int = 100,
    noise_variance: float = 0.0,
    ensemble: str | Ensemble = "symmetric",
    window: Window | None = None,
) -> int | None:
    """A batch size, `batch_size` times a power of two, for which `advise` finds settings where it finds none for this.

    Args:
        environments: the law of S(e), with strengths that commute.
        batch_size: m, which is too small.
        confidence: wanted probability of success; this and the others as for `advise`.
        tolerance: largest spurious share that counts as washed out.
        spectrum: eigenvalues of A*.
        dimension: d.
        noise_variance: of the label noise.
        ensemble: of the measurements.
        window: the sharp window, if it is known already.

    Returns:
        None if no batch size is large enough, so that sampling error is not the reason.

    Example, the share above the tolerance falls like the square root of the batch size or more slowly:
        >>> from holdfast.sensing.environments import two_point
        >>> sufficient_batch_size(two_point(1.0, 8.0), 500, confidence=0.9, dimension=30) in (2000, 4000, 8000)
        True
    """
    if window is None:
        window = sharp_window(environments, spectrum)
    candidates = _candidates(window, None)[1::3]  # three: which of them is best matters little

    def found(size: float | None) -> bool:
        noise = 0.0 if size is None else noise_variance  # an infinite batch averages it out
        sampling = Sampling(size, noise, dimension, spectrum, ensemble)
        return _Search(environments, 1 - confidence, tolerance, sampling).likely(candidates)

    if diagonalised(environments) is None or not found(None):
        return None
    doublings = range(1, LARGEST_DOUBLING + 1)
    enough = bisect_left(doublings, True, key=lambda doubling: found(batch_size * 2.0**doubling))
    return batch_size * 2 ** doublings[enough] if enough < len(doublings) else None


def _candidates(window: Window, step_size: float | None) -> list[float]:
    """Step sizes to consider."""
    if window.empty:
        return []
    if step_size is not None:
        return [step_size] if window.low < step_size < window.high else []
    # Inside the window: its ends wash out infinitely slowly, or hardly hold the invariant signal.
    low, high = max(window.low, 1e-3 * window.high), window.high
    return [float(low * (high / low) ** position) for position in np.linspace(0.1, 0.9, 9)]


class _Search(NamedTuple):
    """What is wanted of settings, and the search for them."""

    environments: Environments
    allowed: float
    tolerance: float
    sampling: Sampling

    def run(self, step_sizes: list[float]) -> Advice | None:
        """The settings with the fewest steps."""
        best: Advice | None = None
        # Without sampling error the answer is quick, and no batch needs fewer steps: those few come first.
        least = [(self._without_sampling_error(eta), eta) for eta in step_sizes]
        promising = [(self._time(eta, first), eta, first) for first, eta in least if first]
        for _, step_size, first in sorted(promising):
            best = self._fewer_steps(best, step_size, first) or best
        return best

    def likely(self, step_sizes: list[float]) -> bool:
        """Whether few runs favour one of the step sizes, from a smaller start than is needed without a batch."""
        starts = ((self._without_sampling_error(eta), eta) for eta in step_sizes)
        return any(self._likely(eta, min(first + 1, SMALLEST_EXPONENT)) for first, eta in starts if first)

    def _without_sampling_error(self, step_size: float) -> float | None:
        """The first exponent of alpha that is good enough by the law of small shares, without a batch."""

        def failure(exponent: float) -> float:
            steps = self._time(step_size, exponent)
            laws = (
                log_share(self.environments, step_size, steps, _scale(exponent), direction=direction)
                for direction in range(self.environments.rank)
            )
            return max(law.above(self.tolerance) for law in laws)

        choices = self._exponents()
        # Smaller starting points take longer but fail less, so the first that is good enough is found by bisection.
        first = bisect_left(choices, True, key=lambda exponent: failure(exponent) <= self.allowed)
        return choices[first] if first < len(choices) else None

    def _exponents(self) -> list[float]:
        """-log10 alpha: powers of ten and their halves."""
        start = float(np.ceil(-np.log10(self.tolerance / self.sampling.dimension)) / 2)
        return np.arange(start, max(start, SMALLEST_EXPONENT) + 0.5, 0.5).tolist()

    def _fewer_steps(self, best: Advice | None, step_size: float, first: float) -> Advice | None:
        """The largest alpha that keeps the promise, from the first that may, if it takes fewer steps than the best."""
        choices = [
            exponent
            for exponent in self._exponents()
            if first <= exponent <= first + FURTHER and (best is None or self._time(step_size, exponent) < best.steps)
        ]
        # What sampling error and divergence cost does not depend on the start: where the last one fails, all do.
        if not choices or not self._likely(step_size, choices[-1]):
            return None
        enough = bisect_left(choices, True, key=lambda exponent: self._likely(step_size, exponent))
        tried = (self._promise(step_size, exponent) for exponent in choices[enough : enough + TRIED])
        return next((advised for advised in tried if advised), None)

    def _likely(self, step_size: float, exponent: float) -> bool:
        """Whether a small simulation suggests that the large one will confirm it."""
        margin = NORMAL_QUANTILE * math.sqrt(self.allowed * (1 - self.allowed) / MANY_RUNS)
        return self._shares(step_size, exponent, FEW_RUNS).above(self.tolerance).value <= self.allowed - margin

    def _promise(self, step_size: float, exponent: float) -> Advice | None:
        """Settings with what they promise, if that is enough."""
        shares = self._shares(step_size, exponent, MANY_RUNS)
        failure = shares.above(self.tolerance).high
        if failure > self.allowed:
            return None
        return Advice(
            step_size,
            _scale(exponent),
            self._time(step_size, exponent),
            failure,
            float(shares.diverged.mean()),
            shares.median,
            shares.mean,
            float(np.nanmedian(shares.invariant)),
        )

    def _shares(self, step_size: float, exponent: float, runs: int) -> SimulatedShares:
        # Other numbers than those that chose the setting judge it.
        seed = int(runs == MANY_RUNS)
        sampling = self.sampling._asdict()
        steps, scale = self._time(step_size, exponent), _scale(exponent)
        return simulate_shares(self.environments, step_size, steps, scale, runs=runs, seed=seed, **sampling)

    def _time(self, step_size: float, exponent: float) -> int:
        return learning_time(step_size, _scale(exponent), self.sampling.spectrum)


def _scale(exponent: float) -> float:
    return float(10**-exponent)
