"""What the theorems of Xu, Gu and Fang (NeurIPS 2024) ask of settings, and which of it an experiment misses."""

from collections.abc import Iterable

import numpy as np

from holdfast.core.statistics import Estimate
from holdfast.sensing.environments import Environments
from holdfast.sensing.names import LAWS
from holdfast.sensing.settings import Settings
from holdfast.theory.window import paper_window
from holdfast_studies.claims import Conditions

# Theorem 2 starts with alpha in (d^-4, d^-2), Theorem 8 in (d^-4, d^-3).
INIT_POWERS = {2: (-4, -2), 8: (-4, -3)}
# The numbers that decide on the conditions: a claim is about one value of each.
DECIDING = ("bias", "heterogeneity", "off_diagonal", "step_size", "init_scale")


def theorem_conditions(settings: Settings, *, theorem: int = 2, chosen: tuple[str, ...] = ()) -> Conditions:
    """The conditions of Theorem 2 (also of theorems 1 and 3 to 6) or 8 that settings miss, and what was left to us.

    Args:
        settings: with one value for each number that decides.
        theorem: 2 or 8.
        chosen: values that the source leaves open.

    Example:
        >>> conditions = theorem_conditions(Settings(dimension=10, step_size=7e-6, bias=0.0, heterogeneity=2000.0))
        >>> conditions.missed
        ('min(r1, r2) = 1 is below log(d)^4 = 28, and so below C log(d)^4 for the large C of assumption 1',)
    """
    numbers = {}
    for name in DECIDING:
        values = settings.values(name)
        if len(values) != 1:
            raise ValueError(f"settings must have one {name}, got {len(values)}: choose one with dataclasses.replace")
        numbers[name] = float(values[0])
    law = LAWS[settings.environments].load()
    environments = law(
        numbers["bias"],
        numbers["heterogeneity"],
        rank=settings.spurious_rank,
        off_diagonal=numbers["off_diagonal"],
        shared=not settings.independent,
    )
    missed = missed_conditions(
        environments,
        dimension=settings.dimension,
        step_size=numbers["step_size"],
        init_scale=numbers["init_scale"],
        theorem=theorem,
        invariant_rank=settings.invariant_rank,
    )
    return Conditions(missed, chosen)


def missed_conditions(
    environments: Environments,
    *,
    dimension: int,
    step_size: float,
    init_scale: float,
    theorem: int = 2,
    invariant_rank: int = 1,
    spurious_rank: int | None = None,
) -> tuple[str, ...]:
    """The conditions on ranks, step size and starting point that the settings miss, in words.

    Theorem 2, and with it theorems 1 and 3 to 6: C log(d)^4 <= min(r1, r2) (Assumption 1), eta in (24 / M2,
    1 / (64 M1)), alpha in (d^-4, d^-2). Theorem 8 in addition: eta < 1 / r^2 with r = r1 + r2, alpha < d^-3. C is not
    printed but large: what is missed with C = 1 is missed with any. Other conditions with constants that the paper does
    not print (assumptions 2 and 3) are left to `check_assumptions`.

    Args:
        environments: the law of S(e).
        dimension: d.
        step_size: eta.
        init_scale: alpha.
        theorem: 2 or 8.
        invariant_rank: r1.
        spurious_rank: r2, if the law is that of one of many equal directions; else the rank of the law.

    Example, at the settings of figure 3 the window is empty:
        >>> from holdfast.sensing.environments import two_point
        >>> for line in missed_conditions(two_point(1.0, 6.0), dimension=100, step_size=0.05, init_scale=1e-3):
        ...     print(line)
        min(r1, r2) = 1 is below log(d)^4 = 450, and so below C log(d)^4 for the large C of assumption 1
        eta = 0.05 is not between 24/M2 = 1.33 and 1/(64 M1) = 0.00223
        alpha = 0.001 is not between d^-4 = 1e-08 and d^-2 = 0.0001
    """
    window = paper_window(environments)
    missed = []
    other_rank = environments.rank if spurious_rank is None else spurious_rank
    rank, smaller = invariant_rank + other_rank, min(invariant_rank, other_rank)
    least = float(np.log(dimension)) ** 4
    if smaller < least:
        missed.append(
            f"min(r1, r2) = {smaller} is below log(d)^4 = {least:.0f}, and so below C log(d)^4 for the large C of "
            "assumption 1"
        )
    highest = window.high if theorem != 8 else min(window.high, rank**-2)
    if not window.low < step_size < highest:
        bound = "1/(64 M1)" if highest == window.high else "1/r^2"
        missed.append(f"eta = {step_size:g} is not between 24/M2 = {window.low:.3g} and {bound} = {highest:.3g}")
    low, high = INIT_POWERS[theorem]
    if not float(dimension) ** low < init_scale < float(dimension) ** high:
        missed.append(
            f"alpha = {init_scale:g} is not between d^{low} = {float(dimension) ** low:.3g} "
            f"and d^{high} = {float(dimension) ** high:.3g}"
        )
    return tuple(missed)


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
