"""Measurement ensembles: each is an isometry between matrices and standard normal coordinates.

A random measurement X is `unpack(x)` with x ~ N(0, I), and <X, W> = x . pack(W). So the explicit oracle
works on coordinates, the exact law on matrices, and neither knows which ensemble it serves.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


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


def _fold(dimension: int) -> tuple[int, int]:
    """Sizes of the two diagonal blocks that a symmetric matrix is cut into."""
    lower = dimension // 2
    return dimension - lower, lower


def _pack_symmetric(matrix: jax.Array) -> jax.Array:
    upper, lower = _fold(matrix.shape[0])
    isometric = jnp.where(np.eye(matrix.shape[0], dtype=bool), matrix, matrix * np.sqrt(2).astype(matrix.dtype))
    left = jnp.pad(isometric[:upper, :upper], ((0, 0), (0, lower + 1 - upper)))
    right = jnp.pad(isometric[upper:, upper:], ((0, upper - lower), (1, 0)))
    rectangle = jnp.where(np.tri(upper, lower + 1, dtype=bool), left, right)
    return jnp.concatenate([isometric[:upper, upper:].ravel(), rectangle.ravel()])


def _unpack_symmetric(coordinates: jax.Array, dimension: int) -> jax.Array:
    # The two triangles of the diagonal blocks share one rectangle, so slices and transposes do the whole
    # work: a gather by index is three times slower on the CPU.
    upper, lower = _fold(dimension)
    root_half = np.sqrt(0.5).astype(coordinates.dtype)
    corner = coordinates[: upper * lower].reshape(upper, lower) * root_half
    rectangle = coordinates[upper * lower :].reshape(upper, lower + 1)

    def symmetric(triangle: jax.Array) -> jax.Array:
        size = triangle.shape[0]
        off_diagonal = jnp.where(np.tri(size, k=-1, dtype=bool), triangle, triangle.T) * root_half
        return jnp.where(np.eye(size, dtype=bool), triangle, off_diagonal)

    first = symmetric(rectangle[:, :upper])
    last = symmetric(rectangle[:lower, 1:].T)
    return jnp.block([[first, corner], [corner.T, last]])


gaussian = Ensemble(
    size=lambda dimension: dimension * dimension,
    pack=jnp.ravel,
    unpack=lambda coordinates, dimension: coordinates.reshape(dimension, dimension),
)
"""Independent N(0, 1) entries (section 5 of Xu, Gu and Fang, 2024)."""

symmetric_gaussian = Ensemble(
    size=lambda dimension: dimension * (dimension + 1) // 2,
    pack=_pack_symmetric,
    unpack=_unpack_symmetric,
)
"""Symmetric, N(0, 1) on the diagonal and N(0, 1/2) off it (the ensemble of the theory)."""
