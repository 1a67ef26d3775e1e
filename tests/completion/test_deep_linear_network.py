from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.completion.deep_linear import entry_gradient, fitted_matrix, matrix_gradient

HIDDEN = (5, 3, 6, 4, 2)


def network(depth):
    random = np.random.default_rng(0)
    widths = (4, *HIDDEN[: depth - 1], 3)
    return tuple(jnp.asarray(random.standard_normal((rows, columns))) for columns, rows in pairwise(widths))


@pytest.mark.parametrize("depth", range(1, 7))
def test_gradients_equal_automatic_differentiation(depth):
    """To 1e-10 in float64, for one entry and for any weighting of the entries, at all depths and unequal widths."""
    with jax.enable_x64(True):
        layers = network(depth)
        target = jnp.asarray(np.random.default_rng(1).standard_normal((3, 4)))
        weights = jnp.asarray(np.random.default_rng(2).random((3, 4)))

        def chain(layers):
            product = layers[0]
            for layer in layers[1:]:
                product = layer @ product
            return product

        @jax.jit
        def ours_and_automatic(layers):
            one = entry_gradient(layers, 2, 1, target[2, 1])
            whole = matrix_gradient(layers, weights * (fitted_matrix(layers) - target))
            error = jax.grad(lambda layers: 0.5 * (chain(layers)[2, 1] - target[2, 1]) ** 2)
            errors = jax.grad(lambda layers: 0.5 * jnp.sum(weights * (chain(layers) - target) ** 2))
            return one, whole, chain(layers), error(layers), errors(layers)

        (residual, found), whole, product, expected, expected_whole = ours_and_automatic(layers)
        assert float(residual) == pytest.approx(float(product[2, 1] - target[2, 1]), rel=1e-12)
        for ours, theirs in zip((*found, *whole), (*expected, *expected_whole), strict=True):
            assert ours.dtype == jnp.float64
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_the_gradient_of_an_entry_has_rank_one():
    _, gradients = entry_gradient(network(4), 1, 2, 0.3)
    assert all(np.linalg.matrix_rank(gradient, 1e-4) == 1 for gradient in gradients)
