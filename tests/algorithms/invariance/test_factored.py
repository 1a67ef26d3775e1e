"""The gradients of the explicit methods on matrices are those of what they minimise, and where that leads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.algorithms.invariance import Fish, InvariantRiskMinimization, RiskExtrapolation, descent, factored_risks
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.questions.explicit_methods import barrier, penalised_share

DIMENSION = 3


def _signals(seed=0):
    random = np.random.default_rng(seed)
    signals = random.standard_normal((2, DIMENSION, DIMENSION))
    fitted = random.standard_normal((DIMENSION, DIMENSION))
    return jnp.asarray(signals + signals.swapaxes(1, 2)), jnp.asarray(fitted)


def _risks(factor, signals, scale=1.0):
    return jnp.sum(jnp.square(scale * factor @ factor.T - signals), (1, 2)) / 2


def _direction(method, factor, signals):
    """Twice of it is the gradient in U: a gradient G in P counts as G U."""
    risks = factored_risks(
        lambda fitted: jnp.sum(jnp.square(fitted - signals), (1, 2)) / 2, lambda fitted, e: fitted - signals[e]
    )
    return 2 * method.direction(risks, factor, jnp.full(2, 0.5), jax.random.key(0))[0]


def test_extrapolation_is_the_gradient_of_mean_and_variance():
    signals, factor = _signals()

    def objective(factor):
        values = _risks(factor, signals)
        return values.mean() + 0.3 * jnp.var(values)

    assert np.allclose(_direction(RiskExtrapolation(0.3), factor, signals), jax.grad(objective)(factor), rtol=1e-4)


def test_invariance_is_the_gradient_of_the_penalised_risk():
    signals, factor = _signals()

    def objective(factor):
        along = jax.jacobian(lambda scale: _risks(factor, signals, scale))(1.0)
        return 0.7 * _risks(factor, signals).mean() + 0.3 * jnp.sum(jnp.square(along))

    seen = _direction(InvariantRiskMinimization(0.3), factor, signals)
    assert np.allclose(seen, jax.grad(objective)(factor), rtol=1e-4)


def _descend_irm(penalty, bias, heterogeneity, steps=4000, step_size=0.05):
    """IRM on the two shares alone, U U^T = diag(p, q): a second implementation, in plain NumPy."""
    p = q = 1e-6
    for _ in range(steps):
        along = np.array([p * (p - 1) + q * (q - bias - sign * heterogeneity) for sign in (-1, 1)])
        slopes = np.array([2 * q - bias - sign * heterogeneity for sign in (-1, 1)])
        slope_p = p - 1 + 2 * penalty * along.mean() * (2 * p - 1)
        slope_q = q - bias + 2 * penalty * np.mean(along * slopes)
        p, q = p * (1 - step_size * slope_p) ** 2, q * (1 - step_size * slope_q) ** 2
    return p, q


@pytest.mark.parametrize("penalty", [0.3, 1.0, 3.0])
def test_irm_rests_at_the_predicted_share(penalty):
    p, q = _descend_irm(penalty, 1.0, 8.0)
    assert p == pytest.approx(1, abs=0.02)
    # The equation takes p = 1; the coupling of p and q is of second order in q.
    assert q == pytest.approx(penalised_share(penalty, 1.0, 8.0), rel=0.05)


@pytest.mark.parametrize("penalty", [10.0, 30.0])
def test_a_strong_penalty_stops_irm_at_the_barrier(penalty):
    p, _ = _descend_irm(penalty, 1.0, 8.0, step_size=0.005, steps=20_000)
    assert p == pytest.approx(barrier(penalty), rel=0.05)


@pytest.mark.parametrize("side", [0.9, 1.1])
@pytest.mark.parametrize("meta_step_size", [0.25, 1.0])
def test_fish_shrinks_a_small_direction_where_hetero_sgd_does(side, meta_step_size):
    strengths = 1.0 + side * float(two_point_threshold(0.1, 1.0)) * jnp.array([-1.0, 1.0])
    risks = factored_risks(lambda p: jnp.square(p[0, 0] - strengths) / 2, lambda p, e: p - strengths[e])
    algorithm = descent(Fish(0.1, meta_step_size), risks, jnp.full((1, 1), 1e-4))
    after = algorithm.parameters(algorithm.step(jax.random.key(0), algorithm.init(), 0))
    assert (after.item() < 1e-4) == (side > 1)
