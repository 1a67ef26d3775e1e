"""What the theorems of Xu, Gu and Fang (NeurIPS 2024) ask of settings, and which of it an experiment misses."""

from collections.abc import Iterable

import numpy as np

from holdfast.core.statistics import Estimate
from holdfast.sensing.environments import two_point
from holdfast.sensing.settings import LAWS, Settings
from holdfast.theory.assumptions import regularity
from holdfast.theory.window import paper_window
from holdfast_studies.claims import Conditions

# Theorem 2 starts with alpha in (d^-4, d^-2), Theorem 8 in (d^-4, d^-3).
INIT_POWERS = {2: (-4, -2), 8: (-4, -3)}
# The numbers that decide on the conditions: a claim is about one value of each.
DECIDING = ("bias", "heterogeneity", "step_size", "init_scale")


def theorem_conditions(settings: Settings, *, theorem: int = 2, chosen: tuple[str, ...] = ()) -> Conditions:
    """The conditions on ranks, step size and starting point that settings miss, and what was left to us.

    Theorem 2, and with it theorems 1 and 3 to 6: C log(d)^4 <= min(r1, r2) (Assumption 1), eta in (24 / M2,
    1 / (64 M1)), alpha in (d^-4, d^-2). Theorem 8 in addition: eta < 1 / r^2 with r = r1 + r2, alpha < d^-3. C is not
    printed but large: what is missed with C = 1 is missed with any. Other conditions with constants that the paper does
    not print (assumptions 2 and 3) are left to `check_assumptions`.

    Args:
        settings: with one value for each number that decides.
        theorem: 2 or 8.
        chosen: values that the source leaves open.

    Example, at the settings of figure 3 the window is empty:
        >>> for line in theorem_conditions(Settings(heterogeneity=6.0)).missed:
        ...     print(line)
        min(r1, r2) = 1 is below log(d)^4 = 450, and so below C log(d)^4 for the large C of assumption 1
        eta = 0.05 is not between 24/M2 = 1.33 and 1/(64 M1) = 0.00223
        alpha = 0.001 is not between d^-4 = 1e-08 and d^-2 = 0.0001
    """
    numbers = {}
    for name in DECIDING:
        values = settings.values(name)
        if len(values) != 1:
            raise ValueError(f"settings must have one {name}, got {len(values)}: choose one with dataclasses.replace")
        numbers[name] = float(values[0])
    # All directions have one bias and one heterogeneity, so that the window is that of a single one.
    window = paper_window(LAWS[settings.environments].load()(numbers["bias"], numbers["heterogeneity"]))
    step_size, init_scale, dimension = numbers["step_size"], numbers["init_scale"], float(settings.dimension)
    r1, r2 = settings.invariant_rank, settings.spurious_rank
    missed = []
    least = np.log(dimension) ** 4
    if min(r1, r2) < least:
        missed.append(
            f"min(r1, r2) = {min(r1, r2)} is below log(d)^4 = {least:.0f}, and so below C log(d)^4 for the large C of "
            "assumption 1"
        )
    highest = window.high if theorem != 8 else min(window.high, (r1 + r2) ** -2)
    if not window.low < step_size < highest:
        bound = "1/(64 M1)" if highest == window.high else "1/r^2"
        missed.append(f"eta = {step_size:g} is not between 24/M2 = {window.low:.3g} and {bound} = {highest:.3g}")
    low, high = INIT_POWERS[theorem]
    if not dimension**low < init_scale < dimension**high:
        missed.append(
            f"alpha = {init_scale:g} is not between d^{low} = {dimension**low:.3g} and d^{high} = {dimension**high:.3g}"
        )
    return Conditions(tuple(missed), chosen)


def delta_star(dimension: float, batch_size: float, r1: int, r2: int, heterogeneity: float) -> tuple[float, float]:
    """M1, and delta* = (M2 log d)^1.5 delta r2^2 sqrt(r1 + r2), with c_v = 1, delta = sqrt(d / m), strengths 1 -+ M."""
    largest, variation = regularity(two_point(1.0, heterogeneity, rank=r2))
    scale = (variation * np.log(dimension)) ** 1.5 * np.sqrt(dimension / batch_size) * r2**2 * np.sqrt(r1 + r2)
    return largest, float(scale)


def least_isometry_constant(random: np.random.Generator, count: int, *, batch_size: int, dimension: int) -> np.ndarray:
    """(count,): what delta of so many sets of Gaussian measurements is at least.

    <X, e_i e_j^T>^2 over m measurements is a chi-square for each i, j, and delta is at least their largest deviation.
    """
    squares = np.array([random.chisquare(batch_size, dimension**2) for _ in range(count)]) / batch_size
    return np.abs(squares - 1).max(1)


def spread_of_constants(needed: Iterable[Estimate]) -> Estimate:
    """The largest constant that settings need over the least, with an interval from the ends of theirs.

    A bound with a constant that is not printed cannot fail at one setting; that one constant serves all of them can.

    Example:
        >>> spread_of_constants([Estimate(1.0, 0.5, 2.0), Estimate(6.0, 4.0, 8.0)])
        Estimate(value=6.0, low=2.0, high=16.0)
    """
    ordered = sorted(needed, key=lambda each: each.value)
    least, largest = ordered[0], ordered[-1]
    return Estimate(largest.value / least.value, largest.low / least.high, largest.high / least.low)
