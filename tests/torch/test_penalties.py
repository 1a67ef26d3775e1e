"""Every method in torch against the one in jax on a linear model, and what the unbiased penalty is unbiased for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.invariance import Fish, descent, logistic_risks, squared_risks
from holdfast.algorithms.invariance.group_dro import raised_weights
from holdfast.algorithms.invariance.irm import invariance_penalty
from holdfast.algorithms.invariance.vrex import extrapolated_risk
from holdfast.algorithms.losses.logistic import LogisticRows, rows_with_intercept
from holdfast.algorithms.losses.squared import second_moments
from holdfast.torch import GroupDROLoss, environment_risks, fish_step, irm_loss, irm_penalty, vrex_loss

SIZES = (40, 25, 35)
WEIGHTS = np.array([0.7, -0.4, 0.2])


def _data(classes: bool):
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(3), SIZES)
    # Rounded to single precision, in which the rows of the logistic loss are held.
    inputs = (rng.standard_normal((len(labels), 2)) * (1 + labels[:, None])).astype(np.float32).astype(float)
    targets = inputs @ [1.0, 0.5] + labels + rng.standard_normal(len(labels))
    return inputs, (targets > 0).astype(float) if classes else targets, labels


def _outputs(weights, data):
    """(logits, targets) of each environment for a linear model with the intercept last."""
    inputs, targets, labels = data
    scores = torch.from_numpy(inputs) @ weights[:2] + weights[2]
    target = torch.from_numpy(targets)
    return [(scores[labels == e], target[labels == e]) for e in range(3)]


@pytest.fixture(params=["squared", "logistic"])
def problem(request):
    """(data, the loss of torch, the risks of jax), in double precision."""
    with jax.enable_x64(True):
        data = _data(request.param == "logistic")
        rows = [np.flatnonzero(data[2] == e) for e in range(3)]
        if request.param == "squared":
            yield data, functional.mse_loss, squared_risks(second_moments(*data[:2], rows))
        else:
            risks = logistic_risks(LogisticRows(*map(np.float64, rows_with_intercept(*data[:2], rows))))
            yield data, functional.binary_cross_entropy_with_logits, risks


def _torch_gradient(objective):
    weights = torch.tensor(WEIGHTS, requires_grad=True)
    value = objective(weights)
    (gradient,) = torch.autograd.grad(value, weights)
    return value.item(), gradient.numpy()


def test_risks_and_gradients_agree(problem):
    data, loss, risks = problem
    value, gradient = _torch_gradient(lambda w: environment_risks(_outputs(w, data), loss).mean())
    values, gradients = risks.both(jnp.asarray(WEIGHTS))
    np.testing.assert_allclose(value, values.mean(), rtol=1e-10)
    np.testing.assert_allclose(gradient, gradients.mean(0), rtol=1e-10)


def test_irm(problem):
    data, loss, risks = problem

    def objective(w):
        return jnp.mean(risks.values(w)) + 2.0 * invariance_penalty(risks.derivatives(w)[0]).mean()

    value, gradient = _torch_gradient(lambda w: irm_loss(_outputs(w, data), loss, penalty=2.0, shift=True))
    expected, slope = jax.value_and_grad(objective)(jnp.asarray(WEIGHTS))
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9)


def test_irm_without_shift(problem):
    data, loss, risks = problem
    value, _ = _torch_gradient(lambda w: irm_loss(_outputs(w, data), loss, penalty=1.0))
    w = jnp.asarray(WEIGHTS)
    expected = risks.values(w).mean() + jnp.square(risks.gradients(w) @ w).mean()
    np.testing.assert_allclose(value, expected, rtol=1e-10)


def test_vrex(problem):
    data, loss, risks = problem

    def objective(w):
        return extrapolated_risk(risks.values(w), 3.0)

    value, gradient = _torch_gradient(lambda w: vrex_loss(_outputs(w, data), loss, penalty=3.0))
    # By differences, because the gradients of jax's risks are given in closed form.
    w, step = jnp.asarray(WEIGHTS), 1e-6
    slope = [(objective(w + step * e) - objective(w - step * e)) / (2 * step) for e in jnp.eye(3)]
    np.testing.assert_allclose(value, objective(w), rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6)


def test_group_dro(problem):
    """Weights and weighted gradients of two calls in a row."""
    data, loss, risks = problem
    robust = GroupDROLoss(3, rate=0.1).double()
    weights, w = jnp.full(3, 1 / 3), jnp.asarray(WEIGHTS)
    for _ in range(2):
        _, gradient = _torch_gradient(lambda w: robust(_outputs(w, data), loss))
        values, gradients = risks.both(w)
        weights = raised_weights(weights, values, 0.1)
        np.testing.assert_allclose(robust.weights, weights, rtol=1e-9)
        np.testing.assert_allclose(gradient, weights @ gradients, rtol=1e-9)
    again = GroupDROLoss(3)
    again.load_state_dict(robust.state_dict())
    np.testing.assert_allclose(again.weights, weights, rtol=1e-6)


def test_fish(problem):
    data, loss, risks = problem
    inputs, targets, labels = (torch.from_numpy(part) for part in data)
    key = jax.random.key(5)
    algorithm = descent(Fish(step_size=0.02, meta_step_size=0.3, weight_decay=0.1), risks, jnp.asarray(WEIGHTS))
    expected = algorithm.parameters(algorithm.step(key, algorithm.init(), 0))
    order = np.asarray(jax.random.permutation(key, 3)).tolist()

    model = torch.nn.Linear(2, 1).double()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(WEIGHTS[None, :2]))
        model.bias.copy_(torch.from_numpy(WEIGHTS[2:]))
    fish_step(
        model,
        [(inputs[labels == e], targets[labels == e]) for e in order],
        lambda model, batch: loss(model(batch[0])[:, 0], batch[1]),
        lambda parameters: torch.optim.SGD(parameters, lr=0.02, weight_decay=0.1),
        meta_step_size=0.3,
    )
    found = np.append(model.weight.detach().numpy().ravel(), model.bias.detach().numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_fish_hands_on_the_buffers_of_the_copy():
    model = torch.nn.BatchNorm1d(2)
    batch = torch.arange(8.0).reshape(4, 2)
    fish_step(model, [batch], lambda model, rows: model(rows).square().mean(), lambda p: torch.optim.SGD(p, lr=0.1))
    torch.testing.assert_close(model.running_mean, 0.1 * batch.mean(0))


def test_the_unbiased_penalty_has_the_mean_of_the_population():
    """Batches of 4 from logits N(1, 1) and targets N(0, 1): D = 2 E f (f - y) = 4, so the penalty is 16.

    The square is too large by the variance of the derivative; the product within 4 standard errors of 16.
    """
    rng = torch.Generator().manual_seed(0)
    logits = 1 + torch.randn(20_000, 4, generator=rng, dtype=torch.float64)
    targets = torch.randn(20_000, 4, generator=rng, dtype=torch.float64)

    def penalties(unbiased):
        def one(f, y):
            # The derivative of the mean squared error along the scale, as irm_penalty takes it.
            parts = (slice(0, None, 2), slice(1, None, 2)) if unbiased else (slice(None), slice(None))
            return torch.prod(torch.stack([(2 * f[:, p] * (f[:, p] - y[:, p])).mean(1) for p in parts]), 0)

        return one(logits, targets)

    for unbiased in (True, False):
        pairs = zip(logits[:50], targets[:50], strict=True)
        found = [irm_penalty(*pair, functional.mse_loss, unbiased=unbiased) for pair in pairs]
        torch.testing.assert_close(torch.stack(found), penalties(unbiased)[:50])
    products, squares = penalties(True), penalties(False)
    assert abs(products.mean() - 16) < 4 * products.std() / np.sqrt(len(products))
    assert squares.mean() - 16 > 10 * squares.std() / np.sqrt(len(squares))


def test_outputs_that_cannot_be_meant():
    with pytest.raises(ValueError, match="outputs must have at least one environment, got 0"):
        vrex_loss([], functional.mse_loss)
    with pytest.raises(ValueError, match="unbiased needs at least two rows of each environment, got 1"):
        irm_penalty(torch.zeros(1), torch.zeros(1), functional.mse_loss, unbiased=True)
    with pytest.raises(ValueError, match="outputs must have 3 environments, got 1"):
        GroupDROLoss(3)([(torch.zeros(1), torch.zeros(1))], functional.mse_loss)
