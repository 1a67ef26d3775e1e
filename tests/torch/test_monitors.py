"""Monitors against closed forms: on the quadratic network growth is known, and training follows it."""

import itertools
import sys
import types
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.sensing.environments import table
from holdfast.theory import exponents
from holdfast.torch import (
    Direction,
    EnvironmentBatchSampler,
    growth_rate,
    lightning_callback,
    measure_environments,
    washout_warning,
)

STRENGTHS = {"a": -5.0, "b": 7.0}
ALPHA = 1e-4


class QuadraticNetwork(nn.Module):
    """f(x) = |W x|^2, with W = alpha I at the start."""

    def __init__(self, dimension):
        super().__init__()
        self.hidden = nn.Linear(dimension, dimension, bias=False, dtype=torch.float64)
        self.hidden.weight.data.copy_(ALPHA * torch.eye(dimension))

    def forward(self, x):
        return self.hidden(x).square().sum(1)


def _loss(model, batch):
    """A quarter of the squared error: its gradient with respect to W is W G, with G = mean (f - y) x x^T."""
    return (model(batch[0]) - batch[1]).square().mean() / 4


def _quadratic_data():
    """Example 1 with neurons e_1 (invariant) and e_2 (spurious): y = x_1^2 + s(e) x_2^2.

    Samples come with all changes of their signs, so that G is diagonal and e_2 an exact eigenvector.
    """
    base = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signs = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=3)), dtype=torch.float64)
    x = (base[:, None] * signs).reshape(-1, 3)
    return {label: (x, x[:, 0] ** 2 + s * x[:, 1] ** 2) for label, s in STRENGTHS.items()}


def _known_strengths(data):
    """xi_e = -e_2^T G_e e_2 at P = 0, that is the mean of y x_2^2: s E x_2^4 + E x_1^2 x_2^2."""
    return {label: (y * x[:, 1] ** 2).mean().item() for label, (x, y) in data.items()}


def test_growth_on_the_quadratic_network_is_that_of_the_theory():
    data, model, eta = _quadratic_data(), QuadraticNetwork(3), 0.02
    found = measure_environments(
        model, _loss, data, learning_rate=eta, directions={"spurious": Direction("hidden", torch.eye(3)[1])}
    )
    known = _known_strengths(data)
    for label, strength in known.items():
        # Up to the size of P = alpha^2 I, of which a few fourth moments enter.
        assert found.strengths["spurious"][label] == pytest.approx(strength, abs=50 * ALPHA**2)
    expected = exponents(table(list(known.values())), eta).item()
    assert found.growth["spurious"] == pytest.approx(expected, abs=1e-6)
    assert found.scalars()["growth/spurious"] == found.growth["spurious"]


@pytest.mark.parametrize("eta", [0.005, 0.04])
def test_training_in_cycles_grows_at_the_measured_rate(eta):
    """Signs of the exponent differ at the two step sizes; 20 steps leave P below 1e-4, which bounds the error."""
    data, model = _quadratic_data(), QuadraticNetwork(3)
    direction = Direction("hidden", torch.eye(3)[1])
    predicted = measure_environments(model, _loss, data, learning_rate=eta, directions={"v": direction}).growth["v"]
    for step in range(20):
        (gradient,) = torch.autograd.grad(_loss(model, data["ab"[step % 2]]), [model.hidden.weight])
        model.hidden.weight.data -= eta * gradient
    grown = np.log(model.hidden.weight.detach()[:, 1].norm().item() / ALPHA) / 20
    assert (predicted < 0) == (eta == 0.04)
    assert grown == pytest.approx(predicted, abs=1e-3 * abs(predicted))


