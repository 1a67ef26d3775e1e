"""The form of an oracle."""

from collections.abc import Callable

import jax

from holdfast.batching import Batch

Oracle = Callable[[jax.Array, jax.Array, Batch], jax.Array]
"""(key, fitted matrix P, batch) -> gradient matrix G."""
