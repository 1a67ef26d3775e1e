import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms.hadamard import hadamard
from holdfast.algorithms.losses.slopes import FLOOR, LARGEST_FACTOR, Slopes
from holdfast.theory import two_point_exponent
from holdfast.theory.lyapunov import effect_exponents, washing_strength


def test_two_environments_are_the_two_point_law():
    """Gradients -(s +- M) at the start of matrix sensing: the exponent of u is its closed form."""
    exponents = effect_exponents(0.05, np.array([[-(1.0 + 6.0)], [-(1.0 - 6.0)]]))
    assert exponents[0, 0] == pytest.approx(float(two_point_exponent(0.05, 1.0, 6.0)))


@pytest.mark.parametrize(("mean", "spread"), [(0.4, 0.2), (-0.1, 0.05), (0.02, 0.3)])
def test_washing_strength_is_where_the_larger_exponent_crosses_zero(mean, spread):
    """For small steps: at 0.9 of the strength one of u and v grows, at 1.1 of it both die."""
    strength = float(washing_strength(mean, spread**2))
    step_size = 1e-4 * min(1.0, 1 / strength)
    for factor, alive in ((0.9, True), (1.1, False)):
        k = np.sqrt(factor * strength / step_size) - 1
        gradients = mean + (1 + k) * spread * np.array([[1.0], [-1.0]])
        assert (effect_exponents(step_size, gradients).max() > 0) == alive


@pytest.mark.parametrize("gradients", [(-3.0, 1.0), (-0.5, 0.2), (-5.0, -1.0)])
def test_exponents_are_those_of_the_steps_that_are_taken(gradients):
    """Also where a step would more than double a factor: after one sweep u has grown by exp(2 lambda)."""
    given = jnp.array(gradients)[:, None]

    def slopes(w, intercept):
        return Slopes(given, jnp.zeros(2), jnp.ones((2, 1)), jnp.ones((2, 1)))

    algorithm = hadamard(slopes, jnp.array([0.5, 0.5]), 1, 0.5, 0.0, 0.0, np.inf, 1.0)
    state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
    exponents = effect_exponents(0.5, np.array(given))[:, 0]
    assert float(state.positive[0]) == pytest.approx(np.exp(2 * exponents[0]), rel=1e-5)


def test_a_factor_that_is_removed_ends_at_the_floor():
    assert effect_exponents(1.0, np.array([[3.0]]))[:, 0] == pytest.approx([np.log(FLOOR), np.log(LARGEST_FACTOR)])


def test_what_does_not_vary_is_never_washed_out():
    assert washing_strength(0.3, 0.0) == np.inf
