"""How the entries of a matrix completion problem are seen: one at a time, a few, all, or through Gaussian noise.

The data loss is a mean over the N observed entries, so every stochastic gradient of it is the gradient of a weighted
sum whose random weights have mean 1/N. SGD puts the whole weight on one entry, a mini-batch shares it among several,
gradient descent gives every entry 1/N, and the stochastic differential equation has Gaussian weights.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.completion.deep_linear import LayerGradient, Layers, entry_gradient, fitted_matrix, matrix_gradient
from holdfast.completion.problem import MatrixCompletion
from holdfast.core.order import Order
from holdfast.core.randomness import standard_normals, threefry

Weights = Callable[[jax.Array], jax.Array]
"""key -> (height, width), the weight of every entry; 0 where nothing was observed."""
# The key of label noise is folded in from a number that no counter of the other draws of a step reaches.
_LABELS = np.uint32(2**32 - 1)


def one_entry(
    problem: MatrixCompletion, noise_variance: ArrayLike | None = None, *, order: Order | None = None
) -> LayerGradient:
    """The gradient of SGD: one observed entry.

    Costs a column and a row through the layers, not products of matrices; see `entry_gradient`.

    Args:
        problem: what is observed. With no observed entry the gradient is zero.
        noise_variance: of fresh Gaussian noise on the value, each time it is seen; None: it is seen as it is.
        order: of the entries, by their numbers; None: each step draws one uniformly.
    """
    if problem.count == 0:
        return lambda key, layers, step: jax.tree.map(jnp.zeros_like, layers)

    def gradient(key: jax.Array, layers: Layers, step: ArrayLike) -> Layers:
        entry = drawn_entries(key, (), problem.count) if order is None else order(step)
        value = problem.values[entry]
        if noise_variance is not None:
            noise = standard_normals(jax.random.fold_in(key, _LABELS), value.shape, value.dtype)
            value = value + jnp.sqrt(noise_variance) * noise
        return entry_gradient(layers, problem.rows[entry], problem.columns[entry], value)[1]

    return gradient


def weighted_entries(problem: MatrixCompletion, weights: Weights) -> LayerGradient:
    """The gradient of half a weighted sum of squares over all observed entries.

    Args:
        problem: what is observed.
        weights: of the entries, drawn anew in each step; see `equal_weights`, `batch_weights`, `gaussian_weights`.
    """

    def gradient(key: jax.Array, layers: Layers, step: ArrayLike) -> Layers:
        return matrix_gradient(layers, weights(key) * (fitted_matrix(layers) - problem.targets))

    return gradient


def equal_weights(problem: MatrixCompletion) -> Weights:
    """1/N on every observed entry: gradient descent."""
    return lambda key: problem.observed / max(problem.count, 1)


def batch_weights(problem: MatrixCompletion, batch_size: int) -> Weights:
    """Weights of m observed entries, drawn uniformly with replacement, with weight 1/m each time: mini-batch SGD.

    Args:
        problem: what is observed. With no observed entry all weights are zero.
        batch_size: m. With m = 1 and the same keys these are the steps of `one_entry`.
    """
    if problem.count == 0:
        return equal_weights(problem)
    height, width = problem.shape

    def weights(key: jax.Array) -> jax.Array:
        entries = drawn_entries(key, (batch_size,), problem.count)
        rows = jax.nn.one_hot(problem.rows[entries], height, axis=0, dtype=problem.values.dtype)
        columns = jax.nn.one_hot(problem.columns[entries], width, dtype=problem.values.dtype)
        return rows @ columns / batch_size

    return weights


def gaussian_weights(problem: MatrixCompletion, temperature: ArrayLike) -> Weights:
    """Gaussian weights with the mean and, for temperature 1, the covariance of those of SGD.

        w_k = 1/N + sqrt(temperature / N) (xi_k - mean of xi),    xi_k ~ N(0, 1) independent

    SGD draws e_K with K uniform, whose covariance is (I - 1 1^T / N) / N, that of the second term. The gradient noise
    is linear in the weights, so this noise has the covariance of the gradient of SGD at every state.

    One step of length h of the Euler-Maruyama method for the stochastic differential equation
        d theta = - gradient dt + sqrt(eta) Sigma(theta)^(1/2) dB
    is a step of `deep_linear` with step size h and these weights at temperature eta / h.

    Args:
        problem: what is observed.
        temperature: eta / h, the number of steps of the method in one step of SGD.
    """
    count = max(problem.count, 1)

    def weights(key: jax.Array) -> jax.Array:
        normals = problem.observed * standard_normals(key, problem.shape, problem.observed.dtype)
        centred = normals - problem.observed * (jnp.sum(normals) / count)
        return problem.observed / count + jnp.sqrt(temperature / count) * centred

    return weights


def drawn_entries(key: jax.Array, shape: tuple[int, ...], count: int) -> jax.Array:
    """Uniform numbers below `count`: 24 random bits, so each has its probability up to 6e-8."""
    counters = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    bits = threefry(key, counters, jnp.zeros_like(counters))[0] >> 8
    # The largest fraction times count may be rounded up to count.
    scaled = bits.astype(jnp.int32).astype(jnp.float32) * jnp.float32(count * 2.0**-24)
    return jnp.minimum(scaled.astype(jnp.int32), count - 1)
