import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms.hadamard import Hadamard, hadamard
from holdfast.algorithms.losses.slopes import FLOOR, Slopes, amplified, excess_share
from holdfast.theory.lyapunov import effect_exponents

NEVER = np.inf  # a critical value that nothing passes: no variation is amplified


def _slopes(gradient, curvature=None, error=0.01):
    gradient = np.asarray(gradient, float)
    curvature = np.ones_like(gradient) if curvature is None else np.asarray(curvature, float)
    return Slopes(gradient, np.zeros(len(gradient)), curvature, np.full_like(gradient, error**2))


def test_one_visit_is_half_a_gradient_step_on_the_factors():
    """One environment: gradient descent on u and v with half the step size, by automatic differentiation."""
    random = np.random.default_rng(0)
    x, y = jnp.asarray(random.standard_normal((50, 4))), jnp.asarray(random.standard_normal(50))

    def loss(state):
        return jnp.mean((x @ state.coefficients + state.intercept - y) ** 2) / 2

    def slopes(w, intercept):
        error = x @ w + intercept - y
        ones = jnp.ones((1, 4))
        return Slopes((x.T @ error / 50)[None], jnp.mean(error)[None], ones, ones)

    start = Hadamard(jnp.full(4, 0.3), jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.asarray(0.5))
    algorithm = hadamard(slopes, jnp.ones(1), 4, 0.1, 5.0, 0.0, NEVER, 0.1)
    state = algorithm.step(jax.random.key(0), start, 0)
    gradient = jax.grad(loss)(start)
    np.testing.assert_allclose(state.positive, start.positive - 0.05 * gradient.positive, rtol=1e-5)
    np.testing.assert_allclose(state.negative, start.negative - 0.05 * gradient.negative, rtol=1e-5)
    np.testing.assert_allclose(state.intercept, start.intercept - 0.1 * gradient.intercept, rtol=1e-5)


@pytest.mark.parametrize("scaling", [0.0, 1.0])
def test_amplification_does_not_move_the_mean(scaling):
    random = np.random.default_rng(1)
    weights = np.array([0.5, 0.3, 0.2])
    slopes = _slopes(random.standard_normal((3, 6)), random.uniform(0.5, 2, (3, 6)))
    plain, strong = (amplified(slopes, weights, k, scaling, 5.0) for k in (0.0, 40.0))
    np.testing.assert_allclose(np.mean(plain, 0), weights @ slopes.gradient, atol=1e-5)
    np.testing.assert_allclose(np.mean(strong, 0), np.mean(plain, 0), atol=1e-4)
    assert np.std(strong, 0).min() > 5 * np.std(plain, 0).min()


def test_a_larger_variance_is_a_larger_gradient_but_the_same_effect():
    curvature = np.array([[0.1], [1.0], [3.0]])
    slopes = _slopes(-0.4 * curvature, curvature)
    weights = np.ones(3) / 3
    assert excess_share(slopes, weights, 0.0, 15.0)[0] > 0.9
    assert excess_share(slopes, weights, 1.0, 15.0)[0] == 0


def test_sampling_error_is_amplified_as_often_as_the_level_says():
    """Critical value at 5 %: of 4000 effects that do not vary, 5 % have a share above zero (4 standard errors)."""
    random = np.random.default_rng(2)
    slopes = _slopes(0.3 + 0.01 * random.standard_normal((4, 4000)))
    passed = np.mean(np.asarray(excess_share(slopes, np.ones(4) / 4, 0.0, 7.815)) > 0)
    assert abs(passed - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)


@pytest.mark.parametrize("k", [0.0, 3.0, 12.0])
def test_a_small_factor_grows_or_dies_at_its_exponent(k):
    """Gradients that do not depend on the coefficients: log u changes by E lambda in a sweep, exactly."""
    slopes = _slopes([[-0.3, 0.2, -0.5], [0.1, -0.4, -0.5]])
    weights = np.array([0.5, 0.5])
    algorithm = hadamard(lambda w, b: slopes, jnp.asarray(weights), 3, 0.05, k, 0.0, 0.0, 1e-2)
    step = jax.jit(algorithm.step)
    state = algorithm.init()
    for number in range(20):
        state = step(jax.random.key(number), state, number)
    exponents = effect_exponents(0.05, amplified(slopes, weights, k, 0.0, 0.0))
    rates = np.log(np.stack([state.positive, state.negative]) / 1e-2) / 40
    np.testing.assert_allclose(rates, exponents, atol=1e-5)


def test_a_factor_stops_at_the_floor():
    slopes = _slopes([[5.0], [5.0]])
    algorithm = hadamard(lambda w, b: slopes, jnp.array([0.5, 0.5]), 1, 1.0, 0.0, 0.0, 0.0, 1e-2)
    state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
    assert state.positive[0] == np.float32(FLOOR)
