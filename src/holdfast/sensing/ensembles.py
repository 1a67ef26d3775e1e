"""Measurement ensembles: each is an isometry between matrices and standard normal coordinates.

A random measurement X is `unpack(x)` with x ~ N(0, I), and <X, W> = x . pack(W). So the explicit oracle
works on coordinates, the exact law on matrices, and neither knows which ensemble it serves.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from holdfast.core.linear_algebra import gather_symmetric, pack_symmetric, symmetric_size, unpack_symmetric

__all__ = ["Ensemble", "gaussian", "symmetric_gaussian"]
__dir__ = __all__.copy


class Ensemble(NamedTuple):
    """A Gaussian ensemble of d x d measurement matrices.

    Attributes:
        size: dimension d -> number of coordinates of one measurement.
        pack: matrix -> coordinates, with <X, W> = pack(X) . pack(W) for X in the ensemble.
        unpack: (coordinates, d) -> matrix, the inverse of `pack`.

    Example, <X, W> = 11:
        >>> x, w = jnp.array([[1.0, 2.0], [2.0, 3.0]]), jnp.array([[1.0, 1.0], [1.0, 2.0]])
        >>> round((symmetric_gaussian.pack(x) @ symmetric_gaussian.pack(w)).item(), 4), symmetric_gaussian.size(2)
        (11.0, 3)
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
    unpack=lambda coordinates, dimension: jax.lax.platform_dependent(
        coordinates, cpu=unpack_symmetric, default=gather_symmetric
    ),
)
"""Symmetric, N(0, 1) on the diagonal and N(0, 1/2) off it (the ensemble of the theory)."""
