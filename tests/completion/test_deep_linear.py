from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.completion.deep_linear import (
    deep_linear,
    entry_gradient,
    fitted_matrix,
    matrix_gradient,
    orthogonal_layers,
    repeated,
)


def network():
    """Three layers of unequal widths."""
    random = np.random.default_rng(0)
    return tuple(jnp.asarray(random.standard_normal((rows, columns))) for columns, rows in pairwise((4, 5, 3, 3)))


def test_a_step_is_the_update_of_the_slides():
    layers = network()
    algorithm = deep_linear(lambda key, state, step: entry_gradient(state, 0, 0, 1.0)[1], layers, 0.1, 0.05)
    after = algorithm.step(jax.random.key(0), algorithm.init(), 0)
    slopes = entry_gradient(layers, 0, 0, 1.0)[1]
    for old, new, slope in zip(layers, after, slopes, strict=True):
        np.testing.assert_allclose(new, (1 - 2 * 0.1 * 0.05) * old - 0.1 * slope, rtol=1e-6)


def test_small_steps_preserve_balance():
    """d/dt (W_{l+1}^T W_{l+1} - W_l W_l^T) = 0 without ridge: the change over a fixed time falls like the step size."""

    def drift(step_size):
        layers = network()
        target = jnp.ones((3, 4))
        algorithm = deep_linear(
            lambda key, state, step: matrix_gradient(state, fitted_matrix(state) - target), layers, step_size, 0.0
        )
        state = layers
        for _ in range(round(2e-2 / step_size)):
            state = algorithm.step(jax.random.key(0), state, 0)
        gap = lambda s: s[1].T @ s[1] - s[0] @ s[0].T  # noqa: E731
        return float(jnp.linalg.norm(gap(state) - gap(layers)))

    with jax.enable_x64(True):
        ratio = drift(2e-4) / drift(1e-4)
    assert ratio == pytest.approx(2, rel=0.1)


def test_repeated_is_as_many_steps():
    base = deep_linear(lambda key, state, step: (jax.random.normal(key, (2, 2)),), (jnp.ones((2, 2)),), 0.1, 0.5)
    key = jax.random.key(3)
    state = base.init()
    for part in jax.random.split(key, 4):
        state = base.step(part, state, 0)
    together = repeated(base, 4).step(key, base.init(), 0)
    np.testing.assert_allclose(together[0], state[0], rtol=1e-6)


def test_orthogonal_starts_have_equal_singular_values():
    for layer in orthogonal_layers((2, 5, 3, 4), 0.7, seed=1):
        np.testing.assert_allclose(np.linalg.svd(layer, compute_uv=False), 0.7)
