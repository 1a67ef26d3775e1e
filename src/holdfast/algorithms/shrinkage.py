"""SGD for quadratic networks: a factored step, then a shrinkage that removes the trace of the residual."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.factored import Factors
from holdfast.core.algorithm import Algorithm


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

    def init() -> Factors:
        start = jnp.asarray(init_scale, dtype) * jnp.eye(dimension, dtype=dtype)
        return Factors.symmetric(start)

    def step(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        fitted = state.fitted
        seen = gradient(key, fitted, number)
        scale = 1 - step_size * (jnp.trace(fitted) - trace(seen, fitted))
        move = (jnp.eye(dimension, dtype=fitted.dtype) - step_size * seen.gradient) / scale
        return Factors(move @ state.positive, state.negative)

    return Algorithm(init, step)
