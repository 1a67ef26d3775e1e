"""The three oracles see one truth: law and explicit measurements have one distribution, population is their limit."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from holdfast.algorithms import sampled
from holdfast.sensing import batching, oracles
from holdfast.sensing.environments import gaussian
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import execute

DRAWS = 60_000
# A batch smaller than the space of residuals: the factor of the Wishart matrix is then degenerate.
SMALL_BATCH = 6


def gradients(gradient, fitted, seed):
    keys = jax.random.split(jax.random.key(seed), DRAWS)
    # An argument, not a constant: tests that differ in `fitted` alone then share a compiled program.
    draw = jax.jit(lambda keys, at: jax.lax.map(lambda key: gradient(key, at, 0), keys, batch_size=5000))
    return np.asarray(draw(keys, fitted), float).reshape(DRAWS, -1)


def mean_products(sample):
    """The mean over the draws of x_i x_j, for all i <= j."""
    return (sample.T @ sample / len(sample))[np.triu_indices(sample.shape[1])]


def moments(sample):
    """Entries, their products, products of squares: means (the moments of order 1, 2 and 4), and means of squares."""
    mean, second, fourth, eighth = sample.mean(0), *(mean_products(sample**power) for power in (1, 2, 4))
    return np.concatenate([mean, second, fourth]), np.concatenate([np.mean(sample**2, 0), fourth, eighth])


def assert_equal_in_law(first, second):
    """Means of all moments agree within sampling error.

    The differences, in units of their standard error, are about standard normal; over the few hundred of them that are
    not constant none passes 5.5 (probability below 2e-5 by Bonferroni; seeds are fixed).
    """
    (a, a_squares), (b, b_squares) = moments(first), moments(second)
    squares = a_squares + b_squares
    variance = squares - a**2 - b**2
    spread = variance > 1e-9 * squares + 1e-20  # more than rounding error
    assert np.abs((a - b)[spread] / np.sqrt(variance[spread] / DRAWS)).max() < 5.5


# Every batching and each kind of environments in the fast tests, one of them with noise; the rest compiles for long.
FAST = {
    *((draw, "table", None) for draw in (batching.hetero, batching.pooled, batching.full)),
    *((draw, "continuum", 2.0) for draw in (batching.hetero, batching.full)),
}
CASES = [
    pytest.param(*case, marks=() if case in FAST else pytest.mark.slow)
    for case in itertools.product(
        (batching.hetero, batching.pooled, batching.full), ("table", "continuum"), (None, 2.0)
    )
]


@pytest.mark.parametrize(("draw", "environments", "noise_variance"), CASES)
def test_law_equals_data_in_moments(problem, fitted, ensemble, draw, environments, noise_variance):
    if environments == "continuum":
        if draw is batching.full:
            with pytest.raises(ValueError, match="finitely many"):
                draw(gaussian(1.0, 2.0, rank=2), SMALL_BATCH)
            return
        law = gaussian(1.0, 2.0, rank=2, off_diagonal=0.7, shared=False)
        problem = type(problem)(problem.invariant_basis, problem.invariant_spectrum, problem.spurious_basis, law)
    batches = draw(problem.environments, SMALL_BATCH)
    exact = sampled(batches, oracles.law(problem, ensemble, noise_variance))
    explicit = sampled(batches, oracles.online(problem, ensemble, SMALL_BATCH, noise_variance))
    assert_equal_in_law(gradients(exact, fitted, 0), gradients(explicit, fitted, 1))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_law_equals_data_where_nothing_is_left_outside(problem, ensemble, share):
    """At A* + c V* V*^T the residuals lie in the spurious space but for rounding error."""
    fitted = problem.invariant_matrix + share * problem.spurious_matrix(jnp.eye(2))
    batches = batching.pooled(problem.environments, SMALL_BATCH)
    exact = sampled(batches, oracles.law(problem, ensemble))
    explicit = sampled(batches, oracles.online(problem, ensemble, SMALL_BATCH))
    assert_equal_in_law(gradients(exact, fitted, 6), gradients(explicit, fitted, 7))


def test_law_has_the_analytic_mean_and_covariance(problem, fitted, ensemble):
    """E G = W and, in packed coordinates, Cov G = (||W||^2 I + w w^T) / m, by Isserlis' theorem."""
    batch_size, strength = 3, jnp.eye(2)
    batch = batching.Batch(strength[None], jnp.full(1, float(batch_size)))
    oracle = oracles.law(problem, ensemble)
    sample = gradients(lambda key, fitted, step: ensemble.pack(oracle(key, fitted, batch)), fitted, 3)
    w = np.asarray(ensemble.pack(oracles.population(problem)(None, fitted, batch)), float)
    covariance = (w @ w * np.eye(len(w)) + np.outer(w, w)) / batch_size
    error = np.sqrt(np.diag(covariance) / DRAWS)
    assert np.abs((sample.mean(0) - w) / error).max() < 5
    centred = sample - w
    products = mean_products(centred)
    standard_error = np.sqrt((mean_products(centred**2) - products**2) / DRAWS)
    assert np.abs((products - covariance[np.triu_indices(len(w))]) / standard_error).max() < 5.5


