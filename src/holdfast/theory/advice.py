"""Settings that wash the spurious signal out and learn the invariant one, with a wanted probability, and an order."""

import math
from bisect import bisect_left
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from holdfast.core.order import cycle
from holdfast.core.statistics import NORMAL_QUANTILE, Estimate
from holdfast.core.validation import require
from holdfast.sensing.environments import Environments, FiniteEnvironments
from holdfast.theory.finite_time import LARGEST_LOGARITHM, check_numbers, learning_time, log_share, saturated
from holdfast.theory.lyapunov import exponents, growth_in_words, stationary_shares
from holdfast.theory.order import order_effect, order_exponents
from holdfast.theory.sampling import Sampling, SamplingOptions
from holdfast.theory.shares import SimulatedShares, simulate_shares
from holdfast.theory.strengths import diagonalised
from holdfast.theory.window import Window, sharp_window

# The smallest alpha that is considered is 10^-16: its square still fits into float32.
SMALLEST_EXPONENT = 16.0
# Runs that choose settings, or say what one run in ten exceeds, and runs that a promise is computed from; the latter
# know a probability of 0.001.
FEW_RUNS, MANY_RUNS = 2000, 10_000
# Starting points from the first that is small enough without sampling error: three decades of alpha in halves. Smaller
# ones cost steps, and soon gain nothing more.
FURTHER = 7
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


