"""Will heterogeneity wash the spurious signal out, at which step size, in how many steps? The answer in one object.

`Region` is the short answer: both signals, the invariant one only, nothing, or an unstable iteration.
"""

import math
from enum import IntEnum
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.statistics import Estimate
from holdfast.core.validation import COUNT, NUMBER
from holdfast.sensing.environments import Environments
from holdfast.theory.advice import Advice, advise_order, search_settings
from holdfast.theory.finite_time import LogShare, check_numbers, learning_time, log_share, median_share
from holdfast.theory.lyapunov import exponents, growth_in_words, stationary_shares, top_exponent
from holdfast.theory.sampling import Sampling, SamplingOptions
from holdfast.theory.shares import simulate_shares
from holdfast.theory.strengths import diagonalised, extremes, strength_atoms
from holdfast.theory.tails import stationary_law
from holdfast.theory.window import Limits, Window, limits, paper_window, stability_limits, window_within

# Runs from which mean and median after T steps are computed.
RUNS = 4000


class Diagnosis(NamedTuple):
    """The answer of the theory for environments and settings.

    Attributes:
        step_size: eta, for which the next four are.
        exponents: of each spurious direction; only the largest where strengths do not commute.
        top_exponent: the largest, with an interval where it is estimated.
        stationary: mean shares that survive in the long run; None where strengths do not commute.
        median: predicted median over runs of the largest spurious share after the steps, with sampling error if a batch
            size is given; None where strengths do not commute or the step size is beyond stability.
        mean: its mean over the runs that do not diverge, which a few runs with large shares dominate.
        log_share: the law of the logarithm of that share while it is small; None where strengths do not commute.
        limits: what ends where.
        window: the sharp window.
        paper: the window of the paper.
        advised: settings for the wanted confidence; None if no settings reach it.
        sentences: the same in words.

    Example, strengths that never change sign:
        >>> from holdfast.sensing.environments import two_point
        >>> found = diagnose(two_point(1.0, 0.5))
        >>> found.window.empty, found.advised is None, round(found.top_exponent.value, 4)
        (True, True, 0.0485)
    """

    step_size: float
    exponents: np.ndarray
    top_exponent: Estimate
    stationary: np.ndarray | None
    median: float | None
    mean: float | None
    log_share: LogShare | None
    limits: Limits
    window: Window
    paper: Window
    advised: Advice | None
    sentences: tuple[str, ...]

    def asdict(self) -> dict[str, Any]:
        """As plain values for JSON; null where a value does not exist."""
        return {
            "step_size": self.step_size,
            "lyapunov": plain(self.top_exponent.value),
            "lyapunov_interval": plain(self.top_exponent[1:]),
            "exponents": plain(self.exponents),
            "sharp_window": None if self.window.empty else plain(self.window[:2]),
            "sharp_window_reason": self.window.reason,
            "limits": {name: plain(value) for name, value in self.limits._asdict().items()},
            "paper_window": plain(self.paper[:2]),
            "paper_window_empty": self.paper.empty,
            "paper_window_reason": self.paper.reason,
            "mean_stationary_share": plain(self.stationary),
            "median_spurious_at_T": plain(self.median),
            "mean_spurious_at_T": plain(self.mean),
            "log_spurious_at_T": None if self.log_share is None else self.log_share.asdict(),
            "advised": None if self.advised is None else self.advised._asdict(),
            "advice": " ".join(self.sentences),
        }


def plain(value: Any) -> Any:
    """Numbers and nested numbers as JSON knows them; null for what is not finite."""
    if value is None or isinstance(value, str):
        return value
    if np.ndim(value) > 0:
        return [plain(item) for item in value]
    return float(value) if math.isfinite(value) else None


def diagnose(
    environments: Environments,
    *,
    step_size: float = 0.05,
    steps: int = 200,
    init_scale: float = 1e-3,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    **sampling: Unpack[SamplingOptions],
) -> Diagnosis:
    """Exponents, windows, the share to expect, and advice.

    Args:
        environments: the law of S(e), with at least one spurious direction.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        confidence: wanted probability that the spurious share ends below the tolerance.
        tolerance: largest spurious share that counts as washed out.
        sampling: the arguments of `Sampling`; a batch size is a whole number.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> print(diagnose(two_point(1.0, 0.5)).sentences[0])
        The strengths never change sign (from 0.5 to 1.5): every factor 1 + eta xi is at least one, so the spurious \
signal grows at every step size and nothing can be washed out.
    """
    check_numbers(step_size, steps, init_scale)
    NUMBER.check("confidence", confidence)
    NUMBER.check("tolerance", tolerance)
    batch_size = sampling.get("batch_size")
    COUNT.check("batch_size", 1 if batch_size is None else batch_size)
    measured = Sampling(**sampling)
    found, top = limits(environments, measured.spectrum), top_exponent(environments, step_size)
    window, paper = window_within(found, environments), paper_window(environments)
    stable = step_size < min(found.invariant, found.bounded)
    given: dict[str, Any] = {"step_size": step_size, "steps": steps, "init_scale": init_scale}
    each, stationary, law, median, mean = np.array([top.value]), None, None, None, None
    if diagonalised(environments) is not None:
        each, stationary = exponents(environments, step_size), stationary_shares(environments, step_size)
        law = log_share(environments, **given, direction=int(np.argmax(each)))
        if stable:
            shares = simulate_shares(environments, **given, runs=RUNS, **sampling)
            median = median_share(environments, **given) if batch_size is None else shares.median
            mean = shares.mean
    advised, advice = search_settings(environments, window, confidence=confidence, tolerance=tolerance, **sampling)
    # The order is advised for the settings that are, or if there are none, for those that are given.
    ordered = given if advised is None else {name: getattr(advised, name) for name in given}
    sentences = [window.sentence, about_step_size(environments, step_size, found, top, stationary)]
    if median is not None and mean is not None:
        few = ", because a few keep much more" if mean > 2 * median else ""
        sentences.append(
            f"After {steps} steps from an init scale of {init_scale:g}, and {measured.words}, half of the runs have a "
            f"spurious share below {median:.2g} (the median); its mean over runs is {mean:.2g}{few}."
        )
    sentences += advice
    if advised or stable:
        sentences.append(advise_order(environments, **ordered, **sampling))
    sentences.append(f"The paper's sufficient window is {'empty' if paper.empty else 'not empty'}: {paper.reason}.")
    return Diagnosis(
        step_size, each, top, stationary, median, mean, law, found, window, paper, advised, tuple(sentences)
    )


