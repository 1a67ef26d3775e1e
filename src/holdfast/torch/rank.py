"""The rank of layers in training: effective rank, one-way jumps, and offshoots that anneal a copy of the network.

With weight decay, SGD on deep networks loses directions of its layers one by one and does not find them again. At a
constant step size it never settles: an offshoot, a copy that goes on with a smaller step size and less weight decay,
shows what the network has found so far, without disturbing the run.

Reference: Wang and Jacot (ICLR 2024), on deep linear networks.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.completion.jumps import Jump, jumps, ranks
from holdfast.core.validation import COUNT, require

# Stages after a rank was lost: (part of the step size, part of the weight decay). Without noise first, then less bias.
ANNEALING = ((1 / 4, 1.0), (1 / 4, 0.3), (1 / 4, 0.1), (1 / 4, 0.01), (1 / 16, 0.001))


def effective_rank(weight: Tensor) -> float:
    """exp(entropy) of the singular values divided by their sum: from 1 to the number of rows or columns.

    Convolutions are matrices of (output channels) x (everything else).

    Reference: O. Roy, M. Vetterli, *The effective rank*, EUSIPCO 2007, eq. 4.

    Example, two equal singular values, and one:
        >>> round(effective_rank(torch.diag(torch.tensor([3.0, 3.0, 0.0]))), 4), effective_rank(torch.ones(4, 4))
        (2.0, 1.0)
    """
    values = singular_values(weight)
    shares = values / values.sum() if values.sum() > 0 else np.ones(1)
    shares = shares[shares > np.finfo(np.float32).eps]  # what rounding leaves of singular values that are zero
    return float(np.exp(-(shares * np.log(shares)).sum()))


def singular_values(weight: Tensor) -> np.ndarray:
    """The singular values of a layer, largest first.

    Example:
        >>> singular_values(torch.diag(torch.tensor([1.0, 2.0]))).tolist()
        [2.0, 1.0]
    """
    matrix = weight.detach().flatten(1).double()
    return torch.linalg.svdvals(matrix).cpu().numpy()


class RankMonitor:
    """Singular values of layers over training, their effective ranks and jumps.

    A direction counts as lost when its singular value falls below 0.01 of the scale, and as found again above 0.1.

    Args:
        model: whose weights of at least two dimensions are recorded.
        layers: names of parameters; None: all that qualify.

    Attributes:
        steps: at which something was recorded.

    Example, a direction of the layer is lost:
        >>> model = nn.Linear(2, 2, bias=False)
        >>> monitor = RankMonitor(model)
        >>> for step, second in enumerate([1.0, 0.5, 0.001]):
        ...     _ = model.weight.data.copy_(torch.diag(torch.tensor([1.0, second])))
        ...     _ = monitor.record(step)
        >>> monitor.ranks(), monitor.jumps()
        ({'weight': [2, 2, 1]}, {'weight': [Jump(step=2, before=2, after=1, stay=2)]})
    """

    def __init__(self, model: nn.Module, layers: Sequence[str] | None = None):
        matrices = {name: weight for name, weight in model.named_parameters() if weight.ndim >= 2}
        chosen = list(matrices) if layers is None else list(layers)
        unknown = [name for name in chosen if name not in matrices]
        require(not unknown, f"layers must be among the matrices {list(matrices)}", unknown)
        require(len(chosen) > 0, "model must have a weight of at least two dimensions", "none")
        self._weights = {name: matrices[name] for name in chosen}
        self._values: dict[str, list[np.ndarray]] = {name: [] for name in chosen}
        self.steps: list[int] = []

    def record(self, step: int) -> dict[str, float]:
        """Record the singular values now; returns the effective ranks, under names such as effective_rank/0.weight."""
        require(not self.steps or step > self.steps[-1], "step must increase from record to record", step)
        self.steps.append(step)
        for name, weight in self._weights.items():
            self._values[name].append(singular_values(weight))
        return {f"effective_rank/{name}": effective_rank(weight) for name, weight in self._weights.items()}

    def values(self, layer: str) -> np.ndarray:
        """(records, values): the singular values of a layer, largest first."""
        return np.array(self._values[layer])

    def ranks(self, scale: float | None = None) -> dict[str, list[int]]:
        """Name of a layer -> its rank at every record.

        Args:
            scale: to which singular values are compared; None: the largest of the layer at the first record.
        """
        require(len(self.steps) > 0, "ranks need at least one record", 0)
        return {
            name: ranks(np.array(recorded), recorded[0][0] if scale is None else scale).tolist()
            for name, recorded in self._values.items()
        }

    def jumps(self, scale: float | None = None) -> dict[str, list[Jump]]:
        """Name of a layer -> the changes of its rank."""
        return {name: jumps(np.array(self.steps), np.array(path)) for name, path in self.ranks(scale).items()}


def offshoot(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train: Callable[[nn.Module, torch.optim.Optimizer, int], None],
    *,
    steps: int,
    stages: Sequence[tuple[float, float]] = ANNEALING,
) -> nn.Module:
    """A copy of the network, trained on in stages of smaller step size and weight decay. The run is not touched.

    Args:
        model: in mid-training.
        optimizer: of the run, with its momenta; a copy of it goes with the copy of the model.
        train: (model, optimizer, steps) -> None, trains for this many steps.
        steps: of each stage.
        stages: (part of the learning rate, part of the weight decay), one after the other; `ANNEALING`
            if left out.

    Example, descent on (w - 1)^2 with weight decay, which goes to 2/3, and to 1 without:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1.0)
        >>> def train(model, optimizer, steps):
        ...     for _ in range(steps):
        ...         optimizer.zero_grad()
        ...         (model.weight - 1).square().sum().backward()
        ...         optimizer.step()
        >>> train(model, optimizer, 200)
        >>> copied = offshoot(model, optimizer, train, steps=200)
        >>> round(model.weight.item(), 3), round(copied.weight.item(), 2)
        (0.667, 1.0)
    """
    COUNT.check("steps", steps)
    # Copied together, so that the copy of the optimizer holds the parameters of the copy of the model.
    copied, own = deepcopy((model, optimizer))
    for rate, decay in stages:
        for group, original in zip(own.param_groups, optimizer.param_groups, strict=True):
            group["lr"] = rate * original["lr"]
            group["weight_decay"] = decay * original.get("weight_decay", 0.0)
        train(copied, own, steps)
    return copied
