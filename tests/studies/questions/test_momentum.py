import numpy as np
import pytest

from holdfast.sensing.environments import gaussian, table, two_point
from holdfast.theory.lyapunov import exponents
from holdfast_studies.questions.momentum import momentum_exponent, momentum_matrices, planar_exponent


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("law", [two_point(1.0, 5.0), gaussian(1.0, 4.0)])
def test_without_momentum_it_is_the_exponent_of_sgd(law, nesterov):
    assert momentum_exponent(law, 0.1, 0.0, nesterov=nesterov) == pytest.approx(exponents(law, 0.1)[0], abs=5e-3)


def test_many_environments_are_all_counted():
    """More than stand for a continuum: in no order, with unequal probabilities."""
    random = np.random.default_rng(0)
    law = table(np.append(random.normal(-3.0, 2.0, 299), 40.0), np.append(np.full(299, 0.2 / 299), 0.8))
    assert momentum_exponent(law, 0.1, 0.0, directions=256) == pytest.approx(exponents(law, 0.1)[0], abs=5e-3)


@pytest.mark.parametrize("nesterov", [False, True])
def test_one_environment_grows_like_the_larger_root(nesterov):
    matrix = momentum_matrices([2.0], 0.05, 0.9, nesterov=nesterov)[0]
    largest = np.abs(np.linalg.eigvals(matrix)).max()
    assert momentum_exponent(table([2.0]), 0.05, 0.9, nesterov=nesterov) == pytest.approx(np.log(largest), abs=1e-4)


@pytest.mark.parametrize(
    ("momentum", "nesterov", "effective"), [(0.5, False, 0.1), (0.9, False, 0.1), (0.8, True, 0.05)]
)
def test_furstenberg_agrees_with_a_long_product(momentum, nesterov, effective):
    """Two ways to the exponent: the stationary law of the direction, and chains of matrices."""
    step_size, chains, steps = effective * (1 - momentum), 400, 1500
    matrices = momentum_matrices([-5.0, 7.0], step_size, momentum, nesterov=nesterov)
    random, vectors, total = np.random.default_rng(1), np.ones((chains, 2)), np.zeros(chains)
    for step in range(steps):
        vectors = np.einsum("cij,cj->ci", matrices[random.integers(0, 2, chains)], vectors)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= lengths
        total += np.log(lengths[:, 0]) if step >= 100 else 0
    rates = total / (steps - 100)
    predicted = momentum_exponent(two_point(1.0, 6.0), step_size, momentum, nesterov=nesterov)
    # Four standard errors of the chains, and the error of the grid.
    assert predicted == pytest.approx(rates.mean(), abs=4 * rates.std() / np.sqrt(chains) + 3e-4)


def test_small_steps_act_like_sgd_at_the_effective_step_size():
    """To second order in eta s: the exponents differ by a term of order (eta s / (1 - beta))^2."""
    momentum, effective = 0.7, 0.01
    slow = momentum_exponent(two_point(1.0, 6.0), effective * (1 - momentum), momentum)
    assert slow == pytest.approx(float(exponents(two_point(1.0, 6.0), effective)[0]), abs=3 * effective**2)


def test_rotations_do_not_grow():
    angle = 0.7
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert planar_exponent(np.stack([rotation, 2 * rotation]), np.array([0.5, 0.5])) == pytest.approx(np.log(2) / 2)


def test_momentum_is_checked():
    with pytest.raises(ValueError, match=r"momentum must be a number from 0 to below 1, got 1\.0"):
        momentum_exponent(two_point(1.0, 6.0), 0.1, 1.0)
