"""Each loss against derivatives by jax, against its own sum over rows, and in NumPy against jax."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms.losses import LogisticRows, SecondMoments, Slopes, logistic, squared
from holdfast.algorithms.losses.slopes import pooled_effects, tolerant

SIZES = (40, 25, 35)
W, INTERCEPT = np.array([0.3, 0.7, -0.4]), 0.2


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    x = random.standard_normal((sum(SIZES), 3))
    y = x @ [1.0, -0.5, 0.2] + random.standard_normal(len(x))
    return x, y, np.split(random.permutation(len(x)), np.cumsum(SIZES)[:-1])


@pytest.fixture
def environments(table):
    x, y, rows = table
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    return [LogisticRows(x[own].T, (y[own] > 0).astype(float), weights[own]) for own in rows]


@pytest.fixture
def moments(table):
    found = squared.second_moments(*table)
    return SecondMoments(found.second[:, :3, :3], found.cross[:, :3], found.square)


def test_squared_risk_is_half_the_mean_squared_error(table, moments):
    x, y, rows = table
    expected = [np.mean((y[own] - x[own] @ W) ** 2) / 2 for own in rows]
    np.testing.assert_allclose(squared.risk(moments, W), expected)


def test_squared_derivatives(moments):
    with jax.enable_x64(True):
        data = SecondMoments(*map(jnp.asarray, moments))
        gradient = jax.jit(jax.jacobian(lambda w: squared.risk(data, w)))(jnp.asarray(W))
        curvature = jax.jit(jax.jacobian(lambda w: squared.gradient(data, w)))(jnp.asarray(W))
    np.testing.assert_allclose(squared.gradient(moments, W), gradient, rtol=1e-10)
    np.testing.assert_allclose(moments.second, curvature, rtol=1e-10)
    slopes = squared.slopes(moments, np.array(SIZES, float), W)
    np.testing.assert_allclose(slopes.curvature, np.einsum("eii->ei", curvature), rtol=1e-10)


def test_logistic_derivatives(environments):
    @jax.jit
    def derivatives(data, w, intercept):
        of_risk = partial(logistic.risk, data)
        return jax.grad(of_risk, (0, 1))(w, intercept), jax.hessian(of_risk)(w, intercept)

    with jax.enable_x64(True):
        for rows in environments:
            gradient, hessian = derivatives(LogisticRows(*map(jnp.asarray, rows)), jnp.asarray(W), INTERCEPT)
            slopes = logistic.slopes(rows, W, INTERCEPT)
            np.testing.assert_allclose(slopes.gradient, gradient[0], rtol=1e-10)
            np.testing.assert_allclose(slopes.intercept, gradient[1], rtol=1e-10)
            np.testing.assert_allclose(slopes.curvature, np.diag(hessian), rtol=1e-10)
            np.testing.assert_allclose(logistic.gradient(rows, W, INTERCEPT), gradient[0], rtol=1e-10)
            np.testing.assert_allclose(logistic.curvature_matrix(rows, W, INTERCEPT), hessian, rtol=1e-10)


def test_logistic_variance_is_that_of_the_gradients_of_rows(environments):
    rows = environments[0]._replace(weights=np.ones(SIZES[0]))
    errors = logistic.probabilities(rows, W, INTERCEPT) - rows.labels
    each = errors * rows.columns
    covariance = logistic.gradient_covariance(rows, W, INTERCEPT)
    np.testing.assert_allclose(covariance, each @ each.T / SIZES[0] ** 2)
    np.testing.assert_allclose(logistic.slopes(rows, W, INTERCEPT).variance, np.diag(covariance))


def test_padding_counts_for_nothing_and_a_weight_counts_rows(environments):
    """The stack of jax, as long as the longest environment, against the ragged ones of NumPy."""
    stack = LogisticRows(*map(jnp.asarray, logistic.padded(environments)))
    w = jnp.asarray(W, jnp.float32)
    found = Slopes(*map(np.asarray, jax.jit(logistic.slopes)(stack, w, jnp.float32(INTERCEPT))))
    risks = np.asarray(jax.jit(logistic.risk)(stack, w, INTERCEPT))
    for number, rows in enumerate(environments):
        repeated = LogisticRows(*(np.repeat(part, rows.weights.astype(int), axis=-1) for part in rows))
        expected = logistic.slopes(repeated._replace(weights=np.ones(len(repeated.labels))), W, INTERCEPT)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours[number], theirs, rtol=2e-5)
        np.testing.assert_allclose(risks[number], logistic.risk(rows, W, INTERCEPT), rtol=1e-5)


def test_large_scores_stay_finite():
    scores = np.array([-1e4, -90.0, 0.0, 90.0, 1e4])
    rows = LogisticRows(scores[None], np.zeros(5), np.ones(5))
    single = LogisticRows(*(jnp.asarray(part, jnp.float32) for part in rows))
    slopes = jax.jit(jax.grad(lambda w: logistic.risk(single, w)))(jnp.ones(1))
    bends = jax.jit(jax.grad(lambda w: logistic.gradient(single, w)[0]))(jnp.ones(1))
    expected = np.logaddexp(0, scores)
    np.testing.assert_allclose(jax.jit(logistic.row_losses)(single, jnp.ones(1)), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(logistic.row_losses(rows, np.ones(1)), expected, rtol=1e-12, atol=1e-15)
    assert np.isfinite(slopes).all()
    assert np.isfinite(bends).all()
    np.testing.assert_allclose(logistic.sigmoid(scores), [0, 0, 0.5, 1, 1], atol=1e-30)
    assert jax.jit(jax.grad(logistic.sigmoid))(jnp.zeros(())) == 0.25


def test_single_and_double_precision_agree(moments):
    counts = np.array(SIZES, float)
    expected = tolerant(squared.slopes(moments, counts, W), counts / counts.sum(), W, 0.3)
    single = SecondMoments(*(jnp.asarray(part, jnp.float32) for part in moments))
    w, n = jnp.asarray(W, jnp.float32), jnp.asarray(counts, jnp.float32)
    found = jax.jit(lambda data, n, w: tolerant(squared.slopes(data, n, w), n / n.sum(), w, 0.3))(single, n, w)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, theirs, rtol=2e-5)


def test_pooled_effects_of_the_squared_loss_solve_it_one_feature_at_a_time(moments):
    """With one feature the pooled effect is least squares over all rows, from any coefficient."""
    counts = np.array(SIZES, float)
    weights = counts / counts.sum()
    one = SecondMoments(moments.second[:, :1, :1], moments.cross[:, :1], moments.square)
    effect = pooled_effects(squared.slopes(one, counts, W[:1]), weights, W[:1])
    np.testing.assert_allclose(effect, weights @ one.cross[:, 0] / (weights @ one.second[:, 0, 0]))


def test_a_tolerated_effect_has_a_larger_variance():
    slopes = Slopes(np.zeros((2, 1)), np.zeros(2), np.array([[1.0], [2.0]]), np.full((2, 1), 0.1))
    found = tolerant(slopes, np.array([0.5, 0.5]), np.array([3.0]), 0.1)
    np.testing.assert_allclose(found.variance, 0.1 + np.array([[0.3], [0.6]]) ** 2)