def advise(
    environments: Environments,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    step_size: float | None = None,
    window: Window | None = None,
    **sampling: Unpack[SamplingOptions],
) -> Advice | None:
    """The settings with the fewest steps that leave a spurious share below the tolerance, with this confidence.

    For each step size of the sharp window, alpha is lowered until the spurious share, at the time T at which the
    invariant signal is learned, exceeds the tolerance, or the run diverges, with a probability of at most
    1 - confidence: by the law of `simulate_shares`, with sampling error if a batch size is given.

    Args:
        environments: the law of S(e), with strengths that commute.
        confidence: wanted probability of success, at most 0.999.
        tolerance: largest spurious share that counts as washed out.
        step_size: eta, if it is given; otherwise it is chosen.
        window: the sharp window, if it is known already.
        sampling: the arguments of `Sampling`. Directions of neither signal keep what they start with, d alpha^2 in all,
            so that stays below the tolerance as well.

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
    measured = Sampling(**sampling)
    if window is None:
        window = sharp_window(environments, measured.spectrum)
    step_sizes = _candidates(window, step_size) if diagonalised(environments) is not None else []
    return _Search(environments, 1 - confidence, tolerance, measured).run(step_sizes)


def sufficient_batch_size(
    environments: Environments,
    batch_size: int,
    *,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    window: Window | None = None,
    **sampling: Any,
) -> int | None:
    """A batch size, `batch_size` times a power of two, for which `advise` finds settings where it finds none for this.

    Args:
        environments: the law of S(e), with strengths that commute.
        batch_size: m, which is too small.
        confidence: wanted probability of success; this and the others as for `advise`.
        tolerance: largest spurious share that counts as washed out.
        window: the sharp window, if it is known already.
        sampling: the other arguments of `Sampling`.

    Returns:
        None if no batch size is large enough, so that sampling error is not the reason.

    Example, the share above the tolerance falls like the square root of the batch size or more slowly:
        >>> from holdfast.sensing.environments import two_point
        >>> sufficient_batch_size(two_point(1.0, 8.0), 500, confidence=0.9, dimension=30) in (2000, 4000, 8000)
        True
    """
    measured = Sampling(batch_size, **sampling)
    if window is None:
        window = sharp_window(environments, measured.spectrum)
    candidates = _candidates(window, None)[1::3]  # three: which of them is best matters little

    def found(**changed: Any) -> bool:
        search = _Search(environments, 1 - confidence, tolerance, replace(measured, **changed))
        return search.likely(candidates)

    if diagonalised(environments) is None or not found(batch_size=None, noise_variance=0.0):
        return None
    doublings = range(1, LARGEST_DOUBLING + 1)
    enough = bisect_left(doublings, True, key=lambda doubling: found(batch_size=batch_size * 2.0**doubling))
    return batch_size * 2 ** doublings[enough] if enough < len(doublings) else None


def search_settings(
    environments: Environments,
    window: Window,
    *,
    confidence: float,
    tolerance: float,
    **sampling: Unpack[SamplingOptions],
) -> tuple[Advice | None, list[str]]:
    """The settings that `advise` finds, and what they promise in words, or why there are none.

    Args:
        environments: the law of S(e).
        window: its sharp window.
        confidence: wanted probability that the spurious share ends below the tolerance.
        tolerance: largest spurious share that counts as washed out.
        sampling: the arguments of `Sampling`.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> law = two_point(1.0, 6.0)
        >>> search_settings(law, sharp_window(law), confidence=0.95, tolerance=0.01)[1][0].split(":")[0]
        'Advised'
    """
    if window.empty:
        return None, []
    batch_size = sampling.get("batch_size")
    wanted: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance, "window": window, **sampling}
    advised = advise(environments, **wanted)
    if advised is None:
        none = f"No settings can be advised for a confidence of {confidence:g}"
        if diagonalised(environments) is None:
            return None, [f"{none}: their strengths do not commute."]
        enough = None if batch_size is None else sufficient_batch_size(environments, **wanted)
        if enough is None:
            return None, [f"{none}: no starting point is small enough."]
        return None, [
            f"{none}: the sampling error of batches of {batch_size} brings too much of the spurious signal back, and "
            f"batches of {enough} would suffice."
        ]
    lost = f", {100 * advised.diverged:.2g} % of the runs diverge" if advised.diverged else ""
    return advised, [
        f"Advised: step size {advised.step_size:.3g}, init scale {advised.init_scale:.2g}, {advised.steps} steps.",
        f"{Sampling(**sampling).words.capitalize()} the spurious share then ends below {tolerance:g} with a "
        f"probability of at least {1 - advised.failure:.3f}: its median is {advised.median:.2g}, its mean "
        f"{advised.mean:.2g}{lost}.",
    ]


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
        small = [(step_size, self._small_enough(step_size)) for step_size in step_sizes]
        promising = [(self._time(step_size, scales[0]), step_size, scales) for step_size, scales in small if scales]
        for _, step_size, scales in sorted(promising):
            best = self._fewer_steps(best, step_size, scales[:FURTHER]) or best
        return best

    def likely(self, step_sizes: list[float]) -> bool:
        """Whether few runs favour one of the step sizes, from a smaller start than is needed without a batch."""
        small = ((step_size, self._small_enough(step_size)) for step_size in step_sizes)
        return any(self._likely(step_size, scales[:3][-1]) for step_size, scales in small if scales)

    def _small_enough(self, step_size: float) -> list[float]:
        """The starting points that are good enough by the law of small shares, without a batch, largest first."""
        # -log10 alpha: powers of ten and their halves.
        start = float(np.ceil(-np.log10(self.tolerance / self.sampling.dimension)) / 2)
        exponents = np.arange(start, max(start, SMALLEST_EXPONENT) + 0.5, 0.5).tolist()
        scales = [float(10**-exponent) for exponent in exponents]

        def is_enough(scale: float) -> bool:
            given, directions = (step_size, self._time(step_size, scale), scale), range(self.environments.rank)
            laws = (log_share(self.environments, *given, direction=direction) for direction in directions)
            return max(law.above(self.tolerance) for law in laws) <= self.allowed

        # Smaller starting points take longer but fail less, so the first that is good enough is found by bisection.
        return scales[bisect_left(scales, True, key=is_enough) :]

    def _fewer_steps(self, best: Advice | None, step_size: float, scales: list[float]) -> Advice | None:
        """The largest of these starting points that keeps the promise, if it takes fewer steps than the best."""
        choices = [scale for scale in scales if best is None or self._time(step_size, scale) < best.steps]
        # What sampling error and divergence cost does not depend on the start: where the last one fails, all do.
        if not choices or not self._likely(step_size, choices[-1]):
            return None
        enough = bisect_left(choices, True, key=lambda scale: self._likely(step_size, scale))
        tried = (self._promise(step_size, scale) for scale in choices[enough : enough + TRIED])
        return next((advised for advised in tried if advised), None)

    def _likely(self, step_size: float, scale: float) -> bool:
        """Whether a small simulation suggests that the large one will confirm it."""
        margin = NORMAL_QUANTILE * math.sqrt(self.allowed * (1 - self.allowed) / MANY_RUNS)
        return self._shares(step_size, scale, FEW_RUNS).above(self.tolerance).value <= self.allowed - margin

    def _promise(self, step_size: float, scale: float) -> Advice | None:
        """Settings with what they promise, if that is enough."""
        # Other numbers than those that chose the setting judge it.
        shares = self._shares(step_size, scale, MANY_RUNS, seed=1)
        failure, lost = shares.above(self.tolerance).high, float(shares.diverged.mean())
        if failure > self.allowed:
            return None
        invariant = float(np.nanmedian(shares.invariant))
        steps = self._time(step_size, scale)
        return Advice(step_size, scale, steps, failure, lost, shares.median, shares.mean, invariant)

    def _shares(self, step_size: float, scale: float, runs: int, seed: int = 0) -> SimulatedShares:
        given, measured = (step_size, self._time(step_size, scale), scale), vars(self.sampling)
        return simulate_shares(self.environments, *given, runs=runs, seed=seed, **measured)

    def _time(self, step_size: float, scale: float) -> int:
        return learning_time(step_size, scale, self.sampling.spectrum)


def advise_order(
    environments: Environments,
    *,
    step_size: float,
    steps: int,
    init_scale: float,
    **sampling: Unpack[SamplingOptions],
) -> str:
    """Which order to take, in a sentence or two: with a negative exponent, or with the number of steps.

    What is said of the share is without sampling error, and, if a batch size is given, also with it: in cycles sampling
    error is most of what remains.

    Args:
        environments: the law of S(e).
        step_size: eta.
        steps: T.
        init_scale: alpha.
        sampling: the arguments of `Sampling`.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> given = {"step_size": 0.05, "steps": 200, "init_scale": 1e-3}
        >>> print(advise_order(two_point(1.0, 7.0), **given))
        Visit the environments in cycles, in a fresh random order in each cycle of 2 steps (order reshuffled): at step \