def test_gradients_norms_and_conflicts_by_hand():
    """Linear model, squared error: g_e = 2 mean (w x - y) x."""
    model = nn.Linear(2, 1, bias=False)
    rng = torch.Generator().manual_seed(1)
    batches = {e: (torch.randn(5, 2, generator=rng), torch.randn(5, 1, generator=rng)) for e in range(3)}
    found = measure_environments(
        model, lambda m, b: (m(b[0]) - b[1]).square().mean(), batches, weights={0: 2, 1: 1, 2: 1}
    )
    w = model.weight.detach().numpy()[0]
    g = np.array([2 * ((x.numpy() @ w - y.numpy()[:, 0])[:, None] * x.numpy()).mean(0) for x, y in batches.values()])
    norms = np.linalg.norm(g, axis=1)
    np.testing.assert_allclose(list(found.gradient_norms.values()), norms, rtol=1e-5)
    for (i, j), cosine in found.conflicts.items():
        assert cosine == pytest.approx(g[i] @ g[j] / norms[i] / norms[j], abs=1e-5)
    share = np.array([0.5, 0.25, 0.25])
    spread = share @ np.square(g - share @ g).sum(1)
    assert found.heterogeneity == pytest.approx(np.sqrt(spread) / np.linalg.norm(share @ g), rel=1e-4)


def test_conflicts_of_many_environments_are_summarised():
    model = nn.Linear(2, 1, bias=False)
    turned = {e: torch.tensor([[np.cos(e), np.sin(e)]], dtype=torch.float32) for e in range(7)}
    found = measure_environments(model, lambda m, x: m(x).mean(), turned)
    scalars = found.scalars()
    pairs = [np.cos(a - b) for a, b in itertools.combinations(range(7), 2)]  # the gradient is the input
    assert scalars["conflict/least"] == pytest.approx(min(pairs), abs=1e-6)
    assert scalars["conflict/mean"] == pytest.approx(np.mean(pairs), abs=1e-6)
    assert len([name for name in scalars if name.startswith("conflict")]) == 2


def test_a_measurement_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 1))
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batches = {e: torch.randn(8, 2) for e in "ab"}
    first, second = (measure_environments(model, lambda m, x: m(x).mean(), batches) for _ in range(2))
    assert first == second  # no dropout
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert [module.training for module in model] == [True, False, True, True]
    assert all(parameter.grad is None for parameter in model.parameters())


def test_frozen_and_unused_parameters_do_not_matter():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    found = measure_environments(model, lambda m, x: m[1](x).mean(), {"a": torch.ones(1, 2)})
    assert found.gradient_norms["a"] == pytest.approx(np.sqrt(3))  # d/dw = x = (1, 1), d/db = 1


def test_growth_is_weighted_by_visits():
    expected = exponents(table([-5.0, 7.0], [0.25, 0.75]), 0.1).item()
    assert growth_rate(STRENGTHS, 0.1, {"a": 1, "b": 3}) == pytest.approx(expected, abs=1e-6)
    assert growth_rate({"a": -10.0}, 0.1) == -np.inf


def test_the_warning_says_why():
    assert "never change sign" in washout_warning({"a": 0.1, "b": 0.9}, 0.1)
    assert "identical" in washout_warning({"a": 1.0, "b": 1.0}, 0.1)
    # Strengths 2 -+ 2.1: the exponent is negative only where the iteration is no longer bounded.
    assert "only dies out above" in washout_warning({"a": -0.1, "b": 4.1}, 0.1)
    assert washout_warning(STRENGTHS, 0.1) is None
    assert "No step size" in washout_warning(STRENGTHS, 0.02, largest_learning_rate=0.05)
    for eta in (0.16, 0.2, 0.25):  # the exponent is still negative, but the iteration is no longer bounded
        assert growth_rate(STRENGTHS, eta) < 0
        assert "above the window from 0.05714 to 0.1485" in washout_warning(STRENGTHS, eta)
    assert washout_warning({"a": -1.0, "b": -2.0}, 0.1) is None
    assert "invariant signal is not held" in washout_warning(STRENGTHS, 0.1, largest_learning_rate=0.09)
    assert "between 0.05714 and 0.06" in washout_warning(STRENGTHS, 0.02, largest_learning_rate=0.06)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"directions": {"v": Direction("0", torch.ones(2))}}, "learning_rate must be given with directions, got None"),
        (
            {"directions": {"v": Direction("1", torch.ones(2))}, "learning_rate": 0.1},
            "layer must be one whose weights are trained, such as '0.weight' without .weight, got 1.weight",
        ),
        (
            {"directions": {"v": Direction("0", torch.ones(3))}, "learning_rate": 0.1},
            r"vector must have one number for each input of '0', got \(3,\)",
        ),
        ({"weights": {"b": 1.0}}, r"weights must have a number for each of \['a'\], got \['b'\]"),
    ],
)
def test_settings_that_cannot_be_meant(given, message):
    model = nn.Sequential(nn.Linear(2, 1))
    with pytest.raises(ValueError, match=message):
        measure_environments(model, lambda m, x: m(x).mean(), {"a": torch.ones(1, 2)}, **given)


