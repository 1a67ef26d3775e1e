"""Which order of the environments to take, in words, with what it changes at the settings of a run."""

import math
from typing import Unpack

from holdfast.core.order import cycle
from holdfast.core.statistics import Estimate
from holdfast.sensing.environments import Environments, FiniteEnvironments
from holdfast.theory.finite_time import LARGEST_LOGARITHM, check_numbers, log_share, saturated
from holdfast.theory.lyapunov import exponents, growth_in_words, stationary_shares
from holdfast.theory.order import order_effect, order_exponents
from holdfast.theory.sampling import Sampling, SamplingOptions
from holdfast.theory.shares import simulate_shares
from holdfast.theory.strengths import diagonalised

# Runs from which the share that one run in ten exceeds is computed.
RUNS = 2000


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
            float(simulate_shares(environments, *given, order=order, runs=RUNS, **sampling).quantile(0.9))
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
