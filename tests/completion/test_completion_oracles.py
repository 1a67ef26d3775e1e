import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.completion import matrix_completion, random_low_rank, two_by_two
from holdfast.completion.oracles import (
    batch_weights,
    drawn_entries,
    equal_weights,
    gaussian_weights,
    one_entry,
    weighted_entries,
)

PROBLEM = random_low_rank(3, 4, 2, 0.5, seed=1)
LAYERS = tuple(
    jnp.asarray(np.random.default_rng(2).standard_normal(shape), jnp.float32) for shape in ((5, 4), (5, 5), (3, 5))
)
DRAWS = 4000


def flat(gradients):
    return jnp.concatenate([gradient.ravel() for gradient in gradients])


def many(gradient, keys=None):
    """The gradient at LAYERS for each key, one in a row."""
    keys = jax.random.split(jax.random.key(0), DRAWS) if keys is None else keys
    return np.asarray(jax.jit(jax.vmap(lambda key: flat(gradient(key, LAYERS, 0))))(keys), float)


@pytest.mark.parametrize("noise_variance", [None, 0.0])
def test_one_entry_is_a_batch_of_one(noise_variance):
    single, batch = one_entry(PROBLEM, noise_variance), weighted_entries(PROBLEM, batch_weights(PROBLEM, 1))
    keys = jax.random.split(jax.random.key(1), 5)
    np.testing.assert_allclose(many(single, keys), many(batch, keys), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "weights", [batch_weights(PROBLEM, 1), batch_weights(PROBLEM, 5), gaussian_weights(PROBLEM, 1.0)]
)
def test_every_gradient_is_unbiased(weights):
    draws = many(weighted_entries(PROBLEM, weights))
    full = many(weighted_entries(PROBLEM, equal_weights(PROBLEM)), jax.random.split(jax.random.key(0), 1))[0]
    error = np.abs(draws.mean(0) - full) / (draws.std(0) / np.sqrt(DRAWS) + 1e-6)
    assert error.max() < 5  # standard errors; 65 coordinates


def test_the_equation_has_the_gradient_covariance_of_sgd():
    """Against the covariance over the entries, which is exact: sum of (g_k - mean)(g_k - mean)^T / N."""
    keys = jax.random.split(jax.random.key(5), DRAWS)
    drawn = np.asarray(jax.jit(jax.vmap(gaussian_weights(PROBLEM, 1.0)))(keys))[:, np.asarray(PROBLEM.observed) == 1]
    count = PROBLEM.count
    exact = (np.eye(count) - 1 / count) / count
    np.testing.assert_allclose(np.cov(drawn.T), exact, atol=5 * exact[0, 0] * np.sqrt(2 / DRAWS))
    doubled = np.asarray(jax.jit(jax.vmap(gaussian_weights(PROBLEM, 4.0)))(keys))[:, np.asarray(PROBLEM.observed) == 1]
    np.testing.assert_allclose(doubled - 1 / count, 2 * (drawn - 1 / count), atol=1e-6)
    sgd, sde = (
        np.cov(many(weighted_entries(PROBLEM, weights)).T)
        for weights in (batch_weights(PROBLEM, 1), gaussian_weights(PROBLEM, 1.0))
    )
    assert np.linalg.norm(sgd - sde) < 0.1 * np.linalg.norm(sgd)


def test_a_batch_divides_the_variance():
    one, four = (many(weighted_entries(PROBLEM, batch_weights(PROBLEM, m))).var(0).sum() for m in (1, 4))
    assert one / four == pytest.approx(4, rel=0.1)


def test_label_noise_has_its_variance():
    """The gradient of one layer with one entry is what it fits less what it sees."""
    gradient, layers = one_entry(matrix_completion([[3.0]], [[True]]), 0.25), (jnp.ones((1, 1)),)
    keys = jax.random.split(jax.random.key(0), 20_000)
    noise = 1 - 3 - np.asarray(jax.jit(jax.vmap(lambda key: gradient(key, layers, 0)[0][0, 0]))(keys))
    assert noise.mean() == pytest.approx(0, abs=5 * 0.5 / np.sqrt(20_000))
    assert noise.var() == pytest.approx(0.25, rel=0.05)
    # Its draws are not those of the entries: a step would otherwise tie the two together.
    noisy = many(one_entry(PROBLEM, 1.0))
    exact = many(one_entry(PROBLEM))
    assert abs(np.corrcoef((noisy - exact)[:, 0], exact[:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize("count", [1, 3, 160])
def test_entries_are_uniform(count):
    drawn = np.asarray(drawn_entries(jax.random.key(0), (60_000,), count))
    shares = np.bincount(drawn, minlength=count) / 60_000
    assert drawn.max() == count - 1
    assert np.abs(shares - 1 / count).max() < 5 * np.sqrt(1 / count / 60_000)


def test_without_observed_entries_the_gradient_vanishes():
    empty = matrix_completion(np.ones((3, 4)), np.zeros((3, 4)))
    for gradient in (
        one_entry(empty),
        weighted_entries(empty, equal_weights(empty)),
        weighted_entries(empty, batch_weights(empty, 3)),
        weighted_entries(empty, gaussian_weights(empty, 2.0)),
    ):
        assert not np.any(flat(gradient(jax.random.key(0), LAYERS, 0)))


def test_the_two_by_two_example_has_three_entries():
    drawn = drawn_entries(jax.random.key(0), (100,), two_by_two(0.5).count)
    assert set(np.asarray(drawn).tolist()) == {0, 1, 2}
