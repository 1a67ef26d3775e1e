"""What the order of the environments changes: the law of a spurious share when every cycle has all of them.

Drawn independently, log Q^2 is a random walk: after T steps it has spread by a multiple of sqrt(T). In cycles the walk
returns to its drift at the end of each: what remains is the spread within a cycle, and sampling error.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from holdfast.core.order import ORDERS, cycle
from holdfast.core.statistics import Estimate
from holdfast.core.validation import POSITIVE, require
from holdfast.sensing.ensembles import Ensemble
from holdfast.sensing.environments import Environments, FiniteEnvironments, finitely_many
from holdfast.theory.finite_time import added_logarithms, check_numbers
from holdfast.theory.lyapunov import TINY, matrix_exponents, product_exponents
from holdfast.theory.sampling import Sampling
from holdfast.theory.strengths import check_direction, commuting, diagonal_entries


def check_order(order: str) -> None:
    """Raise a ValueError unless there is an order of this name."""
    require(order in ORDERS, f"order must be one of {', '.join(ORDERS)}", repr(order))


class OrderEffect(NamedTuple):
    """The law of log Q^2 after T steps without sampling error, while Q^2 is small.

    Attributes:
        mean: over runs. 2 (log alpha + T lambda), in every order after whole cycles.
        deviation: standard deviation over runs.
        low: least value that it can have.
        high: largest value that it can have.

    Example:
        >>> OrderEffect(mean=-6.0, deviation=0.0, low=-6.0, high=-6.0).high
        -6.0
    """

    mean: float
    deviation: float
    low: float
    high: float


def order_effect(
    environments: FiniteEnvironments,
    step_size: float,
    steps: int,
    init_scale: float,
    *,
    order: str = "reshuffled",
    direction: int = 0,
) -> OrderEffect:
    """The law of log Q^2 under an order, for strengths that commute.

    With l_e = 2 log|1 + eta xi_e| over the L visits of a cycle, mean l and variance v, and k steps into a cycle:

        independent  deviation sqrt(T v)
        reshuffled   deviation sqrt(k (L - k) / (L - 1) v), the variance of k draws without replacement
        cyclic       deviation 0

    In cycles log Q^2 is 2 log alpha + T l up to the extreme sums of k of the L deviations, and exactly at k = 0.

    Args:
        environments: finitely many.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        order: independent, reshuffled or cyclic.
        direction: which spurious direction.

    Example, after whole cycles nothing is random, and one step later only the last visit is:
        >>> from holdfast.sensing.environments import two_point
        >>> walk, whole, odd = (
        ...     order_effect(two_point(1.0, 5.0), 0.05, steps, 1e-3, order=order)
        ...     for steps, order in ((200, "independent"), (200, "reshuffled"), (201, "reshuffled"))
        ... )
        >>> round(walk.deviation, 1), whole.deviation, round(odd.deviation, 2)
        (6.9, 0.0, 0.49)
    """
    check_numbers(step_size, steps, init_scale)
    logarithms = added_logarithms(_visited_strengths(environments, order, direction)[:, direction], step_size)
    length, deviations = len(logarithms), logarithms - logarithms.mean()
    variance, into = float(np.mean(deviations**2)), steps % length
    centre = 2 * math.log(init_scale) + steps * float(logarithms.mean())
    ordered = np.sort(deviations)
    if order == "independent":
        spread, low, high = math.sqrt(steps * variance), steps * ordered[0], steps * ordered[-1]
    elif order == "cyclic":
        centre += float(deviations[:into].sum())
        spread = low = high = 0.0
    else:
        spread = math.sqrt(into * (length - into) / max(length - 1, 1) * variance)
        low, high = ordered[:into].sum(), ordered[length - into :].sum()
    return OrderEffect(centre, spread, centre + float(low), centre + float(high))


def _visited_strengths(environments: FiniteEnvironments, order: str, direction: int) -> np.ndarray:
    """The strengths that the spurious directions meet in a cycle, (L, r2), for an order and a direction that exist."""
    check_order(order)
    check_direction(direction, environments)
    diagonal = finitely_many(commuting(environments), "environments must be finitely many")
    return diagonal_entries(diagonal.strengths)[list(cycle(diagonal.probabilities))]


def order_floor(
    environments: FiniteEnvironments,
    step_size: float,
    batch_size: float,
    *,
    order: str,
    ensemble: str | Ensemble = "symmetric",
    direction: int = 0,
) -> float:
    """The mean spurious share that sampling error sustains at the end of a cycle, once A* is learned.

    Let c be the part of Q = U^T V* along U^T U*. The invariant signal pulls it back, and a Gaussian batch kicks it: the
    residual then is the spurious signal of the environment, in all of its directions.

        c <- a c + eta z,    a = 1 + eta (xi - 1),    Var z = tau ||S(e)||_F^2 / m

    Independent draws give E c^2 = eta^2 E z^2 / (1 - E a^2), infinite if E a^2 >= 1, whatever the sign of the exponent:
    a power tail (Kesten, 1973). In cycles the factor of a whole cycle is the product A of all a, in any order, so the
    variance at the end of a cycle is a geometric series in A^2, finite where |A| < 1: exactly where the exponent
    E log|a| is negative. Given the order c is Gaussian, so there is no power tail. In reshuffled order the series has
    the mean over all permutations: what follows a visit has the mean product int_0^1 prod (1 - t + t a^2) dt.

    Args:
        environments: finitely many, with strengths that commute.
        step_size: eta.
        batch_size: m.
        order: independent, reshuffled or cyclic.
        ensemble: of the measurements, "symmetric" (tau = 1/2), "gaussian" (tau = 1) or an `Ensemble`.
        direction: which spurious direction.

    Example, at M = 8 the exponent is negative, but independent draws have no finite mean:
        >>> from holdfast.sensing.environments import two_point
        >>> law = two_point(1.0, 8.0)
        >>> [float(f"{order_floor(law, 0.05, 8000, order=order):.2g}") for order in ("independent", "reshuffled")]
        [inf, 6.8e-05]
    """
    POSITIVE.check("step_size", step_size)
    measured = Sampling(batch_size, ensemble=ensemble)
    visits = _visited_strengths(environments, order, direction)
    squares = (1 + step_size * (visits[:, direction] - 1)) ** 2
    kicks = step_size**2 * measured.entry_variance * np.square(visits).sum(1) / batch_size
    if order == "independent":
        return float(kicks.mean() / (1 - squares.mean())) if squares.mean() < 1 else math.inf
    whole = float(np.prod(squares))
    if whole >= 1:
        return math.inf
    if order == "cyclic":
        added = 0.0
        for square, kick in zip(squares, kicks, strict=True):
            added = square * added + kick
        return float(added / (1 - whole))
    # Visits at independent uniform times have a random order. A visit at time 1 - t is followed by each of the others
    # with probability t, so the mean product of those that follow is a polynomial in t: the rule of Gauss is exact.
    nodes, weights = roots_legendre(len(visits) // 2 + 1)
    factors = 1 + (1 + nodes[:, None]) / 2 * (squares - 1)
    followed = [weights @ np.delete(factors, place, 1).prod(1) / 2 for place in range(len(visits))]
    return float(kicks @ followed / (1 - whole))


def ordered_visits(
    environments: FiniteEnvironments, order: str, *, steps: int, runs: int, seed: int | np.random.Generator = 0
) -> np.ndarray:
    """Numbers of the environments that many runs visit, (steps, runs).

    Example:
        >>> from holdfast.sensing.environments import table
        >>> visits = ordered_visits(table([1.0, 2.0, 3.0]), "reshuffled", steps=6, runs=2)
        >>> sorted(visits[:3, 0].tolist()), sorted(visits[3:, 1].tolist())
        ([0, 1, 2], [0, 1, 2])
    """
    check_order(order)
    random = np.random.default_rng(seed)
    if order == "independent":
        weights = np.asarray(environments.probabilities, float)
        return random.choice(environments.count, (steps, runs), p=weights / weights.sum())
    visits = np.array(cycle(environments.probabilities))
    cycles = -(-steps // len(visits))
    whole = np.broadcast_to(visits[:, None], (cycles, len(visits), runs))
    if order == "reshuffled":
        whole = random.permuted(whole, axis=1)
    return whole.reshape(-1, runs)[:steps]


def order_exponents(
    environments: Environments, step_size: float, *, order: str, steps: int = 2000, chains: int = 64, seed: int = 0
) -> tuple[Estimate, ...]:
    """The exponents of the product of I + eta S(e) under an order, largest first, for any strengths.

    For strengths that commute the exponents are the same in all orders. For others they are not: in cyclic order they
    are log|eigenvalue| / L of the product of one cycle, and the interval is that number; in the other orders they are
    estimated from long products, as by `matrix_exponents`.

    Args:
        environments: finitely many, unless the order is independent.
        step_size: eta.
        order: independent, reshuffled or cyclic.
        steps: length of a chain.
        chains: number of independent products.
        seed: of the visits.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> (found,) = order_exponents(two_point(1.0, 6.0), 0.1, order="cyclic")
        >>> round(found.value, 4)
        -0.0813
    """
    check_order(order)
    if order == "independent":
        return matrix_exponents(environments, step_size, steps=steps, chains=chains, seed=seed)
    finite = finitely_many(environments, "environments must be finitely many to be visited in an order")
    strengths = np.asarray(finite.strengths, float)
    if order == "cyclic":
        return _cycle_exponents(strengths[list(cycle(finite.probabilities))], step_size)
    visits = ordered_visits(finite, order, steps=steps, runs=chains, seed=seed)
    return product_exponents(strengths[visits], step_size)


def _cycle_exponents(strengths: np.ndarray, step_size: float) -> tuple[Estimate, ...]:
    """log|eigenvalue| / L of the product over a cycle, which is scaled on the way to stay within range."""
    rank, logarithm = strengths.shape[-1], 0.0
    product = np.eye(rank)
    for strength in strengths:
        product = product + step_size * strength @ product
        size = max(float(np.abs(product).max()), TINY)
        product, logarithm = product / size, logarithm + math.log(size)
    values = np.maximum(np.abs(np.linalg.eigvals(product)), TINY)
    rates = np.sort((np.log(values) + logarithm) / len(strengths))[::-1]
    return tuple(Estimate(float(rate), float(rate), float(rate)) for rate in rates)
