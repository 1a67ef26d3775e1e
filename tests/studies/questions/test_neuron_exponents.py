"""Neurons grow by the factors that the theory names, and stop where it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.sensing.environments import gaussian, two_point
from holdfast.theory.lyapunov import exponents
from holdfast_studies.questions.neuron_exponents import lasting_share, neuron_exponent
from holdfast_studies.questions.two_layer_network import TeacherNetwork, TwoLayer, half_mean_square, two_layer

LAW = two_point(1.0, 6.0)
# (activation, removed, L, layers trained, what is left of the variance)
NEURONS = [
    ("relu", "mean", 2, 1.0, 1.0),
    ("relu", "linear", 2, 1.0, (np.pi / 2 - 1) / (np.pi - 1)),
    ("quadratic", "mean", 2, 0.0, 1.0),
    ("cubic", "linear", 3, 0.0, 0.4),
    ("quartic", "mean", 4, 0.0, 1.0),
]


@pytest.mark.parametrize(("activation", "removed", "degree", "outputs", "left"), NEURONS)
def test_one_step_multiplies_a_neuron_by_the_factor(activation, removed, degree, outputs, left):
    strength = -5.0
    size, step_size = 0.2, 0.01
    teacher = TeacherNetwork(jnp.eye(2)[:1], jnp.eye(2)[1:], LAW, activation)
    start = TwoLayer(size * jnp.eye(2)[1:], jnp.full(1, size if outputs else 1.0))

    def gradient(key, network, step):
        risk = lambda network: half_mean_square(activation, network, teacher, jnp.array([[strength]]), removed=removed)  # noqa: E731
        return jax.grad(risk)(network)

    algorithm = two_layer(gradient, start, step_size, output_rate=outputs)
    after = jax.jit(lambda: algorithm.step(jax.random.key(0), algorithm.init(), 0))()
    rate = step_size * left * (1 if outputs else degree)
    expected = 1 + rate * size ** (degree - 2) * (strength - size**degree)
    if not outputs or removed == "linear":  # what remains of the invariant neuron is orthogonal
        assert after.hidden[0, 1] / size == pytest.approx(expected, rel=1e-4)
    if outputs:
        assert after.output[0] / size == pytest.approx(expected, rel=1e-4)


def test_degree_two_has_the_exponent_of_matrix_sensing():
    expected = 0.5 * np.log(abs((1 + 0.1) ** 2 - 0.6**2))
    assert neuron_exponent(LAW, 0.1, 2, 1e-6) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("heterogeneity", [2.0, 6.0, 10.0])
def test_neurons_in_turn_stay_at_the_lasting_share(degree, heterogeneity):
    sizes, shares = np.array([0.2, 0.25, 0.3]), []
    for step in range(20_000):
        strength = 1.0 + heterogeneity * (-1) ** step
        sizes = sizes * (1 + 0.05 * sizes ** (degree - 2) * (strength - np.sum(sizes**degree)))
        shares.append(np.sum(sizes**degree))
    predicted = lasting_share((1.0 + heterogeneity, 1.0 - heterogeneity), 0.05, degree, neurons=3)
    assert np.mean(shares[-2:]) == pytest.approx(predicted, rel=1e-3, abs=1e-6)
    if degree > 2:  # whatever their start, neurons end at one size
        assert np.ptp(sizes) < 1e-3 * sizes.mean()


def test_no_spread_keeps_the_mean_and_a_negative_mean_is_refused():
    assert lasting_share((0.5, 0.5), 0.1, 3) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="strengths must have a positive mean, got -1"):
        lasting_share((-2.0, 0.0), 0.1, 3)


def test_steps_that_make_every_neuron_grow_have_no_lasting_share():
    with pytest.raises(ValueError, match=r"step_size must be small enough for neurons .* to shrink, got 0\.5"):
        lasting_share((-5.0, 7.0), 0.5, 2)


def test_one_direction_of_any_law():
    assert neuron_exponent(gaussian(1.0, 6.0), 0.1, 2, 1e-6) == pytest.approx(
        exponents(gaussian(1.0, 6.0), 0.1)[0], abs=2e-3
    )
    with pytest.raises(ValueError, match="environments must have one spurious direction, got 2"):
        neuron_exponent(two_point(1.0, 6.0, rank=2), 0.1, 2, 0.1)
