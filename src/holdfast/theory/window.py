"""Step sizes at which heterogeneity washes the spurious signal out: the sharp window, and that of the paper."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from holdfast.sensing.environments import Environments, FiniteEnvironments, Law
from holdfast.theory.assumptions import regularity
from holdfast.theory.lyapunov import draw_strengths, exponents, largest_product_exponents
from holdfast.theory.strengths import diagonalised, extremes, strength_atoms

# Step sizes, times the largest strength, among which the ends of the window are bracketed before they are refined.
RELATIVE_RANGE, SCANNED = (1e-6, 1e3), 1800
# Fewer where the exponent has to be sampled.
SAMPLED_RANGE, SCANNED_BY_SAMPLING, SAMPLED_STEPS, SAMPLED_CHAINS = (1e-3, 1e1), 40, 300, 64
BISECTIONS, SAMPLED_BISECTIONS = 50, 10


class Window(NamedTuple):
    """An interval of step sizes.

    Attributes:
        low: lower end.
        high: upper end.
        reason: what sets the ends, or why there is no step size in between.

    Example:
        >>> Window(0.05, 0.15, "").empty, Window(0.15, 0.05, "").empty
        (False, True)
    """

    low: float
    high: float
    reason: str

    @property
    def empty(self) -> bool:
        """Whether no step size lies between the ends."""
        return not self.low < self.high

    @property
    def sentence(self) -> str:
        """The window in words.

        Example:
            >>> Window(0.05, 0.15, "strengths are bounded").sentence.split(":")[0]
            'Step sizes between 0.05 and 0.15 wash the spurious signal out and keep the invariant one'
        """
        if np.isnan(self.low):
            return f"{self.reason[0].upper()}{self.reason[1:]}."
        if self.empty:
            return f"No step size both washes out and is stable: {self.reason}."
        return (
            f"Step sizes between {self.low:.4g} and {self.high:.4g} wash the spurious signal out and keep the "
            f"invariant one: {self.reason}."
        )


class Limits(NamedTuple):
    """The step sizes at which something ends, for strengths xi and invariant eigenvalues sigma.

    Attributes:
        washing_out: (low, high), the first interval of step sizes with a negative exponent in every direction; NaN if
            there is none.
        invariant: 1 / max sigma. The step r <- r (1 + eta (sigma - r^2)) has the slope 1 - 2 eta sigma at r^2 = sigma,
            so above this the invariant signal is not held.
        bounded: up to here no sequence of environments makes the iteration leave a bounded set; infinite for strengths
            without bound, for which no step size is safe and the question is left out. See `bounded_step_size`.
    """

    washing_out: tuple[float, float]
    invariant: float
    bounded: float


def limits(environments: Environments, spectrum: ArrayLike = 1.0) -> Limits:
    """Where the exponent changes sign, the invariant signal loses stability and the iteration its bound.

    Args:
        environments: the law of S(e).
        spectrum: eigenvalues of A*.
    """
    return Limits(_negative_interval(environments), *stability_limits(environments, spectrum))


def stability_limits(environments: Environments, spectrum: ArrayLike = 1.0) -> tuple[float, float]:
    """`invariant` and `bounded` of `Limits`, which need no exponent."""
    low, high = extremes(environments)
    return 1 / float(np.max(spectrum)), bounded_step_size(low, high) if np.isfinite(high - low) else np.inf


def sharp_window(environments: Environments, spectrum: ArrayLike = 1.0) -> Window:
    """The step sizes at which HeteroSGD washes every spurious direction out and holds the invariant signal.

    A small spurious direction dies out exactly when its exponent E log|1 + eta xi| is negative. The upper end is the
    first of three: the exponent turns positive again, the invariant signal loses its stability, or the iteration its
    bound.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> window = sharp_window(two_point(1.0, 6.0))
        >>> round(window.low, 4), round(window.high, 3)
        (0.0571, 0.149)
    """
    return window_within(limits(environments, spectrum), environments)


def window_within(found: Limits, environments: Environments) -> Window:
    """The sharp window that follows from the limits of these environments."""
    low, high = found.washing_out
    if np.isnan(low):
        return Window(np.nan, np.nan, _why_never(environments))
    ends = {
        "the spurious exponent is positive again": high,
        "the invariant signal is not held": found.invariant,
        "some sequence of environments makes the iteration diverge": found.bounded,
    }
    reason, end = min(ends.items(), key=lambda item: item[1])
    if low >= end:
        return Window(low, end, f"the spurious signal only dies out above {low:.4g}, and above {end:.4g} {reason}")
    lower = "below the lower end the spurious signal grows" if low > 0 else "the spurious signal dies at any small step"
    unsafe = "; the strengths have no bound, so runs may diverge at any step size" if np.isinf(found.bounded) else ""
    return Window(low, end, f"{lower}; above the upper end {reason}{unsafe}")


def paper_window(environments: Environments) -> Window:
    """The sufficient window (24 / M2, 1 / (64 M1)) of Theorem 2 of Xu, Gu and Fang (NeurIPS 2024).

    M1 = sup |S_ii(e)|, M2 = min_i Var S_ii(e) / (1 + |E S_ii(e)|). It needs M2 > 1536 M1 and so, since M2 is at most
    M1^2, strengths above 1536.

    Example, here M1 = 4001 and M2 = 4000^2 / 2:
        >>> from holdfast.sensing.environments import two_point
        >>> window = paper_window(two_point(1.0, 4000.0))
        >>> round(window.low * 4000**2, 3), round(window.high * 4001, 6), paper_window(two_point(1.0, 6.0)).empty
        (48.0, 0.015625, True)
    """
    bound, heterogeneity = regularity(environments)
    low = 24 / heterogeneity if heterogeneity > 0 else np.inf
    high = 1 / (64 * bound) if bound > 0 else np.inf
    if low < high:
        reason = "24 / M2 < eta < 1 / (64 M1)"
    elif np.isinf(bound):
        reason = "the strengths have no bound, so M1 is infinite and the upper end 1 / (64 M1) is zero"
    else:
        reason = (
            f"it needs M2 > 1536 M1, and M2 = {heterogeneity:.4g} while 1536 M1 = {1536 * bound:.4g}: strengths would "
            "have to exceed 1536 times the invariant signal"
        )
    return Window(low, high, reason)


def bounded_step_size(least: float, largest: float) -> float:
    """The step size up to which no sequence of strengths in [least, largest] makes the iteration diverge.

    The step q <- q (1 + eta (xi - q^2)) reaches at most q^2 = (4/27) (1 + eta xi)^3 / eta, and its size grows from
    q^2 > xi + 2 / eta on. What the largest strength can reach stays below what the least one throws out while

        (4/27) (1 + eta xi_max)^3 <= 2 + eta xi_min

    Above, a finite sequence of environments that has positive probability makes a q of order one diverge.

    Example:
        >>> round(bounded_step_size(1.0, 1.0), 6)  # one strength: 2 / xi
        2.0
    """
    if largest <= 0 and least >= 0:
        return np.inf

    def margin(eta: float) -> float:
        return 2 + eta * least - 4 / 27 * max(1 + eta * largest, 0) ** 3

    # At 4 / |xi| for the larger of the two the margin is negative.
    return _bisect(lambda eta: margin(eta) < 0, 0.0, 4 / max(abs(least), abs(largest)))


def threshold_heterogeneity(law: Law, bias: float, step_size: float) -> float:
    """The least heterogeneity M at which `law(bias, M)` is washed out at a step size; NaN if there is none.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> round(threshold_heterogeneity(two_point, 1.0, 0.05), 2)
        6.4
    """

    def washed_out(heterogeneity: float) -> bool:
        return bool(exponents(law(bias, heterogeneity), step_size).max() < 0)

    if washed_out(0.0):
        return 0.0
    # To second order the threshold is where M^2 eta = 2 s, and it is never below the bias by much.
    scanned = np.geomspace(1e-2, 1e2, SCANNED // 4) * (abs(bias) + np.sqrt(2 * abs(bias) / step_size))
    first = next((index for index, heterogeneity in enumerate(scanned) if washed_out(heterogeneity)), None)
    if first is None:
        return np.nan
    return _bisect(washed_out, scanned[first - 1] if first else 0.0, scanned[first])


def _why_never(environments: Environments) -> str:
    """The reason why no step size washes the spurious signal out."""
    least, largest = extremes(environments)
    identical = isinstance(environments, FiniteEnvironments) and not np.ptp(np.asarray(environments.strengths), 0).any()
    if identical or least == largest:
        return (
            "there is only one environment, or all are identical: a signal that never changes looks like an "
            "invariant one, and nothing can be washed out"
        )
    if least >= 0:
        return (
            f"the strengths never change sign (from {least:.4g} to {largest:.4g}): every factor 1 + eta xi is at least "
            "one, so the spurious signal grows at every step size and nothing can be washed out"
        )
    return (
        "no step size makes the exponent negative in every direction: at each, some direction grows on average, "
        "because for a law of this shape its strengths vary too little around their mean"
    )


def _negative_interval(environments: Environments) -> tuple[float, float]:
    """The first interval of step sizes on which the largest exponent is negative; NaN if there is none."""
    diagonal = diagonalised(environments)
    if diagonal is None:
        strengths = draw_strengths(environments, steps=SAMPLED_STEPS, chains=SAMPLED_CHAINS)
        scanned = np.geomspace(*SAMPLED_RANGE, SCANNED_BY_SAMPLING) / np.abs(np.linalg.eigvalsh(strengths)).max()
        bisections = SAMPLED_BISECTIONS
        largest: Callable[[np.ndarray], np.ndarray] = partial(largest_product_exponents, strengths)
    else:
        atoms = np.concatenate([strength_atoms(diagonal, i)[0] for i in range(diagonal.rank)])
        if not atoms.any():  # no strength at all: the signal neither grows nor shrinks
            return np.nan, np.nan
        scanned = np.geomspace(*RELATIVE_RANGE, SCANNED) / np.abs(atoms).max()
        bisections = BISECTIONS
        # The exponent of finitely many strengths has a narrow pit at -1 / xi, which a scan may step over.
        pits = -1 / atoms[atoms < 0] if len(atoms) < SCANNED else np.array([])
        scanned = np.sort(np.append(scanned, pits[(pits > scanned[0]) & (pits < scanned[-1])]))
        largest = lambda step_sizes: exponents(diagonal, step_sizes).max(-1)  # noqa: E731
    negative = largest(scanned) < 0
    if not negative.any():
        return np.nan, np.nan

    def is_negative(step_size: float) -> bool:
        return bool(largest(np.array([step_size]))[0] < 0)

    first = int(np.argmax(negative))
    low = 0.0 if first == 0 else _bisect(is_negative, scanned[first - 1], scanned[first], bisections)
    after = first + int(np.argmax(~negative[first:]))
    if negative[after]:
        return low, np.inf
    return low, _bisect(lambda eta: not is_negative(eta), scanned[after - 1], scanned[after], bisections)


def _bisect(holds: Callable[[float], bool], low: float, high: float, bisections: int = BISECTIONS) -> float:
    """Where a condition that fails at `low` and holds at `high` begins to hold."""
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)
