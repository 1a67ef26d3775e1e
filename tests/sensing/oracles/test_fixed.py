import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import batching, matrix_sensing, oracles
from holdfast.sensing.environments import gaussian, table, two_point
from holdfast.sensing.measurements import collect


@pytest.fixture
def sensing():
    return matrix_sensing(orthonormal_frame(30, 3).astype(np.float32), 2, two_point(1.0, 3.0), overlap=0.2)


def dense(data, ensemble):
    """The measurements of a data set as plain matrices, with responses and environments."""
    real = np.asarray(data.environment) >= 0
    rows = np.asarray(data.measurements).reshape(len(real), -1)[real, : ensemble.size(data.dimension)]
    matrices = np.stack([np.asarray(ensemble.unpack(jnp.asarray(row), data.dimension)) for row in rows])
    return matrices.astype(float), np.asarray(data.responses, float)[real], np.asarray(data.environment)[real]


@pytest.mark.parametrize("draw", ["hetero", "pooled", "full"])
def test_streamed_gradient_equals_the_sum_over_matrices(sensing, ensemble, draw, monkeypatch):
    monkeypatch.setattr("holdfast.sensing.measurements.BLOCK_BYTES", 70_000)  # several blocks, the last one not full
    data = collect(sensing, ensemble, 45, noise_variance=0.5)
    assert data.measurements.shape[0] > 2
    batches = {
        "hetero": batching.hetero_rows(data),
        "pooled": batching.pooled_rows(data, 37, replacement=True),
        "full": batching.full_rows(data),
    }[draw]
    weights = batches(jax.random.key(4), 0)
    factor = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    fitted = jnp.asarray(factor @ factor.T)
    streamed = oracles.fixed(data, ensemble)(None, fitted, weights)
    matrices, responses, _ = dense(data, ensemble)
    errors = np.einsum("nij,ij->n", matrices, np.asarray(fitted, float)) - responses
    real = np.asarray(data.environment) >= 0
    direct = np.einsum("n,n,nij->ij", np.asarray(weights, float)[real], errors, matrices)
    np.testing.assert_allclose(streamed, direct, atol=1e-5 * np.abs(direct).max())


def test_responses_measure_the_problem(sensing, ensemble):
    data = collect(sensing, ensemble, 30)
    matrices, responses, environment = dense(data, ensemble)
    for number, strength in enumerate(sensing.environments.strengths):
        signal = np.asarray(sensing.invariant_matrix + sensing.spurious_matrix(strength), float)
        rows = environment == number
        expected = np.einsum("nij,ij->n", matrices[rows], signal)
        np.testing.assert_allclose(responses[rows], expected, atol=1e-4)


def test_noise_has_the_given_variance(sensing, ensemble):
    quiet, noisy = collect(sensing, ensemble, 4000), collect(sensing, ensemble, 4000, noise_variance=3.0)
    noise = np.asarray(noisy.responses - quiet.responses)[:8000]
    assert noise.var() == pytest.approx(3.0, abs=5 * 3 * np.sqrt(2 / 8000))


def test_a_continuum_has_no_fixed_data_set(ensemble):
    problem = matrix_sensing(orthonormal_frame(4, 2), 1, gaussian(1.0, 2.0))
    with pytest.raises(ValueError, match="finitely many environments"):
        collect(problem, ensemble, 10)


def test_unequal_probabilities_have_no_fixed_data_set_of_equal_numbers(ensemble):
    problem = matrix_sensing(orthonormal_frame(4, 2), 1, table([0.0, 2.0], [0.9, 0.1]))
    with pytest.raises(ValueError, match=r"probabilities must be equal.*\[0.9, 0.1\]"):
        collect(problem, ensemble, 10)


def test_measurements_are_independent_of_the_directions(ensemble):
    """One seed for both, but not one stream."""
    problem = matrix_sensing(orthonormal_frame(20, 2, seed=3), 1, two_point(1.0, 2.0))
    data = collect(problem, ensemble, 10, seed=3)
    frame = np.random.default_rng(3).standard_normal(40)
    first = np.asarray(data.measurements).ravel()[:40]
    assert abs(np.corrcoef(frame, first)[0, 1]) < 4 / np.sqrt(40)
