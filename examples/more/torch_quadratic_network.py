"""
A quadratic network in PyTorch
==============================

A network with quadratic activation, trained on batches of one environment and on pooled batches:
Example 1 of Xu, Gu and Fang (NeurIPS 2024): y = (a^T x)^2 + s(e) (b^T x)^2 with s = -3.5 or 4.5. The first neuron is in
both environments, the second one changes. Pooled training fits the mean of s, 0.5; training on one environment at a
time holds on to the first neuron alone. It takes half a minute on one core.
"""

import torch
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

from holdfast.torch import Direction, EnvironmentBatchSampler, measure_environments, washout_warning

DIMENSION, ROWS, BATCH_SIZE, STEPS, LEARNING_RATE, INIT_SCALE = 10, 16_000, 500, 200, 0.05, 0.1
STRENGTHS = torch.tensor([-3.5, 4.5])
INVARIANT, SPURIOUS = torch.eye(DIMENSION)[:2]


class QuadraticNetwork(torch.nn.Module):
    """f(x) = |W x|^2."""

    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(DIMENSION, DIMENSION, bias=False)
        self.hidden.weight.data.copy_(INIT_SCALE * torch.eye(DIMENSION))

    def forward(self, x):
        return self.hidden(x).square().sum(1)

    def share(self, neuron):
        """How much of a neuron the network has: |W a|^2."""
        return self.hidden(neuron).square().sum().item()


def loss(model, batch):
    """A quarter of the squared error around its mean in the batch.

    For x ~ N(0, I) the gradient is then 2 W (W^T W - A), A being the matrix of the environment; without the mean it
    would have a trace term that makes all neurons grow, which Algorithm 4 of the paper removes by shrinkage.
    """
    x, y = batch
    error = model(x) - y
    return (error - error.mean()).square().mean() / 4


def train(dataset, sampler):
    """SGD, and the average of the weights over the last whole cycles."""
    model = QuadraticNetwork()
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    last_cycles = STEPS - 25 * sampler.cycle_length
    for step, batch in enumerate(DataLoader(dataset, batch_sampler=sampler)):
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
        if step >= last_cycles:
            averaged.update_parameters(model)
    return averaged.module


def main():
    ways = {
        "reshuffled": {"order": "reshuffled"},
        "cyclic": {"order": "cyclic"},
        "independent": {"order": "independent"},
        "pooled": {"mixing": 1.0},
    }
    shares = {name: [] for name in ways}
    for seed in range(4):
        x = torch.randn(ROWS, DIMENSION, generator=torch.Generator().manual_seed(seed))
        labels = torch.arange(ROWS) % 2
        y = (x @ INVARIANT).square() + STRENGTHS[labels] * (x @ SPURIOUS).square()
        dataset = TensorDataset(x, y)
        for name, way in ways.items():
            sampler = EnvironmentBatchSampler(labels, BATCH_SIZE, batches_per_epoch=STEPS, seed=seed, **way)
            model = train(dataset, sampler)
            shares[name].append((model.share(INVARIANT), model.share(SPURIOUS)))

    probes = {int(e): (x[labels == e], y[labels == e]) for e in (0, 1)}
    neurons = {"invariant": Direction("hidden", INVARIANT), "spurious": Direction("hidden", SPURIOUS)}
    found = measure_environments(QuadraticNetwork(), loss, probes, directions=neurons, learning_rate=LEARNING_RATE)
    for name, strengths in found.strengths.items():
        words = ", ".join(f"{strength:.2f}" for strength in strengths.values())
        print(f"{name} neuron: strengths {words} at the start; growth {found.growth[name]:+.3f} a step")
    print("spurious neuron at a learning rate of 0.01:", washout_warning(found.strengths["spurious"], 0.01))

    print(
        "\nshare of the neurons after training, four seeds (the truth: 1 and 0; the mean over environments: 1 and 0.5)"
    )
    for name, pairs in shares.items():
        invariant, spurious = (" ".join(f"{share:5.2f}" for share in column) for column in zip(*pairs, strict=True))
        print(f"{name:12} invariant {invariant}   spurious {spurious}")


if __name__ == "__main__":
    main()
