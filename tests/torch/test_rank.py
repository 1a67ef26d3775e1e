"""Ranks of layers, jumps against those of the library, and offshoots that leave the run alone."""

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.torch import RankMonitor, effective_rank, offshoot


def test_the_effective_rank_is_the_exponential_of_the_entropy():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((5, 5)))[0] for _ in range(2))
    values = np.array([4.0, 2.0, 1.0, 1.0, 0.0])
    shares = values[:4] / 8
    found = effective_rank(torch.from_numpy(left * values @ right))
    assert found == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert effective_rank(torch.zeros(3, 3)) == 1.0
    assert effective_rank(torch.ones(2, 3, 3, 3)) == pytest.approx(1.0)


def _loss(model, target, observed):
    """Matrix completion by a deep linear network, one half of the mean squared error of the observed entries."""
    fitted = model[2].weight @ model[1].weight @ model[0].weight
    return (fitted - target)[observed].square().sum() / (2 * observed.sum())


def _train(model, optimizer, steps):
    target = torch.tensor([[1.0, 4.0], [0.25, 1.0]])
    observed = torch.tensor([[True, False], [True, True]])
    for _ in range(steps):
        optimizer.zero_grad()
        _loss(model, target, observed).backward()
        optimizer.step()


def _network():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(3)))
    for layer in model:
        nn.init.orthogonal_(layer.weight)
    return model


@pytest.mark.slow
def test_weight_decay_makes_one_way_jumps_and_an_offshoot_finds_the_missing_entry():
    """Three entries of [[1, 4], [0.25, 1]]: only a fit of rank one finds the fourth.

    Weight decay 2 lambda = 0.1 takes the second singular value of every layer; it does not come back when the decay is
    taken away, so the annealed copy has rank one and the missing entry within 5 %.
    """
    model = _network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    monitor = RankMonitor(model)
    for step in range(30):
        monitor.record(step * 100)
        _train(model, optimizer, 100)
    assert all([(jump.before, jump.after) for jump in found] == [(2, 1)] for found in monitor.jumps().values())
    before = [parameter.clone() for parameter in model.parameters()]
    copied = offshoot(model, optimizer, _train, steps=5000, stages=((1.0, 0.01), (1.0, 0.0)))
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert optimizer.param_groups[0]["lr"] == 0.1
    fitted = (copied[2].weight @ copied[1].weight @ copied[0].weight).detach()
    assert effective_rank(fitted) < 1.01
    assert fitted[0, 1].item() == pytest.approx(4.0, rel=0.05)


def test_an_offshoot_has_momenta_of_its_own_and_the_stages_that_were_given():
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.1)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    velocity = optimizer.state[model.weight]["momentum_buffer"].clone()
    seen = []

    def train(copied, own, steps):
        assert own.param_groups[0]["params"][0] is copied.weight
        seen.append((own.param_groups[0]["lr"], own.param_groups[0]["weight_decay"], steps))
        copied(torch.ones(1, 1)).sum().backward()
        own.step()

    copied = offshoot(model, optimizer, train, steps=3, stages=((0.5, 1.0), (0.1, 0.0)))
    assert seen == [(0.25, 0.1, 3), (0.05, 0.0, 3)]
    assert torch.equal(optimizer.state[model.weight]["momentum_buffer"], velocity)
    assert copied.weight is not model.weight


def test_records_and_layers_that_cannot_be_meant():
    model = nn.Linear(2, 2)
    monitor = RankMonitor(model)
    with pytest.raises(ValueError, match="ranks need at least one record, got 0"):
        monitor.ranks()
    monitor.record(3)
    with pytest.raises(ValueError, match="step must increase from record to record, got 3"):
        monitor.record(3)
    assert monitor.values("weight").shape == (1, 2)
    with pytest.raises(ValueError, match=r"layers must be among the matrices \['weight'\], got \['bias'\]"):
        RankMonitor(model, ["bias"])
    with pytest.raises(ValueError, match="model must have a weight of at least two dimensions, got none"):
        RankMonitor(nn.BatchNorm1d(2))
