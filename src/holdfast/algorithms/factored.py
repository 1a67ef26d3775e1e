"""Algorithms for a factored matrix, U U^T or U U^T - V V^T: SGD, any optimiser of optax, and SGD with a shrinkage."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from holdfast.core.randomness import START, purpose_key, split, standard_normals
from holdfast.core.run import Algorithm

if TYPE_CHECKING:  # the caller brings the optimiser, so the numerical core runs without optax
    import optax  # type: ignore[import-untyped]

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

    def step(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        g = gradient(key, state.fitted, number)
        identity = jnp.eye(dimension, dtype=g.dtype)
        positive = (identity - step_size * g) @ state.positive
        negative = (identity + step_size * g) @ state.negative
        return Factors(positive, negative)

    return Algorithm(lambda: _start(dimension, init_scale, dtype, signed, start), step)


def _start(
    dimension: int, init_scale: ArrayLike, dtype: DTypeLike | None, signed: bool = False, start: jax.Array | None = None
) -> Factors:
    """U_0 = alpha I, or alpha times another start, and V_0 = U_0 or without columns."""
    factor = jnp.asarray(init_scale, dtype) * (jnp.eye(dimension, dtype=dtype) if start is None else start)
    return Factors(factor, factor) if signed else Factors.symmetric(factor)


signed = partial(factored, signed=True)
"""Gradient descent on U U^T - V V^T."""


class OptimizerMaker(Protocol):
    """Makes an optimiser for a step size, such as `optax.adam`.

    Example:
        >>> import optax
        >>> make: OptimizerMaker = optax.adam
        >>> make(0.1).init(jnp.zeros(2))[0].mu.tolist()
        [0.0, 0.0]
    """

    def __call__(self, step_size: ArrayLike, /) -> "optax.GradientTransformation":
        """The optimiser; jax may trace the step size."""
        ...


class OptimizedState(NamedTuple):
    """What an optimiser needs for its next step.

    Attributes:
        factors: what is fitted.
        memory: the state of the optimiser, such as momenta.
    """

    factors: Factors
    memory: "optax.OptState"


def optimized(
    gradient: Gradient,
    dimension: int,
    step_size: ArrayLike,
    init_scale: ArrayLike,
    *,
    optimizer: OptimizerMaker,
    signed: bool = False,
    dtype: DTypeLike | None = None,
) -> Algorithm:
    """As `factored`, with the steps of an optimiser of optax: it is given G U as the gradient of U, and -G V of V.

    Args:
        gradient: (key, P, step) -> G; see `sampled`.
        dimension: d.
        step_size: eta, given to `optimizer`.
        init_scale: alpha, of the starting point U = V = alpha I.
        optimizer: step size -> optimiser. Fix it with `functools.partial`, once: it is part of the compiled program.
        signed: fit U U^T - V V^T instead of U U^T.
        dtype: of the factors.

    Example, Adam, whose first step moves every entry that has a gradient by the step size:
        >>> import functools
        >>> import optax
        >>> by_adam = functools.partial(optimized, optimizer=optax.adam)
        >>> algorithm = by_adam(lambda key, fitted, step: fitted - jnp.eye(2), 2, step_size=0.1, init_scale=0.5)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> [round(float(entry), 4) for entry in algorithm.parameters(state).positive.ravel()]
        [0.6, 0.0, 0.0, 0.6]
    """
    transformation = optimizer(step_size)

    def init() -> OptimizedState:
        factors = _start(dimension, init_scale, dtype, signed)
        return OptimizedState(factors, transformation.init(factors))

    def step(key: jax.Array, state: OptimizedState, number: ArrayLike) -> OptimizedState:
        factors = state.factors
        g = gradient(key, factors.fitted, number)
        slopes = Factors(g @ factors.positive, -g @ factors.negative)
        updates, memory = transformation.update(slopes, state.memory, factors)
        return OptimizedState(jax.tree.map(jnp.add, factors, updates), memory)

    return Algorithm(init, step, lambda state: state.factors)


class RankOneGradient(NamedTuple):
    """The gradient over a batch of rank-one measurements, and estimates of the trace.

    Attributes:
        gradient: G = (1/m) sum_i (yhat_i - y_i) x_i x_i^T over the samples that pass the truncation. Its mean over
            Gaussian x, without truncation, is 2 W + tr(W) I with W the mean residual.
        trace: mean of the responses y, which is the moment estimate of tr(A* + A(e)).
        signal: the mean of A* + A(e) over the batch.

    Example, what is seen at A* + A(e) = diag(1, 7):
        >>> from holdfast.sensing.batching import Batch
        >>> from holdfast.sensing.environments import two_point
        >>> from holdfast.sensing.oracles import rank_one
        >>> from holdfast.sensing.problem import MatrixSensing
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([100.0]))
        >>> seen = jax.jit(rank_one(problem, 100))(jax.random.key(0), jnp.diag(jnp.array([1.0, 7.0])), batch)
        >>> seen.signal.tolist(), 4 < seen.trace.item() < 12
        ([[1.0, 0.0], [0.0, 7.0]], True)
    """

    gradient: jax.Array
    trace: jax.Array
    signal: jax.Array


Trace = Callable[[RankOneGradient, jax.Array], jax.Array]


def known_trace(seen: RankOneGradient, fitted: jax.Array) -> jax.Array:
    """The exact tau = tr(A* + A(e)), for which the truth must be known."""
    return jnp.trace(seen.signal)


def estimated_trace(seen: RankOneGradient, fitted: jax.Array) -> jax.Array:
    """The moment estimate of tau = tr(A* + A(e)): the mean of the responses."""
    return seen.trace


def operator_norm(seen: RankOneGradient, fitted: jax.Array) -> jax.Array:
    """The tau = ||A* + A(e)|| that is printed in the paper, which does not cancel the trace."""
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh(seen.signal)))


def no_shrinkage(seen: RankOneGradient, fitted: jax.Array) -> jax.Array:
    """The choice tau = tr P, with which the shrinkage is the identity."""
    return jnp.trace(fitted)


def shrinkage(
    gradient: Callable[[jax.Array, jax.Array, ArrayLike], RankOneGradient],
    dimension: int,
    step_size: ArrayLike,
    init_scale: ArrayLike,
    trace: Trace = estimated_trace,
    dtype=None,
) -> Algorithm:
    """Algorithm 4 of Xu, Gu and Fang (NeurIPS 2024), with the trace instead of their operator norm.

        U <- (I - eta G) U / (1 - eta (||U||_F^2 - tau))

    The mean of G is 2 W + tr(W) I. The shrinkage cancels the second term when tau = tr(A* + A(e)), to first order in
    eta, and leaves the step of matrix sensing with step size 2 eta.

    Args:
        gradient: (key, P, step) -> RankOneGradient; see `holdfast.algorithms.sampled`.
        dimension: d.
        step_size: eta.
        init_scale: alpha.
        trace: how tau is computed.
        dtype: of the factor.

    Example, with exact gradients for the target P = I the step on a small factor is 1 - 2 eta W, up to eta^2:
        >>> def gradient(key, fitted, step):
        ...     w = fitted - jnp.eye(2)
        ...     return RankOneGradient(2 * w + jnp.trace(w) * jnp.eye(2), jnp.asarray(2.0), jnp.eye(2))
        >>> algorithm = shrinkage(gradient, 2, step_size=0.001, init_scale=0.1)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> round(float(state.positive[0, 0]), 4), round(0.1 * (1 + 2 * 0.001 * 0.99), 4)
        (0.1002, 0.1002)
    """

    def step(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        fitted = state.fitted
        seen = gradient(key, fitted, number)
        scale = 1 - step_size * (jnp.trace(fitted) - trace(seen, fitted))
        move = (jnp.eye(dimension, dtype=fitted.dtype) - step_size * seen.gradient) / scale
        return Factors(move @ state.positive, state.negative)

    return Algorithm(lambda: _start(dimension, init_scale, dtype), step)
