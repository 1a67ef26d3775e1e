"""Every published method against a plain computation of what its paper says, most of them with torch's derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from holdfast.algorithms.invariance import (
    AgreementMask,
    AverageRisk,
    Fish,
    GroupDRO,
    InvariantRiskMinimization,
    RiskExtrapolation,
    descent,
    logistic_risks,
    squared_risks,
)
from holdfast.algorithms.losses.logistic import rows_with_intercept
from holdfast.algorithms.losses.squared import second_moments

SIZES = (40, 25, 35)


@pytest.fixture(params=["squared", "logistic"])
def problem(request):
    """Three environments of different sizes: the risks, and the same by torch."""
    random = np.random.default_rng(0)
    inputs = random.standard_normal((sum(SIZES), 3))
    rows = np.split(random.permutation(len(inputs)), np.cumsum(SIZES)[:-1])
    targets = inputs @ [1.0, -0.5, 0.2] + random.standard_normal(len(inputs))
    if request.param == "logistic":
        targets = (targets > 0).astype(float)
        risks = logistic_risks(rows_with_intercept(inputs, targets, rows))
        loss = torch.nn.BCEWithLogitsLoss()
    else:
        risks = squared_risks(second_moments(inputs, targets, rows))
        loss = torch.nn.MSELoss()
    parts = [(torch.tensor(inputs[chosen]), torch.tensor(targets[chosen])) for chosen in rows]

    def reference(parameters, scale=1.0, shift=0.0):
        return torch.stack([loss((x @ parameters[:-1] + parameters[-1]) * scale + shift, y) for x, y in parts])

    return risks, reference


START = np.array([0.3, 0.7, -0.4, 0.2])


def advance(method, risks, steps):
    algorithm = descent(method, risks, jnp.asarray(START, jnp.float32))
    state, step = algorithm.init(), jax.jit(algorithm.step)
    for number in range(steps):
        state = step(jax.random.key(number), state, number)
    return np.asarray(algorithm.parameters(state))


def torch_adam(objective, steps, step_size, weight_decay):
    parameters = torch.tensor(START, requires_grad=True)
    optimizer = torch.optim.Adam([parameters], lr=step_size, weight_decay=weight_decay)
    for _ in range(steps):
        optimizer.zero_grad()
        objective(parameters).backward()
        optimizer.step()
    return parameters.detach().numpy()


def gradients(reference, parameters):
    """(environments, parameters), by torch."""
    return torch.autograd.functional.jacobian(reference, torch.tensor(parameters)).numpy()


def test_risks_and_gradients(problem):
    risks, reference = problem
    parameters = jnp.asarray(START, jnp.float32)
    assert np.allclose(risks.values(parameters), reference(torch.tensor(START)), rtol=1e-5)
    assert np.allclose(risks.gradients(parameters), gradients(reference, START), atol=1e-5)
    assert np.allclose(jax.jacobian(risks.values)(parameters), gradients(reference, START), atol=1e-5)
    for environment in range(3):
        alone = risks.gradient(parameters, jnp.asarray(environment))
        assert np.allclose(alone, risks.gradients(parameters)[environment], atol=1e-6)


def test_average_risk_is_adam(problem):
    risks, reference = problem
    expected = torch_adam(lambda w: reference(w).mean(), 60, 0.05, 0.1)
    assert np.allclose(advance(AverageRisk(0.05, 0.1), risks, 60), expected, atol=1e-4)


def test_the_penalty_of_irm_is_the_gradient_of_a_dummy_scale_and_shift(problem):
    risks, reference = problem

    def objective(parameters):
        scale, shift = torch.ones(1, dtype=torch.double), torch.zeros(1, dtype=torch.double)
        scale.requires_grad_(), shift.requires_grad_()
        values = reference(parameters, scale, shift)
        penalty = 0.0
        for value in values:
            slopes = torch.autograd.grad(value, [scale, shift], create_graph=True)
            penalty = penalty + sum(slope.pow(2).sum() for slope in slopes)
        return 0.3 * values.mean() + 0.7 * penalty

    expected = torch_adam(objective, 40, 0.02, 0.01)
    assert np.allclose(advance(InvariantRiskMinimization(0.7, 0.02, 0.01), risks, 40), expected, atol=1e-4)


def test_risk_extrapolation_adds_the_variance_of_the_risks(problem):
    risks, reference = problem
    expected = torch_adam(lambda w: reference(w).mean() + 5 * reference(w).var(unbiased=False), 40, 0.02, 0.0)
    assert np.allclose(advance(RiskExtrapolation(5.0, 0.02), risks, 40), expected, atol=1e-4)


def test_group_weights_climb_before_the_parameters_descend(problem):
    risks, reference = problem
    parameters = torch.tensor(START, requires_grad=True)
    optimizer = torch.optim.Adam([parameters], lr=0.02)
    weights = np.full(3, 1 / 3)
    for _ in range(30):
        values = reference(parameters)
        weights = weights * np.exp(0.5 * values.detach().numpy())
        weights = weights / weights.sum()
        optimizer.zero_grad()
        (torch.tensor(weights) @ values).backward()
        optimizer.step()
    assert np.allclose(advance(GroupDRO(0.5, 0.02), risks, 30), parameters.detach().numpy(), atol=1e-4)


def test_the_mask_keeps_what_environments_agree_on(problem):
    risks, reference = problem
    expected, moved = START.copy(), []
    for _ in range(25):
        each = gradients(reference, expected)
        each[:, :-1] /= np.linalg.norm(each[:, :-1], axis=1, keepdims=True)
        move = np.zeros(4)
        for coordinate in range(4):
            signs = sum(np.sign(gradient[coordinate]) for gradient in each)
            moved.append(abs(signs) > 3 * 0.9)
            if moved[-1]:
                move[coordinate] = sum(gradient[coordinate] for gradient in each) / 3
        expected = expected - 0.05 * move - 0.05 * 0.1 * expected
    assert any(moved)
    assert not all(moved)
    assert np.allclose(advance(AgreementMask(0.9, 0.05, 0.1), risks, 25), expected, atol=1e-5)


def test_fish_walks_through_the_environments_and_steps_towards_the_end(problem):
    risks, reference = problem
    expected = START.copy()
    for number in range(10):
        ahead = expected.copy()
        for environment in np.asarray(jax.random.permutation(jax.random.key(number), 3)):
            ahead = ahead - 0.1 * gradients(reference, ahead)[environment]
        expected = expected + 0.5 * (ahead - expected)
    assert np.allclose(advance(Fish(0.1, 0.5), risks, 10), expected, atol=1e-5)


def test_the_risk_of_hopeless_scores_stays_finite():
    inputs, targets = np.array([[200.0], [-200.0]]), np.array([0.0, 1.0])
    risks = logistic_risks(rows_with_intercept(inputs, targets, [np.array([0]), np.array([1])]))
    values, slopes = risks.both(jnp.array([1.0, 0.0]))
    assert np.allclose(values, 200)
    assert np.allclose(slopes[:, 0], 200)
