"""Measurement ensembles: each is an isometry between matrices and standard normal coordinates.

A random measurement X is `unpack(x)` with x ~ N(0, I), and <X, W> = x . pack(W). So the explicit oracle
works on coordinates, the exact law on matrices, the theory with the variance of an entry, and none of them knows which
ensemble it serves.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.linear_algebra import gather_symmetric, pack_symmetric, symmetric_size, symmetrised, unpack_symmetric
from holdfast.core.names import readable
from holdfast.core.validation import require
from holdfast.sensing.settings import ENSEMBLES

__all__ = ["Ensemble", "gaussian", "symmetric_gaussian"]
__dir__ = __all__.copy


class Ensemble(NamedTuple):
    """A Gaussian ensemble of d x d measurement matrices X, isotropic: E <X, W>^2 = ||W||_F^2 for symmetric W.

    The symmetric part of X then has N(0, 1) entries on the diagonal and N(0, 1/2) off it, and ensembles differ in the
    antisymmetric part only. No fitted or true matrix has one, so it acts as noise, whose size is all that the theory
    needs to know.

    Attributes:
        size: dimension d -> number of coordinates of one measurement.
        pack: symmetric matrix W -> coordinates, with <X, W> = x . pack(W) for X = unpack(x).
        unpack: (coordinates, d) -> matrix.
        entry_variance: tau, the variance of an entry of X off the diagonal: 1/2 without an antisymmetric part, 1 for
            independent entries.

    Example, <X, W> = 11:
        >>> x, w = jnp.array([[1.0, 2.0], [2.0, 3.0]]), jnp.array([[1.0, 1.0], [1.0, 2.0]])
        >>> round((symmetric_gaussian.pack(x) @ symmetric_gaussian.pack(w)).item(), 4), symmetric_gaussian.size(2)
        (11.0, 3)
    """

    size: Callable[[int], int]
    pack: Callable[[jax.Array], jax.Array]
    unpack: Callable[[jax.Array, int], jax.Array]
    entry_variance: float

    def __repr__(self) -> str:
        return f"Ensemble({readable(self.pack)}, {readable(self.unpack)}, entry_variance={self.entry_variance:g})"


gaussian = Ensemble(
    size=lambda dimension: dimension * dimension,
    pack=jnp.ravel,
    unpack=lambda coordinates, dimension: coordinates.reshape(dimension, dimension),
    entry_variance=1.0,
)
"""Independent N(0, 1) entries (section 5 of Xu, Gu and Fang, 2024)."""

symmetric_gaussian = Ensemble(
    size=symmetric_size,
    pack=pack_symmetric,
    unpack=lambda coordinates, dimension: jax.lax.platform_dependent(
        coordinates, cpu=unpack_symmetric, default=gather_symmetric
    ),
    entry_variance=0.5,
)
"""Symmetric, N(0, 1) on the diagonal and N(0, 1/2) off it (the ensemble of the theory)."""


def named_ensemble(ensemble: str | Ensemble) -> Ensemble:
    """The ensemble of this name, or the one that is given.

    Example:
        >>> named_ensemble("gaussian") is gaussian
        True
    """
    if isinstance(ensemble, Ensemble):
        check_ensemble(ensemble)
        return ensemble
    names = tuple(ENSEMBLES)
    require(ensemble in names, f"ensemble must be one of {', '.join(names)}, or an Ensemble", repr(ensemble))
    return ENSEMBLES[ensemble].load()


@functools.cache
def check_ensemble(ensemble: Ensemble) -> None:
    """Raise a ValueError unless pack, unpack and entry_variance describe one isotropic ensemble; once for each.

    Example:
        >>> check_ensemble(gaussian._replace(entry_variance=0.5))
        Traceback (most recent call last):
        ValueError: ensemble must have the entry_variance of its entries off the diagonal, which is 1, got 0.5
    """
    require(isinstance(ensemble, Ensemble), "ensemble must be a holdfast.sensing.ensembles.Ensemble", repr(ensemble))
    dimension, size = 3, ensemble.size(3)
    with jax.ensure_compile_time_eval():
        matrices = [ensemble.unpack(unit, dimension) for unit in jnp.eye(size)]
        # Each entry is linear in the coordinates, so its variance is the sum of its squared coefficients.
        units = np.asarray(jnp.stack(matrices), float)
        matrix = symmetrised(np.arange(1.0, 10.0).reshape(dimension, dimension)).astype(np.float32)
        packed = np.asarray(ensemble.pack(jnp.asarray(matrix)), float)
    isotropic = np.allclose(np.square(np.sum(units * matrix, (1, 2))).sum(), np.square(matrix).sum(), rtol=1e-4)
    require(isotropic, "ensemble must be isotropic, E <X, W>^2 = ||W||^2 for symmetric W", repr(ensemble))
    agree = packed.shape == (size,) and np.allclose(np.sum(units * matrix, (1, 2)), packed, rtol=1e-4, atol=1e-4)
    require(agree, "ensemble must have <unpack(x), W> = x . pack(W) for symmetric W", repr(ensemble))
    variance = float(np.square(units[:, 0, 1]).sum())
    contract = f"ensemble must have the entry_variance of its entries off the diagonal, which is {variance:.4g}"
    require(abs(variance - ensemble.entry_variance) < 1e-4, contract, ensemble.entry_variance)
