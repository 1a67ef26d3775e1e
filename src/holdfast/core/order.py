"""The order in which environments are visited: in cycles, reshuffled each time or always the same.

The paper draws the environment of each step independently. The number of visits to an environment is then a random
walk, and so is the logarithm of a spurious signal. In cycles, every environment gets its share of every cycle, and the
walk is gone: see `holdfast.theory.order_effect` for what remains.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.names import ORDERS
from holdfast.core.randomness import ORDER, fold_in, purpose_key
from holdfast.core.run import Algorithm, Parameters, State
from holdfast.core.validation import require

__all__ = ["ORDERS", "Order", "cycle", "cyclic", "independent", "reshuffled", "reshuffling"]
__dir__ = __all__.copy

Order = Callable[[ArrayLike], jax.Array]
"""number of the step -> number of what is visited in it. Pure: nothing is remembered between steps."""

# Steps of the longest cycle for unequal probabilities: shares are then met to 1/1000.
LONGEST_CYCLE = 1000
# Probabilities are known to this: they may come in float32.
ERROR = 1e-6


def cycle(probabilities: ArrayLike) -> tuple[int, ...]:
    """The visits of one cycle: the number of the environment for each of its L steps, in proportion to probabilities.

    L is the least length for which all L p_e are whole numbers, so that every cycle has each environment exactly L p_e
    times: once each for equal probabilities. If there is no such L up to 1000 (or the number of environments, if that
    is larger), that length is taken, and the L p_e are rounded to whole numbers that sum to L, each up or down. An
    environment that would then have no visit, although its probability is positive, is an error. The visits of an
    environment are spread evenly over the cycle.

    Example, three equal environments, and one that is visited twice as often as the other:
        >>> cycle([1 / 3, 1 / 3, 1 / 3]), cycle([1 / 3, 2 / 3])
        ((0, 1, 2), (1, 0, 1))
    """
    shares = np.asarray(probabilities, float)
    proper = shares.ndim == 1 and shares.size > 0 and bool((shares >= 0).all())
    proper = proper and abs(shares.sum() - 1) <= ERROR * shares.size
    require(proper, "probabilities must be non-negative numbers that sum to 1", shares.tolist())
    longest = max(LONGEST_CYCLE, len(shares))
    for length in range(1, longest + 1):
        visits = np.rint(length * shares)
        if np.abs(length * shares - visits).max() < ERROR * length and visits.sum() == length:
            break
    else:
        visits = np.floor(length * shares)
        missing = int(length - visits.sum())
        visits[np.argsort(-(length * shares - visits), kind="stable")[:missing]] += 1
    missed = shares[(visits == 0) & (shares > 0)]
    contract = f"probabilities must be 0 or large enough for a visit in a cycle of at most {longest} steps"
    require(missed.size == 0, contract, missed.tolist())
    # Visit j of n is due in the middle of the j-th of n equal parts of the cycle.
    due = [((j + 0.5) / n, e) for e, n in enumerate(visits.astype(int).tolist()) for j in range(n)]
    return tuple(e for _, e in sorted(due))


def independent(visits: tuple[int, ...], seed: ArrayLike) -> None:
    """No order: the batching draws the environment itself, anew in each step (the paper).

    Example:
        >>> independent((0, 1), seed=0) is None
        True
    """


def cyclic(visits: tuple[int, ...], seed: ArrayLike = 0) -> Order:
    """The same cycle again and again.

    Args:
        visits: of one cycle, see `cycle`.
        seed: of the run; not used.

    Example:
        >>> order = cyclic((0, 1, 2))
        >>> [order(step).item() for step in range(7)]
        [0, 1, 2, 0, 1, 2, 0]
    """
    numbers = np.asarray(visits, np.int32)
    return lambda step: jnp.asarray(numbers)[jnp.asarray(step) % len(numbers)]


def reshuffled(visits: tuple[int, ...], seed: ArrayLike) -> Order:
    """The visits of each cycle in a fresh random order.

    The permutation of a cycle is drawn from the seed of the run and the number of the cycle, so every step of the
    cycle finds the same one without remembering it.

    Args:
        visits: of one cycle, see `cycle`.
        seed: of the run.

    Example:
        >>> order = jax.jit(reshuffled((0, 1, 2), seed=0))
        >>> [sorted(order(3 * number + place).item() for place in range(3)) for number in range(3)]
        [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    length, shuffle = len(visits), _shuffle(visits, seed)

    def order(step: ArrayLike) -> jax.Array:
        number, place = jnp.divmod(jnp.asarray(step), length)
        return shuffle(number)[place]

    return order


def _shuffle(visits: tuple[int, ...], seed: ArrayLike) -> Callable[[jax.Array], jax.Array]:
    """Number of a cycle -> its visits in their random order."""
    numbers = np.asarray(visits, np.int32)
    run_key = purpose_key(seed, ORDER)
    return lambda number: jax.random.permutation(fold_in(run_key, number), jnp.asarray(numbers))


class _InCycle(NamedTuple):
    state: State
    visits: jax.Array


def reshuffling(make: Callable[[Order], Algorithm], visits: tuple[int, ...], seed: ArrayLike) -> Algorithm:
    """The algorithm `make(reshuffled(visits, seed))`, to the bit, which remembers the cycle that it is in.

    A permutation is then drawn once in a cycle and not in every step. It pays where a step costs less than a sort, and
    for long cycles: with 160 entries of a 20 x 20 matrix the sort would take most of the time.

    Args:
        make: order -> algorithm.
        visits: of one cycle, see `cycle`.
        seed: of the run.

    Example, what is visited:
        >>> def make(order):
        ...     return Algorithm(lambda: jnp.zeros((), int), lambda key, state, number: order(number))
        >>> algorithm, order = reshuffling(make, (0, 1, 2), seed=0), reshuffled((0, 1, 2), seed=0)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).item() == order(0).item()
        True
    """
    length, shuffle = len(visits), _shuffle(visits, seed)

    def algorithm(current: jax.Array) -> Algorithm:
        return make(lambda step: current[jnp.asarray(step) % length])

    def init() -> _InCycle:
        first = jnp.asarray(np.asarray(visits, np.int32))  # step 0 begins a cycle, and shuffles it
        return _InCycle(algorithm(first).init(), first)

    def step(key: jax.Array, state: _InCycle, number: ArrayLike) -> _InCycle:
        cycle_number, place = jnp.divmod(jnp.asarray(number), length)
        # All runs are at the same step, so that this remains a branch when they are vectorised.
        current = jax.lax.cond(place == 0, lambda: shuffle(cycle_number), lambda: state.visits)
        return _InCycle(algorithm(current).step(key, state.state, number), current)

    def parameters(state: _InCycle) -> Parameters:
        return algorithm(state.visits).parameters(state.state)

    return Algorithm(init, step, parameters)