size 0.05 the spurious signal still shrinks by 1 % a step, and without sampling error its share after 200 steps is \
1.8e-08 in every run, where independent draws let one run in ten exceed 4.6e-03.
        >>> print(advise_order(two_point(1.0, 7.0), batch_size=8000, **given).split(". ")[-1])
        With batches of 8000 one run in ten exceeds 1.9e-04 reshuffled and 9.6e-03 drawn independently.
    """
    check_numbers(step_size, steps, init_scale)
    batch_size = Sampling(**sampling).batch_size
    if not isinstance(environments, FiniteEnvironments):
        return (
            "The environments are a continuum: to visit them in cycles, which keeps the spurious signal from straying, "
            "fix a panel of them."
        )
    length = len(cycle(environments.probabilities))
    advice = f"Visit the environments in cycles, in a fresh random order in each cycle of {length} steps"
    if diagonalised(environments) is None:
        return _about_exponents(environments, step_size, advice)
    given, directions = (step_size, steps, init_scale), range(environments.rank)
    rate = float(exponents(environments, step_size).max())
    limit = float(stationary_shares(environments, step_size).max())
    laws = [order_effect(environments, *given, direction=i) for i in directions]
    tenth = max(float(log_share(environments, *given, direction=i).quantile(0.9)) for i in directions)
    lowest, highest, exceeded = (
        float(saturated(math.exp(min(end, LARGEST_LOGARITHM)), limit))
        for end in (min(law.low for law in laws), max(law.high for law in laws), tenth)
    )
    if highest > exceeded / 2:
        return (
            f"The order of the environments makes no difference here: at step size {step_size:.3g} the spurious signal "
            f"{growth_in_words(rate)} in any order."
        )
    share = f"{highest:.1e} in every run" if lowest == highest else f"at most {highest:.1e}"
    in_time = "" if rate < 0 else " It grows, so the number of steps is part of this advice."
    noise = ""
    if batch_size is not None:
        seen = [
            float(simulate_shares(environments, *given, order=order, runs=FEW_RUNS, **sampling).quantile(0.9))
            for order in ("reshuffled", "independent")
        ]
        noise = (
            f" With batches of {batch_size:g} one run in ten exceeds {seen[0]:.1e} reshuffled and {seen[1]:.1e} drawn "
            "independently."
        )
    return (
        f"{advice} (order reshuffled): at step size {step_size:.3g} the spurious signal still {growth_in_words(rate)}, "
        f"and without sampling error its share after {steps} steps is {share}, where independent draws let one run in "
        f"ten exceed {exceeded:.1e}.{noise}{in_time}"
    )


def _about_exponents(environments: FiniteEnvironments, step_size: float, advice: str) -> str:
    """Where strengths do not commute, the order changes the exponent, which is estimated."""
    shuffled, drawn = (
        order_exponents(environments, step_size, order=order)[0] for order in ("reshuffled", "independent")
    )
    rates = (
        f"at step size {step_size:.3g} it is {_with_error(shuffled)} reshuffled and {_with_error(drawn)} drawn "
        "independently (95 % intervals)"
    )
    if shuffled.high >= drawn.low:
        return f"The strengths do not commute, and an order is not seen to lower the exponent: {rates}."
    return f"{advice} (order reshuffled): the strengths do not commute, and the order lowers the exponent: {rates}."


def _with_error(found: Estimate) -> str:
    return f"{found.value:.3f} ± {found.high - found.value:.1g}"
