"""The form of every algorithm."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

State = Any
Info = Any


class Algorithm(NamedTuple):
    """A pair of pure functions.

    Attributes:
        init: () -> state.
        step: (key, state) -> (state, info): the state is what the next step needs, info what an observer may want.
    """

    init: Callable[[], State]
    step: Callable[[jax.Array, State], tuple[State, Info]]
