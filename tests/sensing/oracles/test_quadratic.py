import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms import sampled
from holdfast.algorithms.factored import estimated_trace, known_trace, no_shrinkage, shrinkage
from holdfast.core.randomness import standard_normals
from holdfast.sensing import batching
from holdfast.sensing.environments import two_point
from holdfast.sensing.oracles.quadratic import RankOneGradient, rank_one
from holdfast.sensing.problem import quadratic_network, random_neurons

STRENGTHS = two_point(0.5, 4.0, rank=2, shared=False)


@pytest.fixture
def network():
    neurons = random_neurons(6, 4, seed=2).astype(np.float32)
    return quadratic_network(neurons[:, :2], neurons[:, 2:], STRENGTHS), neurons


def test_the_network_is_its_matrix_sensing_problem(network):
    """y = sum (a_j^T x)^2 + sum s_j(e) (a_j^T x)^2 for every environment."""
    problem, neurons = network
    x = np.random.default_rng(0).standard_normal((10, 6))
    squares = (x @ neurons) ** 2
    for strength, mixed in zip(STRENGTHS.strengths, problem.environments.strengths, strict=True):
        expected = squares[:, :2].sum(1) + squares[:, 2:] @ np.diag(strength)
        matrix = np.asarray(problem.invariant_matrix + problem.spurious_matrix(mixed), float)
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", x, matrix, x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("truncation", [np.inf, 4.0])
def test_streamed_gradient_equals_the_sum_over_matrices(network, fitted_six, truncation, monkeypatch):
    problem, _ = network
    monkeypatch.setattr("holdfast.sensing.oracles.quadratic.BLOCK_NUMBERS", 64 * 6)  # three blocks, the last not full
    key, count = jax.random.key(3), 150
    batch = batching.pooled(problem.environments, count)(jax.random.key(1), 0)
    seen = rank_one(problem, count, truncation)(key, fitted_six, batch)
    keys = [[jax.random.fold_in(jax.random.fold_in(key, block), j) for j in range(6)] for block in range(3)]
    blocks = [[standard_normals(key, (64,), jnp.float32) for key in row] for row in keys]
    x = np.concatenate(blocks, 1).T[:count].astype(float)
    group = np.repeat(np.arange(4), np.asarray(batch.counts, int))
    signals = [problem.invariant_matrix + problem.spurious_matrix(s) for s in problem.environments.strengths]
    y = np.array([row @ np.asarray(signals[g], float) @ row for row, g in zip(x, group, strict=True)])
    predicted = np.einsum("ni,ij,nj->n", x, np.asarray(fitted_six, float), x)
    weights = np.where(predicted <= truncation, predicted - y, 0)
    assert (weights == 0).any() == np.isfinite(truncation)
    np.testing.assert_allclose(seen.gradient, np.einsum("n,ni,nj->ij", weights, x, x) / count, rtol=1e-3, atol=1e-4)
    assert float(seen.trace) == pytest.approx(y.mean(), rel=1e-4)


@pytest.fixture
def fitted_six():
    factor = np.random.default_rng(4).standard_normal((6, 6)).astype(np.float32)
    return jnp.asarray(factor @ factor.T / 6)


def test_mean_gradient_is_twice_the_residual_and_its_trace(network, fitted_six):
    """E (x^T W x) x x^T = 2 W + tr(W) I; within 5 standard errors over 400 batches."""
    problem, _ = network
    batch = batching.Batch(problem.environments.strengths[:1], jnp.full(1, 500.0))
    oracle = rank_one(problem, 500)
    seen = jax.vmap(lambda key: oracle(key, fitted_six, batch))(jax.random.split(jax.random.key(0), 400))
    residual = np.asarray(fitted_six - seen.signal[0], float)
    sample = np.asarray(seen.gradient, float)
    error = sample.std(0) / np.sqrt(400)
    assert np.abs((sample.mean(0) - 2 * residual - np.trace(residual) * np.eye(6)) / error).max() < 5
    traces = np.asarray(seen.trace, float)
    assert abs(traces.mean() - np.trace(seen.signal[0])) < 5 * traces.std() / 20


def test_shrinkage_leaves_the_step_of_matrix_sensing(network):
    """With the exact mean gradient, (I - eta G) / (1 - eta tr W) = I - 2 eta W + O(eta^2): slope two in eta."""
    problem, _ = network
    batch = batching.Batch(problem.environments.strengths[:1], jnp.ones(1))

    def exact(key, fitted, step):
        signal = problem.invariant_matrix + problem.spurious_matrix(batch.mean_strength)
        residual = fitted - signal
        return RankOneGradient(2 * residual + jnp.trace(residual) * jnp.eye(6), jnp.trace(signal), signal)

    with jax.enable_x64(True):
        errors = []
        for eta in (1e-2, 1e-3):
            for trace in (known_trace, estimated_trace):
                algorithm = shrinkage(exact, 6, eta, 0.5, trace, "float64")
                state = algorithm.init()
                after = algorithm.step(None, state, 0)
                residual = state.fitted - exact(None, state.fitted, 0).signal
                plain = (jnp.eye(6) - 2 * eta * residual) @ state.positive
                errors.append(float(jnp.linalg.norm(after.positive - plain)))
        assert errors[0] == pytest.approx(errors[1])
        assert errors[0] / errors[2] == pytest.approx(100, rel=0.1)
        untouched = shrinkage(exact, 6, 1e-2, 0.5, no_shrinkage, "float64").step(None, state, 0)
        g = exact(None, state.fitted, 0).gradient
        np.testing.assert_allclose(untouched.positive, (jnp.eye(6) - 1e-2 * g) @ state.positive)


def test_a_continuum_is_refused(network):
    problem, _ = network
    batch = batching.Batch(jnp.ones((5, 2, 2)), None)
    with pytest.raises(ValueError, match="finitely many"):
        rank_one(problem, 5)(jax.random.key(0), jnp.eye(6), batch)


def test_sampled_gradients_compose(network):
    problem, _ = network
    gradient = sampled(batching.hetero(problem.environments, 30), rank_one(problem, 30))
    algorithm = shrinkage(gradient, 6, 0.01, 0.1)
    assert algorithm.step(jax.random.key(0), algorithm.init(), 0).fitted.shape == (6, 6)
