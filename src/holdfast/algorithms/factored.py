"""SGD on a factored matrix, U U^T or U U^T - V V^T."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from holdfast.core.algorithm import Algorithm
from holdfast.core.randomness import START, purpose_key, split, standard_normals

Gradient = Callable[[jax.Array, jax.Array, ArrayLike], jax.Array]
"""(key, fitted matrix P, step) -> gradient matrix G. One key is one batch, the same one each time."""
Sampled = TypeVar("Sampled")
Seen = TypeVar("Seen")


class Factors(NamedTuple):
    """The fitted matrix P = positive positive^T - negative negative^T.

    The symmetric parameterisation has a negative factor without columns.

    Example:
        >>> Factors(2 * jnp.eye(2), jnp.eye(2)).fitted.tolist()
        [[3.0, 0.0], [0.0, 3.0]]
    """

    positive: jax.Array
    negative: jax.Array

    @classmethod
    def symmetric(cls, factor: jax.Array) -> "Factors":
        """P = factor factor^T, with a negative factor that has no columns."""
        return cls(factor, factor[:, :0])

    @property
    def fitted(self) -> jax.Array:
        """P."""
        return self.positive @ self.positive.T - self.negative @ self.negative.T


class AlgorithmMaker(Protocol):
    """Makes an algorithm that fits a matrix by descending a gradient; its parameters are `Factors`.

    `factored` is one. Another may have further keyword arguments with defaults, which `holdfast.simulate` can sweep.

    Example, `signed` starts from U U^T - V V^T = 0:
        >>> maker: AlgorithmMaker = signed
        >>> algorithm = maker(lambda key, fitted, step: fitted, 2, step_size=0.1, init_scale=1e-3, dtype=None)
        >>> algorithm.init().fitted.tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """

    def __call__(
        self,
        gradient: Gradient,
        dimension: int,
        step_size: ArrayLike,
        init_scale: ArrayLike,
        *,
        dtype: DTypeLike | None,
    ) -> Algorithm:
        """The algorithm for d x d matrices; the numbers may be traced by jax."""
        ...


def sampled(
    batching: Callable[[jax.Array, ArrayLike], Sampled], oracle: Callable[[jax.Array, jax.Array, Sampled], Seen]
) -> Callable[[jax.Array, jax.Array, ArrayLike], Seen]:
    """The stochastic gradient (key, fitted, step) -> G of an oracle on batches drawn by a batching.

    Example:
        >>> gradient = sampled(lambda key, step: step + 1, lambda key, fitted, batch: batch * fitted)
        >>> gradient(jax.random.key(0), jnp.eye(2), 2).tolist()
        [[3.0, 0.0], [0.0, 3.0]]
    """

    def gradient(key: jax.Array, fitted: jax.Array, step: ArrayLike) -> Seen:
        batch_key, oracle_key = split(key)
        return oracle(oracle_key, fitted, batching(batch_key, step))

    return gradient


def random_start(seed: ArrayLike, dimension: int, width: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array:
    """A random start of U with r columns: independent N(0, 1/r) entries, so that E U_0 U_0^T = I for every r.

    The matrix is d x d and its other columns are zero. A step multiplies U from the left, so they stay zero: that is
    U in R^{d x r}, and the width does not shape the compiled program. See Stoeger and Soltanolkotabi (NeurIPS 2021).

    Args:
        seed: of the run.
        dimension: d.
        width: r, from 1 to d.
        dtype: of the matrix.

    Example:
        >>> start = random_start(seed=0, dimension=4, width=2)
        >>> start.any(axis=0).tolist()
        [True, True, False, False]
    """
    normals = standard_normals(purpose_key(seed, START), (dimension, dimension), jnp.dtype(dtype or jnp.float32))
    return jnp.where(np.arange(dimension) < width, normals / jnp.sqrt(width), 0).astype(normals.dtype)


def factored(
    gradient: Gradient,
    dimension: int,
    step_size: ArrayLike,
    init_scale: ArrayLike,
    *,
    signed: bool = False,
    start: jax.Array | None = None,
    dtype: DTypeLike | None = None,
) -> Algorithm:
    """Gradient descent on the factors, with any gradient.

        U <- (I - eta G) U,    V <- (I + eta G) V,    U_0 = V_0 = alpha I

    This is eq. 3 of Xu, Gu and Fang (NeurIPS 2024); the gradient of their eq. 2 would have a factor 2, which
    they absorb into the step size, and so do we. HeteroSGD, PooledSGD and gradient descent differ in `gradient` only.

    Args:
        gradient: (key, P, step) -> G; see `sampled`.
        dimension: d.
        step_size: eta.
        init_scale: alpha.
        signed: fit U U^T - V V^T instead of U U^T.
        start: a matrix of d rows to start from, times alpha, instead of the identity; see `random_start`.
        dtype: of the factors.

    Example, one step of gradient descent towards the identity:
        >>> algorithm = factored(lambda key, fitted, step: fitted - jnp.eye(2), 2, step_size=0.1, init_scale=0.5)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> state.positive
        Array([[0.5375, 0.    ],
               [0.    , 0.5375]], dtype=float32)
    """

    def init() -> Factors:
        factor = jnp.asarray(init_scale, dtype) * (jnp.eye(dimension, dtype=dtype) if start is None else start)
        return Factors(factor, factor) if signed else Factors.symmetric(factor)

    def step(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        g = gradient(key, state.fitted, number)
        identity = jnp.eye(dimension, dtype=g.dtype)
        positive = (identity - step_size * g) @ state.positive
        negative = (identity + step_size * g) @ state.negative
        return Factors(positive, negative)

    return Algorithm(init, step)


signed = partial(factored, signed=True)
"""Gradient descent on U U^T - V V^T."""
