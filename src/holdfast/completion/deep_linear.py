"""Gradient steps on the layers of a deep linear network A = W_L ... W_1."""

from itertools import pairwise

import jax
import numpy as np
from jax.typing import ArrayLike

from holdfast.completion.deep_linear_network import LayerGradient, Layers
from holdfast.core.algorithm import Algorithm, State


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
