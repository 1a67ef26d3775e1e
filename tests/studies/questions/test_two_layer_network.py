"""Closed-form covariances against samples, and what is read off a student against a regression on fresh data."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.sensing.environments import two_point
from holdfast_studies.questions.two_layer_network import (
    ACTIVATIONS,
    TeacherNetwork,
    TwoLayer,
    components,
    covariances,
    half_mean_square,
    predictions,
)

DIMENSION, SAMPLES = 4, 100_000
PAIRS = [(name, name) for name in ACTIVATIONS] + [(name, "quadratic") for name in ("relu", "cubic", "quartic")]


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(0).standard_normal((SAMPLES, DIMENSION)).astype(np.float32)


def _neurons(seed):
    neurons = np.random.default_rng(seed).standard_normal((3, DIMENSION))
    return (neurons / np.linalg.norm(neurons, axis=1, keepdims=True)).astype(np.float32)


def _without(values, inputs, removed):
    if removed == "nothing":
        return values
    values = values - values.mean(0)
    return values if removed == "mean" else values - inputs @ (inputs.T @ values / len(inputs))


@pytest.mark.parametrize(("pair", "removed"), list(itertools.product(PAIRS, ("nothing", "mean", "linear"))))
def test_covariances_are_those_of_samples(pair, removed, inputs):
    first, second = pair
    w, v = _neurons(1), 0.8 * _neurons(2)
    left, right = (
        _without(np.asarray(ACTIVATIONS[name].apply(inputs @ neurons.T), float), inputs.astype(float), removed)
        for name, neurons in ((first, w), (second, v))
    )
    products = left[:, :, None] * right[:, None, :]
    error = 5 * products.std(0) / np.sqrt(SAMPLES) + 1e-4
    closed = jax.jit(lambda w, v: covariances(first, second, w, v, removed=removed))(w, v)
    assert (np.abs(products.mean(0) - np.asarray(closed)) < error).all()


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activations_have_variance_one(name):
    one = jnp.ones((1, 1))
    assert covariances(name, name, one, one).item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        ("relu", "relu"),
        pytest.param("quartic", "quadratic", marks=pytest.mark.slow),
        pytest.param("cubic", "cubic", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_those_of_the_mean_square(student, teacher, inputs):
    truth = TeacherNetwork(*map(jnp.asarray, (_neurons(3)[:1], _neurons(4)[:1])), two_point(1.0, 2.0), teacher)
    network = TwoLayer(jnp.asarray(0.7 * _neurons(5)), jnp.array([0.5, -0.4, 0.8]))
    strength = jnp.array([[1.5]])

    def seen(network, x):
        residual = predictions(student, network, x) - predictions(teacher, truth.network(strength), x)
        return jnp.mean(jnp.square(residual - residual.mean())) / 2

    parts = [jax.jit(jax.grad(seen))(network, part) for part in np.split(inputs, 20)]
    exact = jax.jit(jax.grad(lambda network: half_mean_square(student, network, truth, strength)))(network)
    for layer, name in zip(exact, ("hidden", "output"), strict=True):
        samples = np.stack([getattr(part, name) for part in parts])
        error = 6 * samples.std(0, ddof=1) / np.sqrt(len(parts)) + 1e-3
        assert (np.abs(samples.mean(0) - layer) < error).all()


def test_parallel_neurons_have_finite_gradients():
    neuron = jnp.ones((1, 2))
    gradient = jax.jit(jax.grad(lambda w: covariances("relu", "relu", w, neuron).sum()))(neuron)
    # Cov(phi(w x), phi(v x)) = |w| |v| for parallel neurons, so its gradient is v |v| / |w|.
    assert np.allclose(gradient, neuron, atol=1e-5)
    at_zero = jax.jit(jax.grad(lambda w: covariances("relu", "relu", w, w).sum()))(jnp.zeros((2, 2)))
    assert np.isfinite(at_zero).all()


def test_components_are_a_regression_on_fresh_inputs(inputs):
    truth = TeacherNetwork(*map(jnp.asarray, (_neurons(3)[:1], _neurons(4)[:1])), two_point(1.0, 2.0), "quadratic")
    network = TwoLayer(jnp.asarray(_neurons(5)), jnp.array([0.5, -0.4, 0.8]))
    features = ACTIVATIONS["quadratic"].apply(inputs @ np.asarray(truth.neurons).T)
    design = np.column_stack([np.ones(SAMPLES), features])
    fitted = np.linalg.lstsq(design, np.asarray(predictions("relu", network, inputs)), rcond=None)[0]
    # Residuals have a standard deviation below one: five standard errors are below 0.02.
    closed = jax.jit(lambda network: components("relu", network, truth))(network)
    assert np.allclose(closed, fitted[1:], atol=0.02)


def test_unknown_pairs_are_named():
    one = jnp.ones((1, 1))
    with pytest.raises(ValueError, match="second must be 'relu' or 'quadratic' for first 'relu', got 'cubic'"):
        covariances("relu", "cubic", one, one)