def test_the_lightning_callback_logs_every_so_many_steps(monkeypatch):
    """Lightning is not a dependency: a stand-in has what the callback uses of it."""
    stand_in = types.ModuleType("lightning.pytorch")
    stand_in.Callback = type("Callback", (), {})
    package = types.ModuleType("lightning")
    package.__spec__ = ModuleSpec("lightning", None)
    monkeypatch.setitem(sys.modules, "lightning", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", stand_in)

    class Module(nn.Linear):
        logged = ()

        def log_dict(self, values):
            self.logged = (*self.logged, values)

    module = Module(2, 1)
    callback = lightning_callback(lambda m, x: m(x).mean(), {"a": torch.ones(1, 2)}, every=2)
    assert isinstance(callback, stand_in.Callback)
    for step in range(1, 5):
        callback.on_train_batch_end(types.SimpleNamespace(global_step=step), module, None, None, step - 1)
    assert [sorted(values) for values in module.logged] == [["gradient_norm/a", "heterogeneity", "loss/a"]] * 2


def test_without_lightning_a_message_says_what_to_install(monkeypatch):
    for name in ("lightning", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"lightning_callback needs Lightning, .*: pip install lightning"):
        lightning_callback(lambda m, x: m(x).mean(), {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch, about what Lightning calls
def test_a_lightning_trainer_with_batches_of_one_environment(tmp_path):
    """Two epochs for real: batches of one environment, in the order of the sampler, and measurements in the log."""
    lightning = pytest.importorskip("lightning.pytorch")
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(120, 3, generator=random)
    labels = ["a"] * 60 + ["b"] * 60
    codes = torch.tensor([["a", "b"].index(each) for each in labels])
    dataset = torch.utils.data.TensorDataset(inputs, inputs[:, :1] * (1 + codes[:, None]), codes)
    sampler = EnvironmentBatchSampler(labels, batch_size=10, dataset=dataset, seed=0)
    seen, logged = [], []

    class Regression(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch, number):
            x, y, own = batch
            seen.append(set(own.tolist()))
            return torch.nn.functional.mse_loss(self.layer(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.05)

        def log_dict(self, values, **settings):
            logged.append(values)
            super().log_dict(values, **settings)

    def loss(module, batch):
        return torch.nn.functional.mse_loss(module.layer(batch[0]), batch[1])

    probes = {name: tuple(part[codes == code] for part in dataset.tensors[:2]) for code, name in enumerate("ab")}
    expected = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        expected += [{["a", "b"].index(name)} for name in sampler.visited()]
    sampler.set_epoch(0)
    trainer = lightning.Trainer(
        max_epochs=2,
        callbacks=[lightning_callback(loss, probes, every=4)],
        use_distributed_sampler=False,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    module = Regression()
    trainer.fit(module, torch.utils.data.DataLoader(dataset, batch_sampler=sampler))
    assert seen == expected
    assert len(logged) == len(expected) // 4
    after = measure_environments(module, loss, probes).scalars()
    assert set(trainer.callback_metrics) >= set(after)
    assert float(trainer.callback_metrics["loss/a"]) == pytest.approx(after["loss/a"], rel=1e-5)  # after the last step
