from functools import partial

import jax
import numpy as np
import pytest

from holdfast import Settings, simulate
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import batching, matrix_sensing
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import gaussian, table
from holdfast.sensing.measurements import collect, fixed_data_set

ENVIRONMENTS = table([1.0, 2.0, 5.0], [0.2, 0.5, 0.3])


def many(draw, count=20_000):
    return jax.vmap(partial(draw, step=0))(jax.random.split(jax.random.key(1), count))


@pytest.mark.parametrize(
    ("strengths", "counts", "message"),
    [
        ((1, 1), (1,), r"strengths of a Batch must have shape \(groups, 1, 1\), got \(1, 1\)"),
        ((3, 2, 2), (3,), r"strengths of a Batch must have shape \(groups, 1, 1\), got \(3, 2, 2\)"),
        ((3, 1, 1), (), r"counts of a Batch must have shape \(3,\), got \(\)"),
    ],
)
def test_a_batch_of_the_wrong_shape_is_an_error(strengths, counts, message):
    def maker(environments, batch_size):
        return lambda key, step: batching.Batch(np.ones(strengths), np.ones(counts))

    with pytest.raises(ValueError, match=message):
        simulate(Settings(dimension=4, steps=2, seeds=1), batching=maker)


def test_hetero_is_one_environment():
    batches = many(batching.hetero(ENVIRONMENTS, 7))
    assert batches.strengths.shape == (20_000, 1, 1, 1)
    assert (np.asarray(batches.counts) == 7).all()
    assert np.mean(np.asarray(batches.strengths) == 5.0) == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 20_000))


@pytest.mark.parametrize("batch_size", [10, 8_000, 8_000_000])
def test_pooled_counts_are_multinomial(batch_size):
    counts = np.asarray(many(batching.pooled(ENVIRONMENTS, batch_size)).counts, float)
    assert (counts.sum(1) == batch_size).all()
    p = np.array([0.2, 0.5, 0.3])
    covariance = batch_size * (np.diag(p) - np.outer(p, p))
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((counts.mean(0) - batch_size * p) / deviation, 0, atol=5 / np.sqrt(20_000))
    # A covariance of n nearly normal pairs has standard error sd_i sd_j sqrt(2 / n) at most.
    scaled = (np.cov(counts.T) - covariance) / np.outer(deviation, deviation)
    np.testing.assert_allclose(scaled, 0, atol=5 * np.sqrt(2 / 20_000))


def test_pooled_over_a_continuum_draws_each_sample():
    batch = batching.pooled(gaussian(1.0, 2.0), 5)(jax.random.key(0), 0)
    assert batch.counts is None
    assert batch.size == 5
    assert len(np.unique(batch.strengths)) == 5


def test_full_is_in_proportion_and_sums_to_the_batch():
    batch = batching.full(ENVIRONMENTS, 11)(jax.random.key(0), 0)
    np.testing.assert_array_equal(batch.counts, [2, 6, 3])
    with pytest.raises(ValueError, match="finitely many environments"):
        batching.full(gaussian(1.0, 2.0), 11)


@pytest.mark.parametrize("draw", [batching.pooled, batching.full])
def test_infinite_batches_see_the_mean(draw):
    for environments in (ENVIRONMENTS, gaussian(1.0, 2.0)):
        batch = draw(environments, None)(jax.random.key(0), 0)
        np.testing.assert_allclose(batch.mean_strength, environments.mean)


@pytest.fixture(scope="module")
def data():
    problem = matrix_sensing(orthonormal_frame(4, 2).astype(np.float32), 1, table([1.0, 2.0, 5.0]))
    return collect(problem, symmetric_gaussian, 20)


@pytest.mark.parametrize("replacement", [True, False])
def test_rows_of_one_environment(data, replacement):
    weights = np.asarray(many(batching.hetero_rows(data, 8, replacement=replacement), 500))
    environment = np.asarray(data.environment)
    used = [set(environment[row > 0]) for row in weights]
    assert {len(numbers) for numbers in used} == {1}
    assert set.union(*used) == {0, 1, 2}
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    largest = (8 * weights).round().max()
    assert largest > 1 if replacement else largest == 1


def test_all_rows_of_one_environment(data):
    weights = np.asarray(batching.hetero_rows(data)(jax.random.key(0), 0))
    assert sorted(weights[weights > 0].tolist()) == pytest.approx([1 / 20] * 20)


@pytest.mark.parametrize("replacement", [True, False])
def test_pooled_rows_ignore_the_environment(data, replacement):
    weights = np.asarray(many(batching.pooled_rows(data, 12, replacement=replacement), 5000))
    real = np.asarray(data.environment) >= 0
    assert (weights[:, ~real] == 0).all()
    # Each of 60 rows is in a batch of 12 with mean weight 1/60.
    error = 5 * np.sqrt(1 / 12 / 60 / 5000)
    np.testing.assert_allclose(weights[:, real].mean(0), 1 / 60, atol=error)
    assert ((12 * weights).round().max(1) > 1).any() == replacement


def test_full_rows_weigh_all_alike(data):
    weights = np.asarray(batching.full_rows(data)(jax.random.key(0), 0))
    np.testing.assert_allclose(weights[np.asarray(data.environment) >= 0], 1 / 60, rtol=1e-6)


def test_more_rows_than_the_data_set_has_need_replacement(data):
    with pytest.raises(ValueError, match=r"batch_size must be at most 20.*got 21"):
        batching.hetero_rows(data, 21)
    batching.hetero_rows(data, 21, replacement=True)
    with pytest.raises(ValueError, match=r"batch_size must be at most 60.*got 61"):
        batching.pooled_rows(data, 61)


def test_data_sets_are_sorted_and_checked():
    measurements = np.arange(8, dtype=np.float32).reshape(4, 2)
    data = fixed_data_set(measurements, np.arange(4.0), np.array([1, 0, 1, 0]), 1)
    assert data.counts == (2, 2)
    assert np.asarray(data.responses)[:4].tolist() == [1, 3, 0, 2]
    assert np.asarray(data.measurements).reshape(-1, data.measurements.shape[-1])[:4, 0].tolist() == [2, 6, 0, 4]
    with pytest.raises(ValueError, match="same length"):
        fixed_data_set(measurements, np.arange(3.0), np.array([1, 0, 1, 0]), 1)
    with pytest.raises(ValueError, match="every number from 0 to 2"):
        fixed_data_set(measurements, np.arange(4.0), np.array([2, 0, 2, 0]), 1)
