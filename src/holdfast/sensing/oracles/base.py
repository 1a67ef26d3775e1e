"""The contract of an oracle."""

from collections.abc import Callable

import jax

from holdfast.sensing.batching import Batch
from holdfast.sensing.problem import MatrixSensing

Oracle = Callable[[jax.Array, jax.Array, Batch], jax.Array]
"""(key, fitted matrix P, batch) -> gradient matrix G."""
OracleMaker = Callable[[MatrixSensing], Oracle]
"""problem -> oracle."""
