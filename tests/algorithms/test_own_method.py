"""A gradient method of the user's own, in this file alone: on a table, on a factored matrix and on a torch model."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from holdfast.algorithms.invariance import Risks, descent, factored_risks
from holdfast.core.linear_algebra import array_module
from holdfast.estimators.baselines import ExplicitClassifier, ExplicitRegressor


@dataclass(frozen=True)
class Trimmed:
    """Descent on the mean of the risks that are neither the smallest nor the largest."""

    step_size: float = 0.05

    def direction(self, risks, parameters, weights, key):
        values, gradients = risks.both(parameters)
        kept = (values > values.min()) * (values < values.max()) / (0 * values + len(values) - 2)
        return array_module(values).tensordot(kept, gradients, 1), weights

    def optimizer(self):
        return optax.sgd(self.step_size)


# The third environment is corrupted: it asks for the opposite effect.
EFFECTS = np.array([1.0, 1.1, -8.0, 0.9, 1.0])


def _table():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 200)
    inputs = random.standard_normal((1000, 1))
    return inputs, inputs[:, 0] * EFFECTS[labels] + 0.1 * random.standard_normal(1000), labels


def test_on_a_table():
    inputs, targets, labels = _table()
    fitted = ExplicitRegressor(Trimmed(), steps=500, standardize=False).fit(inputs, targets, environments=labels)
    assert 0.85 < fitted.coef_[0] < 1.15
    classes = ExplicitClassifier(Trimmed(), steps=500).fit(inputs, targets > 0, environments=labels)
    assert classes.coef_[0, 0] > 1


def test_on_a_factored_matrix():
    signals = jnp.asarray(EFFECTS)[:, None, None] * jnp.eye(2)
    risks = factored_risks(
        lambda fitted: jnp.sum(jnp.square(fitted - signals), (1, 2)) / 2, lambda fitted, e: fitted - signals[e]
    )
    algorithm = descent(Trimmed(), risks, 0.1 * jnp.eye(2))
    state, step = algorithm.init(), jax.jit(algorithm.step)
    for number in range(400):
        state = step(jax.random.key(number), state, number)
    factor = algorithm.parameters(state)
    assert np.allclose(factor @ factor.T, np.eye(2), atol=0.15)


def test_on_a_torch_model():
    inputs, targets, labels = (torch.from_numpy(each) for each in _table())
    model = torch.nn.Linear(1, 1, bias=False).double()

    def both(parameters):
        residual = inputs @ parameters - targets
        each = [(residual[labels == e].square().mean(), labels == e) for e in range(5)]
        slopes = [2 * (residual[own, None] * inputs[own]).mean(0) for _, own in each]
        return torch.stack([value for value, _ in each]), torch.stack(slopes)

    risks, optimizer = Risks(both, None, None), torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(300):
        direction, _ = Trimmed().direction(risks, model.weight.detach()[0], None, None)
        model.weight.grad = direction[None]
        optimizer.step()
    assert 0.85 < model.weight.item() < 1.15
