import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms import factored, random_start


@pytest.mark.parametrize("signed", [False, True])
def test_step_is_half_the_true_gradient_step(signed):
    """Eq. 3 is gradient descent on eq. 2 with half the step size: checked by automatic differentiation."""
    random = np.random.default_rng(0)
    x = random.standard_normal((20, 6, 6)).astype(np.float32)
    x = jnp.asarray(x + np.swapaxes(x, 1, 2)) / 2
    y = jnp.asarray(random.standard_normal(20).astype(np.float32))

    def errors(fitted):
        return jnp.einsum("nij,ij->n", x, fitted) - y

    def loss(state):
        return jnp.mean(jnp.square(errors(state.fitted))) / 2

    def gradient(key, fitted, step):
        return jnp.einsum("n,nij->ij", errors(fitted), x) / len(y)

    algorithm = factored(gradient, 6, step_size=0.1, init_scale=0.3, signed=signed)
    state = algorithm.init()
    for step in range(3):
        slopes = jax.grad(loss)(state)
        state = algorithm.step(jax.random.key(step), before := state, step)
        expected = jax.tree.map(lambda u, slope: u - 0.05 * slope, before, slopes)
        for got, wanted in zip(state, expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_signed_form_starts_at_zero_and_fits_a_negative_matrix():
    target = jnp.diag(jnp.array([1.0, -2.0]))
    algorithm = factored(lambda key, fitted, step: fitted - target, 2, 0.1, 1e-2, signed=True)
    state = algorithm.init()
    np.testing.assert_array_equal(state.fitted, 0)
    for _ in range(300):
        state = algorithm.step(None, state, 0)
    np.testing.assert_allclose(state.fitted, target, atol=1e-3)


def test_gradient_descent_converges_to_the_nearest_positive_matrix():
    """U U^T cannot be negative: from a small start it ends at the positive part of the target."""
    target = jnp.diag(jnp.array([1.0, 0.5, -2.0]))
    algorithm = factored(lambda key, fitted, step: fitted - target, 3, 0.1, 1e-2)
    state = algorithm.init()
    for _ in range(500):
        state = algorithm.step(None, state, 0)
    np.testing.assert_allclose(state.fitted, np.diag([1.0, 0.5, 0.0]), atol=1e-3)


@pytest.mark.parametrize("width", [1, 3, 8])
def test_a_random_start_has_the_same_mean_at_every_width(width):
    """E U U^T = I: the mean over 2,000 starts is within five standard errors of at most sqrt(2 / (2000 r))."""
    starts = jax.vmap(lambda seed: random_start(seed, 8, width))(jnp.arange(2000))
    assert not np.asarray(starts[..., width:]).any()
    mean = np.einsum("nij,nkj->ik", starts, starts) / 2000
    np.testing.assert_allclose(mean, np.eye(8), atol=5 * np.sqrt(2 / (2000 * width)))


def test_a_narrow_factor_is_a_matrix_with_fewer_columns():
    """Columns that start at zero stay zero: the same as NumPy on a d x r matrix."""
    target = np.diag([1.0, 0.6, 0.0, 0.0])
    start = random_start(3, 4, 2)
    algorithm = factored(lambda key, fitted, step: fitted - target, 4, 0.1, 1e-2, start=start)
    state, own = algorithm.init(), 1e-2 * np.asarray(start, float)[:, :2]
    for _ in range(200):
        state = algorithm.step(None, state, 0)
        own -= 0.1 * (own @ own.T - target) @ own
    np.testing.assert_array_equal(state.positive[:, 2:], 0)
    np.testing.assert_allclose(state.fitted, own @ own.T, atol=1e-5)
