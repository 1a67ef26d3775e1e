"""Training with weights of the rows, stopped by held-out rows with weights of their own."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from holdfast.core.validation import POSITIVE, Count, Rule, Seed, check_fields, require

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
        score: of a held-out row: accuracy (1 or 0; of numbers, minus the squared error), or likelihood, minus its loss,
            which chooses with less noise.
        averaging: share of a running mean of the weights that stays at each step; 0.95 is a mean over about 20 steps,
            several cycles of a few environments. The mean is what is scored and returned. 0: the weights themselves.

    Example:
        >>> TrainingOptions(epochs=5).batch_size
        256
    """

    epochs: Count = 50
    batch_size: Count = 256
    learning_rate: Annotated[float, POSITIVE] = 1e-3
    patience: Count = 10
    seed: Seed = 0
    device: str = "cpu"
    score: Literal["accuracy", "likelihood"] = "accuracy"
    averaging: Annotated[float, Rule("a number from 0 to below 1", lambda value: 0 <= value < 1)] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


class History(NamedTuple):
    """Scores on held-out rows after each epoch.

    Attributes:
        scores: the mean score of `TrainingOptions`, by the weights of the rows.
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
    module: torch.nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor | None = None,
    score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = row_scores,
) -> float:
    """The weighted mean of `row_scores`, accuracy by the weights of the rows, or of another score.

    Example:
        >>> targets, weights = torch.tensor([1, 0]), torch.tensor([3.0, 1.0])
        >>> weighted_score(torch.nn.Identity(), torch.tensor([1.0, 1.0]), targets, weights)
        0.75
    """
    with evaluation_mode(module), torch.no_grad():
        parts = zip(inputs.split(SCORED_AT_ONCE), targets.split(SCORED_AT_ONCE), strict=True)
        found = torch.cat([score(module(rows), own) for rows, own in parts]).double()
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
        offsets: (rows, classes), added to the outputs in training and left out afterwards
            (`holdfast.embeddings.attribute_offsets`); None: 0.

    Example:
        >>> rows = TrainingRows(torch.zeros(4, 2), torch.zeros(4), torch.ones(4), torch.arange(4) < 1)
        >>> rows.held_out.tolist()
        [True, False, False, False]
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    held_out: torch.Tensor
    offsets: torch.Tensor | None = None


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
        options: epochs, batches, patience, score; its seed is that of the batches and of dropout.
        loss: (outputs, targets) -> (rows,).
        weight_decay: of Adam, added to the gradient.

    Example:
        >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        >>> rows = TrainingRows(x, (x[:, 0] > 0).long(), torch.ones(200), torch.arange(200) < 50)
        >>> options = TrainingOptions(epochs=20, batch_size=50, learning_rate=0.1)
        >>> train_weighted(torch.nn.Linear(2, 2), rows, options)[1].best > 0.9
        True
    """
    count = int(rows.held_out.sum())
    some = 0 < count < len(rows.held_out)
    require(some, f"held_out must be some of the {len(rows.held_out)} rows, not all of them", count)
    inputs, targets, weights = (each[rows.held_out].to(options.device) for each in rows[:3])
    score = row_scores if options.score == "accuracy" else lambda outputs, own: -loss(outputs, own)
    scores: list[float] = []
    best, best_epoch, state = -np.inf, 0, deepcopy(module.state_dict())
    with closing(train_epochs(module, rows, options, loss=loss, weight_decay=weight_decay)) as epochs:
        for epoch, judged in enumerate(epochs):
            scores.append(weighted_score(judged, inputs, targets, weights, score))
            if scores[-1] > best:
                best, best_epoch, state = scores[-1], epoch, deepcopy(judged.state_dict())
            elif epoch - best_epoch >= options.patience:
                break
    advice = f"use a learning rate below {options.learning_rate:g}, or look for inputs and weights that are not finite"
    contract = "module must have a finite score on held-out rows after some epoch"
    require(bool(np.isfinite(best)), contract, f"none in {len(scores)}: {advice}")
    module.load_state_dict(state)
    return module.eval(), History(scores, best)


def train_epochs(
    module: torch.nn.Module,
    rows: TrainingRows,
    options: TrainingOptions,
    *,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = row_losses,
    weight_decay: float = 0.0,
) -> Generator[torch.nn.Module]:
    """Train on the rows that are not held out, one epoch for each item: the network, with averaged weights or its own.

    Args:
        module: trained in place.
        rows: with their weights.
        options: epochs and batches; its seed is that of the batches and of dropout.
        loss: (outputs, targets) -> (rows,).
        weight_decay: of Adam, added to the gradient.

    Example, all rows, for all epochs:
        >>> rows = TrainingRows(torch.eye(2), torch.tensor([0, 1]), torch.ones(2), torch.tensor([False, False]))
        >>> *_, module = train_epochs(torch.nn.Linear(2, 2), rows, TrainingOptions(learning_rate=0.1))
        >>> module(torch.eye(2)).argmax(1).tolist()
        [0, 1]
    """
    device = torch.device(options.device)
    module.to(device)
    inputs, targets, weights = (each.to(device) for each in rows[:3])
    offsets = None if rows.offsets is None else rows.offsets.to(device)
    own = torch.nonzero(~rows.held_out).ravel().to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=options.learning_rate, weight_decay=weight_decay)
    average = None
    if options.averaging > 0:
        average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(options.averaging))
    generator = torch.Generator().manual_seed(options.seed)
    # layers such as dropout draw from the generators of torch, which are the caller's again afterwards
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(options.seed)
        for _ in range(options.epochs):
            module.train()
            order = torch.randperm(len(own), generator=generator).to(device)
            for batch in own[order].split(options.batch_size):
                optimizer.zero_grad()
                outputs = module(inputs[batch])
                if offsets is not None:
                    outputs = _shifted(outputs, offsets[batch])
                (weights[batch] * loss(outputs, targets[batch])).mean().backward()
                optimizer.step()
                if average is not None:
                    average.update_parameters(module)
            yield module if average is None else average.module


def _shifted(outputs: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Scores of the classes plus their offsets; of log-odds, the difference of two."""
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return outputs + offsets
    return outputs + (offsets[:, 1] - offsets[:, 0]).reshape(outputs.shape)
