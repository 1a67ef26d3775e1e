"""Many small networks trained at once: the same architecture, with seeds and settings of their own."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch


class BatchedNetwork(NamedTuple):
    """Perceptrons with ReLU and one output, for S seeds and C settings at once.

    Attributes:
        weights: of each layer, (S, C, inputs, outputs).
        biases: of each layer, (S, C, 1, outputs).

    Example:
        >>> network = batched_network([4, 3, 1], seeds=[0, 1], settings=2)
        >>> logits(network, torch.zeros(2, 5, 4)).shape
        torch.Size([2, 2, 5])
    """

    weights: tuple[torch.Tensor, ...]
    biases: tuple[torch.Tensor, ...]

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """All of them; the first two dimensions are seeds and settings."""
        return self.weights + self.biases


def batched_network(
    sizes: Sequence[int], *, seeds: Sequence[int], settings: int, device: str = "cpu"
) -> BatchedNetwork:
    """Networks whose parameters depend on the seed only: Xavier's uniform weights, and biases of 0.

    Args:
        sizes: inputs, hidden units, and 1.
        seeds: one network for each, and for each of the settings.
        settings: C.
        device: where they live.

    Reference: X. Glorot, Y. Bengio, AISTATS (2010).

    Example:
        >>> network = batched_network([4, 3, 1], seeds=[0, 1], settings=2)
        >>> bool((network.weights[0][:, 0] == network.weights[0][:, 1]).all())
        True
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    weights = []
    for inputs, outputs in pairwise(sizes):
        bound = (6 / (inputs + outputs)) ** 0.5
        drawn = [torch.rand(inputs, outputs, generator=each) * 2 * bound - bound for each in generators]
        weights.append(torch.stack(drawn)[:, None].repeat(1, settings, 1, 1).to(device).requires_grad_())
    biases = [torch.zeros(len(seeds), settings, 1, size, device=device, requires_grad=True) for size in sizes[1:]]
    return BatchedNetwork(tuple(weights), tuple(biases))


def drop(values: torch.Tensor, rate: float, generator: torch.Generator) -> torch.Tensor:
    """Dropout: entries are zero with probability `rate`, and the others larger by 1 / (1 - rate).

    Example:
        >>> drop(torch.ones(1, 10_000), 0.2, torch.Generator().manual_seed(0)).unique().tolist()
        [0.0, 1.25]
    """
    if rate == 0:
        return values
    random = torch.rand(values.shape, generator=generator, device=values.device)
    return values * (random >= rate) / (1 - rate)


def hidden(
    network: BatchedNetwork, inputs: torch.Tensor, rate: float = 0.0, generator: torch.Generator | None = None
) -> torch.Tensor:
    """(S, C, rows, units): the last hidden layer of rows of each seed, (S, rows, inputs).

    With a generator, units of all hidden layers are dropped at the rate, the same ones in all settings.
    """

    def dropped(units: torch.Tensor) -> torch.Tensor:
        if generator is None or rate == 0:
            return units
        return units * drop(torch.ones_like(units[:, :1]), rate, generator)

    first, *others = network.weights[:-1]
    seeds, settings, pixels, units = first.shape
    # one product for all settings of a seed: they read the same rows, which a batched product would copy for each
    side_by_side = inputs @ first.transpose(1, 2).reshape(seeds, pixels, settings * units)
    found = side_by_side.unflatten(-1, (settings, units)).transpose(1, 2)
    # biases in the precision of the products, which may be half
    found = dropped(torch.relu(found + network.biases[0].to(found.dtype)))
    for weight, bias in zip(others, network.biases[1:-1], strict=True):
        found = found @ weight
        found = dropped(torch.relu(found + bias.to(found.dtype)))
    return found


def logits(
    network: BatchedNetwork, inputs: torch.Tensor, rate: float = 0.0, generator: torch.Generator | None = None
) -> torch.Tensor:
    """(S, C, rows): the log-odds of class 1; see `hidden`."""
    return (hidden(network, inputs, rate, generator) @ network.weights[-1] + network.biases[-1])[..., 0]


def squared_norm(network: BatchedNetwork) -> torch.Tensor:
    """(S, C): the sum of the squared parameters."""
    return sum(((each**2).sum((-2, -1)) for each in network.parameters), torch.zeros(()).to(network.weights[0]))


def copied(network: BatchedNetwork) -> BatchedNetwork:
    """A copy of the parameters."""
    return BatchedNetwork(*(tuple(each.detach().clone() for each in part) for part in network))


def replace_where(better: torch.Tensor, new: BatchedNetwork, old: BatchedNetwork) -> None:
    """Copy the parameters of `new` into `old` where `better`, (S, C), is True."""
    with torch.no_grad():
        for one, other in zip(new.parameters, old.parameters, strict=True):
            other[better] = one[better]
