"""Measurement ensembles: each is an isometry between matrices and standard normal coordinates.

A random measurement X is `unpack(x)` with x ~ N(0, I), and <X, W> = x . pack(W). So the explicit oracle
works on coordinates, the exact law on matrices, and neither knows which ensemble it serves.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from holdfast.core.linear_algebra import pack_symmetric, symmetric_size, unpack_symmetric


class Ensemble(NamedTuple):
    """A Gaussian ensemble of d x d measurement matrices.

    Attributes:
        size: dimension d -> number of coordinates of one measurement.
        pack: matrix -> coordinates, with <X, W> = pack(X) . pack(W) for X in the ensemble.
        unpack: (coordinates, d) -> matrix, the inverse of `pack`.
    """

    size: Callable[[int], int]
    pack: Callable[[jax.Array], jax.Array]
    unpack: Callable[[jax.Array, int], jax.Array]


gaussian = Ensemble(
    size=lambda dimension: dimension * dimension,
    pack=jnp.ravel,
    unpack=lambda coordinates, dimension: coordinates.reshape(dimension, dimension),
)
"""Independent N(0, 1) entries (section 5 of Xu, Gu and Fang, 2024)."""

symmetric_gaussian = Ensemble(
    size=symmetric_size,
    pack=pack_symmetric,
    unpack=lambda coordinates, dimension: unpack_symmetric(coordinates),
)
"""Symmetric, N(0, 1) on the diagonal and N(0, 1/2) off it (the ensemble of the theory)."""
