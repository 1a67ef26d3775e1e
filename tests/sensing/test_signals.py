import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms import Factors
from holdfast.sensing.signals import parts, signals


@pytest.fixture
def state():
    random = np.random.default_rng(5)
    return Factors(*(jnp.asarray(random.standard_normal((5, 5)).astype(np.float32)) for _ in range(2)))


def test_signals_are_their_definitions(problem, state):
    values = signals(problem, state)
    u_star, v_star = (np.asarray(b, float) for b in (problem.invariant_basis, problem.spurious_basis))
    u, v = (np.asarray(factor, float) for factor in state)
    p = u @ u.T - v @ v.T
    a_star, mean = np.asarray(problem.invariant_matrix, float), np.asarray(problem.mean_spurious_matrix, float)
    outside = np.eye(5) - u_star @ u_star.T - v_star @ v_star.T
    expected = {
        "invariant": np.trace(u_star.T @ p @ u_star) / 1,
        "spurious": np.trace(v_star.T @ p @ v_star) / 2,
        "residual": np.sum((outside @ u) ** 2) + np.sum((outside @ v) ** 2),
        "distance": np.linalg.norm(p - a_star),
        "pooled_distance": np.linalg.norm(p - a_star - mean),
        "invariant_norm": np.linalg.norm(u.T @ u_star, 2),
        "spurious_norm": np.linalg.norm(u.T @ v_star, 2),
        "residual_norm": np.linalg.norm(outside @ u),
        "singular_values": np.linalg.svd(u.T @ u_star)[1],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-4, err_msg=name)


def test_parts_add_up(problem, state):
    r, q, e = parts(problem, state.positive)
    total = problem.invariant_basis @ r.T + problem.spurious_basis @ q.T + e
    np.testing.assert_allclose(total, state.positive, atol=1e-5)


def test_phase_follows_the_slowest_direction(problem):
    def phase(size):
        return int(signals(problem, Factors(size * jnp.eye(5), jnp.zeros((5, 0))))["phase"])

    assert (phase(0.3), phase(0.4)) == (1, 2)
