"""Training with weights of the rows, stopped by held-out rows with weights of their own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from holdfast.core.validation import COUNT, POSITIVE, SEED

# Rows that are predicted at once when a network is judged.
SCORED_AT_ONCE = 8192


@dataclass(frozen=True)
class TrainingOptions:
    """How a network is trained, by Adam.

    Attributes:
        epochs: passes over the training rows, at most.
        batch_size: rows of a step; as many as there are rows: full gradients.
        learning_rate: of Adam.
        patience: epochs without a better score on held-out rows, after which training stops.
        seed: of the held-out rows, the order of the batches, and dropout.
        device: to train on; the network that is returned stays on it.

    Example:
        >>> TrainingOptions(epochs=5).batch_size
        256
    """

    epochs: int = 50
    batch_size: int = 256
    learning_rate: float = 1e-3
    patience: int = 10
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for rule, names in ((COUNT, ("epochs", "batch_size", "patience")), (POSITIVE, ("learning_rate",))):
            for name in names:
                rule.check(name, getattr(self, name))
        SEED.check("seed", self.seed)


class History(NamedTuple):
    """Scores on held-out rows after each epoch.

    Attributes:
        scores: accuracy, or minus the squared error, by the weights of the rows.
        best: the best of them, whose parameters are returned.

    Example:
        >>> History([0.5, 0.7, 0.6], 0.7).best
        0.7
    """

    scores: list[float]
    best: float


def row_losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(rows,): cross entropy of scores or of log-odds, or the squared error if targets are numbers.

    Example:
        >>> row_losses(torch.zeros(3, 2), torch.tensor([0, 1, 1])).tolist() == row_losses(
        ...     torch.zeros(3, 1), torch.tensor([0, 1, 1])
        ... ).tolist()
        True
    """
    if targets.is_floating_point():
        return (outputs.reshape(len(targets)) - targets) ** 2
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(
            outputs.reshape(len(targets)), targets.to(outputs.dtype), reduction="none"
        )
    return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")


def row_scores(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(rows,): 1 where the class is right and 0 where not; minus the squared error if targets are numbers.

    NaN where an output is.

    Example:
        >>> row_scores(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0])).tolist()
        [1.0, 0.0]
    """
    if targets.is_floating_point():
        return -((outputs.reshape(len(targets)) - targets) ** 2)
    single = outputs.ndim == 1 or outputs.shape[1] == 1
    found = (outputs.reshape(len(targets)) > 0).long() if single else outputs.argmax(1)
    unknown = outputs.reshape(len(targets), -1).isnan().any(1)
    return (found == targets).float().masked_fill(unknown, torch.nan)


@contextmanager
def evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Dropout off and batch normalisation by its averages; afterwards every layer is in the mode it was in.

    Layers may differ in their modes: a frozen batch normalisation is in evaluation mode inside a network in training.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2).eval())
        >>> with evaluation_mode(network):
        ...     [layer.training for layer in network]
        [False, False]
        >>> [layer.training for layer in network]
        [True, False]
    """
    modes = {layer: layer.training for layer in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for layer, training in modes.items():
            layer.training = training


def weighted_score(
    module: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None = None
) -> float:
    """The weighted mean of `row_scores`: accuracy by the weights of the rows.

    Example:
        >>> targets, weights = torch.tensor([1, 0]), torch.tensor([3.0, 1.0])
        >>> weighted_score(torch.nn.Identity(), torch.tensor([1.0, 1.0]), targets, weights)
        0.75
    """
    with evaluation_mode(module), torch.no_grad():
        parts = zip(inputs.split(SCORED_AT_ONCE), targets.split(SCORED_AT_ONCE), strict=True)
        found = torch.cat([row_scores(module(rows), own) for rows, own in parts]).double()
    known = torch.ones_like(found) if weights is None else weights.to(found)
    return float(known @ found / known.sum())


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: products of small networks gain nothing from a second, which waits busily for its share.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class TrainingRows(NamedTuple):
    """Rows to train on and rows to stop by.

    Attributes:
        inputs: (rows, ...).
        targets: (rows,), the numbers of the classes as integers, or floating-point numbers to predict.
        weights: (rows,), of the losses, and of the scores of held-out rows.
        held_out: (rows,), which rows are not trained on and say when to stop.

    Example:
        >>> rows = TrainingRows(torch.zeros(4, 2), torch.zeros(4), torch.ones(4), torch.arange(4) < 1)
        >>> rows.held_out.tolist()
        [True, False, False, False]
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    held_out: torch.Tensor


def train_weighted(
    module: torch.nn.Module,
    rows: TrainingRows,
    options: TrainingOptions,
    *,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = row_losses,
    weight_decay: float = 0.0,
) -> tuple[torch.nn.Module, History]:
    """Train with weighted rows; the parameters of the best weighted score on held-out rows are returned.

    Args:
        module: trained in place.
        rows: with their weights, and which of them are held out.
        options: epochs, batches, patience; its seed is that of the batches and of dropout.
        loss: (outputs, targets) -> (rows,).
        weight_decay: of Adam, added to the gradient.

    Example:
        >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        >>> rows = TrainingRows(x, (x[:, 0] > 0).long(), torch.ones(200), torch.arange(200) < 50)
        >>> options = TrainingOptions(epochs=20, batch_size=50, learning_rate=0.1)
        >>> train_weighted(torch.nn.Linear(2, 2), rows, options)[1].best > 0.9
        True
    """
    device = torch.device(options.device)
    module = module.to(device)
    inputs, targets, weights, held_out = (each.to(device) for each in rows)
    aside, own = (torch.nonzero(chosen).ravel() for chosen in (held_out, ~held_out))
    if not (len(aside) and len(own)):
        raise ValueError(f"held_out must be some of the {len(targets)} rows, not all of them, got {len(aside)}")
    optimizer = torch.optim.Adam(module.parameters(), lr=options.learning_rate, weight_decay=weight_decay)
    scores: list[float] = []
    best, best_epoch, state = -np.inf, 0, deepcopy(module.state_dict())
    # layers such as dropout draw from the generators of torch, which are the caller's again afterwards
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(options.seed)
        generator = torch.Generator().manual_seed(options.seed)
        for epoch in range(options.epochs):
            module.train()
            order = torch.randperm(len(own), generator=generator).to(device)
            for batch in own[order].split(options.batch_size):
                optimizer.zero_grad()
                (weights[batch] * loss(module(inputs[batch]), targets[batch])).mean().backward()
                optimizer.step()
            scores.append(weighted_score(module, inputs[aside], targets[aside], weights[aside]))
            if scores[-1] > best:
                best, best_epoch, state = scores[-1], epoch, deepcopy(module.state_dict())
            elif epoch - best_epoch >= options.patience:
                break
    if not np.isfinite(best):
        raise ValueError(
            "module must have a finite score on held-out rows after some epoch, got none in "
            f"{len(scores)}: use a learning rate below {options.learning_rate:g}, or look for inputs and weights that "
            "are not finite"
        )
    module.load_state_dict(state)
    return module.eval(), History(scores, best)
