"""The contract of every algorithm."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.typing import ArrayLike

State = Any
Parameters = Any


def _whole_state(state: State) -> Parameters:
    return state


class Algorithm(NamedTuple):
    """Pure functions that `holdfast.core.run` iterates.

    Attributes:
        init: () -> state. A state is a pytree of arrays and holds what the next step needs, nothing else.
        step: (key, state, number) -> state. The key is fresh in every step; `number` counts the steps done so far, so
            that a schedule or an order of environments can depend on it; batchings and gradients call it `step`.
        parameters: state -> the part of the state that is being fitted; by default all of it. A run has diverged when
            the squared norm of its parameters passes a limit, whatever else is in the state (momenta, moments), and
            what is recorded is computed from them.

    Example, gradient descent on x^2 / 2 with momentum:
        >>> import jax.numpy as jnp
        >>> def step(key, state, number):
        ...     x, velocity = state
        ...     velocity = 0.5 * velocity - 0.1 * x
        ...     return x + velocity, velocity
        >>> algorithm = Algorithm(lambda: (jnp.ones(()), jnp.zeros(())), step, lambda state: state[0])
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> round(float(algorithm.parameters(state)), 6)
        0.9
    """

    init: Callable[[], State]
    step: Callable[[jax.Array, State, ArrayLike], State]
    parameters: Callable[[State], Parameters] = _whole_state