def about_step_size(
    environments: Environments,
    step_size: float,
    found: Limits,
    top: Estimate,
    stationary: np.ndarray | None = None,
) -> str:
    """What a step size does to a small spurious signal.

    Args:
        environments: the law of S(e).
        step_size: eta.
        found: the limits of these environments.
        top: the largest exponent at this step size.
        stationary: mean shares in the long run; None: nothing is said about the long run.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> law = two_point(1.0, 6.0)
        >>> about_step_size(law, 0.1, limits(law), top_exponent(law, 0.1))
        'At step size 0.1 the spurious signal shrinks by 7.8 % a step and dies out.'
    """
    limit = min(found.invariant, found.bounded)
    if step_size >= limit:
        return (
            f"Step size {step_size:g} is above {limit:.4g}, where the iteration loses its stability: runs may diverge, "
            "and no share is predicted."
        )
    if top.low <= 0 <= top.high:
        return f"At step size {step_size:g} the exponent is too close to zero to tell its sign."
    end = " and dies out"
    if top.value > 0:
        end = "" if stationary is None else _long_run(environments, step_size, stationary)
    return f"At step size {step_size:g} the spurious signal {growth_in_words(top.value)}{end}."


def _long_run(environments: Environments, step_size: float, stationary: np.ndarray) -> str:
    if np.isnan(stationary).any():  # no share of this direction restores the balance
        return ""
    direction = int(np.argmax(stationary))
    strengths, _ = strength_atoms(environments, direction)
    if not np.ptp(strengths):
        return f", in the long run to a share of {stationary[direction]:.2g}"
    law = stationary_law(environments, step_size, direction=direction)
    return f"; in the long run and without sampling error its share has {law.averages}"


# A spurious signal is washed out below this share; an invariant one is learned above one half.
WASHED_OUT, LEARNED = 0.05, 0.5
# Strengths without bound make every run diverge in the end, if only after e^100 steps. What counts as the long run for
# them, and the number of runs that tell which half of them diverges.
LONG_RUN, FEW_RUNS = 2000, 100


class Region(IntEnum):
    """The four ways a setting can end, by the medians over seeds."""

    NOTHING = 0
    INVARIANT_ONLY = 1
    BOTH = 2
    UNSTABLE = 3

    @property
    def label(self) -> str:
        """The text in the legend of a figure."""
        return ("invariant not learned", "invariant only", "learns both", "unstable")[self]


def classify(invariant: ArrayLike, spurious: ArrayLike, diverged: ArrayLike) -> np.ndarray:
    """Regions by what was measured.

    Args:
        invariant: median share of the invariant signal over the runs that did not diverge.
        spurious: median share of the spurious signal over them.
        diverged: share of runs that diverged; more than half is unstable.

    Example:
        >>> [Region(region).label for region in classify([1, 1, 0], [0.3, 0.01, 0], [0, 0, 0])]
        ['learns both', 'invariant only', 'invariant not learned']
    """
    region = np.where(np.asarray(spurious) > WASHED_OUT, Region.BOTH, Region.INVARIANT_ONLY)
    region = np.where(np.asarray(invariant) < LEARNED, Region.NOTHING, region)
    return np.where(np.asarray(diverged) > 0.5, Region.UNSTABLE, region)


def predicted_region(
    environments: Environments, step_size: float, steps: float = np.inf, init_scale: float = 1e-3
) -> Region:
    """The region that the theory expects, for T steps or in the limit of infinitely many.

    Unstable means that the invariant signal is not held, or that some sequence of environments makes the iteration
    diverge; in finite time most runs may still be spared. Strengths without bound always have such a sequence, so for
    them it means that more than half of the runs diverge, within T steps or, for infinitely many, within `LONG_RUN`.

    Example, normal strengths that a step multiplies by more than they can hold:
        >>> from holdfast.sensing.environments import gaussian
        >>> [predicted_region(gaussian(1.0, 6.0), step_size).label for step_size in (0.1, 0.4)]
        ['invariant only', 'unstable']
    """
    invariant, bounded = stability_limits(environments)
    if step_size >= min(invariant, bounded):
        return Region.UNSTABLE
    if not np.isfinite(np.ptp(extremes(environments))):
        horizon = LONG_RUN if np.isinf(steps) else int(steps)
        if simulate_shares(environments, step_size, horizon, init_scale, runs=FEW_RUNS).diverged.mean() > 0.5:
            return Region.UNSTABLE
    if np.isinf(steps):
        return Region.BOTH if exponents(environments, step_size).max() > 0 else Region.INVARIANT_ONLY
    if steps < learning_time(step_size, init_scale, level=LEARNED):
        return Region.NOTHING
    share = median_share(environments, step_size, int(steps), init_scale)
    return Region.BOTH if share > WASHED_OUT else Region.INVARIANT_ONLY
