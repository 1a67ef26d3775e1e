"""What the theorems of Xu, Gu and Fang (NeurIPS 2024) ask of the settings, and which of it is missed."""

from holdfast.environments import Environments
from holdfast.theory.window import paper_window

# Theorem 2 starts with alpha in (d^-4, d^-2), Theorem 8 in (d^-4, d^-3).
INIT_POWERS = {2: (-4, -2), 8: (-4, -3)}


def missed_conditions(
    environments: Environments,
    *,
    dimension: int,
    step_size: float,
    init_scale: float,
    theorem: int = 2,
    invariant_rank: int = 1,
) -> tuple[str, ...]:
    """The conditions on step size and starting point that the settings miss, in words.

    Theorem 2, and with it theorems 1, 4 and 5: eta in (24 / M2, 1 / (64 M1)), alpha in (d^-4, d^-2). Theorem 8 in
    addition: eta < 1 / r^2 with r = r1 + r2, alpha < d^-3. Conditions with constants that the paper does not print
    (assumptions 1, 2, 3) are left to `check_assumptions`.

    Args:
        environments: the law of S(e).
        dimension: d.
        step_size: eta.
        init_scale: alpha.
        theorem: 2 or 8.
        invariant_rank: r1, for Theorem 8.

    Example, at the settings of figure 3 the window is empty:
        >>> from holdfast.environments import two_point
        >>> for line in missed_conditions(two_point(1.0, 6.0), dimension=100, step_size=0.05, init_scale=1e-3):
        ...     print(line)
        eta = 0.05 is not between 24/M2 = 1.33 and 1/(64 M1) = 0.00223
        alpha = 0.001 is not between d^-4 = 1e-08 and d^-2 = 0.0001
    """
    window = paper_window(environments)
    missed = []
    rank = invariant_rank + environments.rank
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
