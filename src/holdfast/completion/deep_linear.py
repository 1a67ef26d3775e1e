"""A deep linear network A = W_L ... W_1: the matrix it fits, its gradients in the layers, and its steps."""

from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.run import Algorithm, State

# W_1, ..., W_L: the first layer meets the input, the last makes the output.
Layers = tuple[jax.Array, ...]
# (key, layers, step) -> gradient of each layer: the form of an oracle of such a network.
LayerGradient = Callable[[jax.Array, Layers, ArrayLike], Layers]


def fitted_matrix(layers: Layers) -> jax.Array:
    """The matrix A = W_L ... W_1 that the network fits."""
    return _prefixes(layers)[-1]


def entry_gradient(layers: Layers, row: ArrayLike, column: ArrayLike, value: ArrayLike) -> tuple[jax.Array, Layers]:
    """The residual at one entry, and the gradient of half its square.

        p_0 = e_j,  p_l = W_l p_{l-1},    q_L = e_i,  q_{l-1} = W_l^T q_l
        residual = A_ij - value = e_i^T p_L - value,    gradient of W_l = residual q_l p_{l-1}^T

    Vectors only: a column goes forwards through the layers and a row backwards, and each gradient has rank one. The
    products are written as sums, because many small matrix products, one per run, are slower than one long sum.

    Args:
        layers: W_1, ..., W_L.
        row: i.
        column: j.
        value: the observed value of the entry.

    Example, d/dW of (A_01 - 1)^2 / 2 for one layer:
        >>> residual, (gradient,) = entry_gradient((jnp.array([[1.0, 3.0]]),), 0, 1, 1.0)
        >>> float(residual), gradient.tolist()
        (2.0, [[0.0, 2.0]])
    """
    dtype = layers[0].dtype
    left = [(jnp.arange(layers[-1].shape[0]) == row).astype(dtype)]
    right = [(jnp.arange(layers[0].shape[1]) == column).astype(dtype)]
    for layer in layers:
        right.append(jnp.sum(layer * right[-1], 1))
    for layer in reversed(layers[1:]):
        left.append(jnp.sum(layer * left[-1][:, None], 0))
    residual = jnp.sum(left[0] * right[-1]) - value
    rank_one = zip(reversed(left), right, strict=False)
    return residual, tuple(residual * q[:, None] * p for q, p in rank_one)


def matrix_gradient(layers: Layers, direction: jax.Array) -> Layers:
    """The gradient of <direction, W_L ... W_1> in every layer, from prefix and suffix products.

        gradient of W_l = (W_L ... W_{l+1})^T direction (W_{l-1} ... W_1)^T

    Args:
        layers: W_1, ..., W_L.
        direction: of the shape of A; for a loss of A, its gradient with respect to A.

    Example:
        >>> layers = (jnp.array([[2.0]]), jnp.array([[3.0]]), jnp.array([[5.0]]))
        >>> [float(g[0, 0]) for g in matrix_gradient(layers, jnp.ones((1, 1)))]
        [15.0, 10.0, 6.0]
    """
    before = (None, *_prefixes(layers)[:-1])
    pulled, gradients = direction, []
    for layer, prefix in zip(reversed(layers), reversed(before), strict=True):
        gradients.append(pulled if prefix is None else _product(pulled, prefix.T))
        pulled = _product(layer.T, pulled)
    return tuple(reversed(gradients))


def _prefixes(layers: Layers) -> list[jax.Array]:
    """W_1, W_2 W_1, ..., W_L ... W_1."""
    products = [layers[0]]
    for layer in layers[1:]:
        products.append(_product(layer, products[-1]))
    return products


def _product(first: jax.Array, second: jax.Array) -> jax.Array:
    """A matrix product as a sum that XLA fuses over all runs: 12 times faster than `@` for small layers."""
    return jnp.sum(first[:, :, None] * second, 1)


def deep_linear(gradient: LayerGradient, start: Layers, step_size: ArrayLike, ridge: ArrayLike) -> Algorithm:
    """Gradient descent on the layers, with any gradient of the data.

        W_l <- (1 - 2 eta lambda) W_l - eta G_l,    G = gradient of (1 / 2N) sum_{(i,j) in I} (A_ij - A*_ij)^2

    SGD, mini-batch SGD, SGD with label noise, gradient descent and the stochastic differential equation differ in
    `gradient` only; see `holdfast.completion.oracles`.

    Args:
        gradient: (key, layers, number of the step) -> gradient of each layer.
        start: W_1, ..., W_L at step 0.
        step_size: eta.
        ridge: lambda, of the penalty lambda ||theta||^2.

    Reference: Wang and Jacot (ICLR 2024), the update of the slides.

    Example, no data: every layer shrinks by 1 - 2 eta lambda.
        >>> algorithm = deep_linear(lambda key, layers, step: (np.zeros((1, 1)),), (np.ones((1, 1)),), 0.5, 0.1)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> round(float(state[0][0, 0]), 6)
        0.9
    """

    def step(key: jax.Array, layers: Layers, number: ArrayLike) -> Layers:
        shrinkage = 1 - 2 * step_size * ridge
        return jax.tree.map(lambda w, slope: shrinkage * w - step_size * slope, layers, gradient(key, layers, number))

    return Algorithm(lambda: start, step)


def repeated(algorithm: Algorithm, times: int) -> Algorithm:
    """`times` steps of an algorithm as one."""

    def step(key: jax.Array, state: State, number: ArrayLike) -> State:
        keys = jax.random.split(key, times)

        def substep(index: ArrayLike, state: State) -> State:
            return algorithm.step(keys[index], state, times * number + index)

        # The last one is outside of the loop, so that XLA can fuse it with what follows.
        return substep(times - 1, jax.lax.fori_loop(0, times - 1, substep, state))

    return Algorithm(algorithm.init, step, algorithm.parameters)


def orthogonal_layers(widths: tuple[int, ...], init_scale: float, seed: int) -> tuple[np.ndarray, ...]:
    """A start whose layers are blocks of random rotations, times a scale.

    A layer of shape (n, m) is init_scale times the corner of a rotation of size max(n, m), so all its singular values
    are init_scale and neighbouring layers are balanced up to the change of width.

    Args:
        widths: (columns of A, hidden widths ..., rows of A): L + 1 numbers for L layers.
        init_scale: the size of every singular value of every layer.
        seed: of the rotations.

    Example:
        >>> [layer.shape for layer in orthogonal_layers((2, 5, 5, 2), 1.0, seed=0)]
        [(5, 2), (5, 5), (2, 5)]
    """
    random = np.random.default_rng(seed)
    layers = []
    for columns, rows in pairwise(widths):
        size = max(rows, columns)
        q, r = np.linalg.qr(random.standard_normal((size, size)))
        layers.append(init_scale * (q * np.sign(np.diag(r)))[:rows, :columns])
    return tuple(layers)