@pytest.mark.parametrize("draw", [batching.hetero, batching.pooled, batching.full])
def test_population_is_the_limit_of_the_law(problem, fitted, ensemble, draw):
    """The root mean square error falls like m^(-1/2): the slope on log-log is -1/2."""
    strengths = problem.environments.strengths[:1]
    one = type(problem.environments)(strengths, jnp.ones(1))  # one environment: no error but that of the measurements
    sizes = np.array([1e2, 1e4, 1e6, 1e8])
    limit = oracles.population(problem)(None, fitted, draw(one, None)(jax.random.key(0), 0))
    keys = jax.random.split(jax.random.key(5), 400)

    @jax.jit
    def error(size):
        sample = jax.vmap(lambda key: sampled(draw(one, size), oracles.law(problem, ensemble))(key, fitted, 0))(keys)
        return jnp.sqrt(jnp.mean(jnp.sum((sample - limit) ** 2, (1, 2))))

    errors = [float(error(np.float32(size))) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    # Each log error has a standard deviation below 1 / sqrt(400); the slope over these sizes below 0.01.
    assert slope == pytest.approx(-0.5, abs=0.03)


def test_no_residual_gives_no_gradient(problem, ensemble):
    batch = batching.Batch(jnp.zeros((1, 2, 2)), jnp.full(1, 4.0))
    for oracle in (oracles.law(problem, ensemble), oracles.online(problem, ensemble, 4)):
        g = jax.jit(oracle)(jax.random.key(0), problem.invariant_matrix, batch)
        np.testing.assert_allclose(g, 0, atol=1e-6)


def test_explicit_measurements_do_not_depend_on_the_block(problem, fitted, ensemble, monkeypatch):
    draw = partial(batching.pooled, problem.environments)
    value = jax.jit(sampled(draw(50), oracles.online(problem, ensemble, 50, 1.0)))(jax.random.key(0), fitted, 0)
    monkeypatch.setattr("holdfast.sensing.oracles.data.BLOCK_BYTES", 7 * 4 * ensemble.size(5))
    blocks = jax.jit(sampled(draw(50), oracles.online(problem, ensemble, 50, 1.0)))(jax.random.key(0), fitted, 0)
    np.testing.assert_allclose(blocks, value, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["hetero", "pooled"])
def test_whole_trajectories_have_one_distribution(chosen, ensemble):
    """Two-sample Kolmogorov-Smirnov tests at d=12, in the middle and at the end of a run.

    Runs by the law cost little: 2,400 of them with 160 of explicit measurements tell laws apart as well as 300 of each,
    since only 1/n + 1/k matters.
    """
    name = "gaussian" if ensemble.size(2) == 4 else "symmetric"
    settings = Settings(dimension=12, batch_size=150, steps=160, every=80, heterogeneity=4.0, seeds=2400,
                        init_scale=0.01, batching=chosen, ensemble=name, noise_variance=0.5)  # fmt: skip
    exact = execute(settings)
    explicit = execute(Settings(**{**settings.asdict(), "oracle": "data", "seed": 10_000, "seeds": 160}), slab=40)
    assert (exact.diverged_at == -1).all()
    for signal in ("invariant", "spurious", "residual", "distance"):
        for record in (1, 2):
            test = scipy.stats.ks_2samp(exact.values[signal][:, record], explicit.values[signal][:, record])
            assert test.pvalue > 1e-3, (signal, record)  # eight tests each, seeds fixed
