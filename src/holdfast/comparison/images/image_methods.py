"""Training methods on images of two environments, many seeds and settings at once, by full gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from holdfast.comparison.images.batched_networks import (
    BatchedNetwork,
    batched_network,
    copied,
    logits,
    replace_where,
    squared_norm,
)

HIDDEN = 256
LEARNING_RATE = 1e-3  # of Adam
# Held-out rows are scored after so many steps.
SCORED_EVERY = 10
# Weights of SGD are averaged over so many steps, a whole number of cycles of two environments.
AVERAGED = 200


class ImageRows(NamedTuple):
    """Rows of several seeds; the first half of the rows is one environment, the second half the other.

    Attributes:
        inputs: (seeds, rows, pixels).
        labels: (seeds, rows), 0 and 1.
        attribute: (seeds, rows), the colour. Read by the report only, and by no method.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    attribute: torch.Tensor


class ImageProblem(NamedTuple):
    """The rows to train on, to choose by and to be tested on.

    Attributes:
        train: of the training environments.
        held_out: more rows of the training environments: all that settings are chosen by.
        test: of another environment.
        seeds: of the networks.
    """

    train: ImageRows
    held_out: ImageRows
    test: ImageRows
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class ImageMethod:
    """A method with the grid of its settings.

    Attributes:
        objective: (losses (S, C, 2), penalties (S, C, 2) of IRM, settings, step, state) -> (S, C), what is minimised.
        grid: settings, name -> one value for each of C; all of the same length.
        sgd: SGD with the step sizes of the grid and averaged weights, instead of Adam.
    """

    objective: Callable[..., torch.Tensor]
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sgd: bool = False


def mean_risk(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """The mean of the environments."""
    return losses.mean(-1)


def one_in_turn(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """One environment a step, in turn: HeteroSGD."""
    return losses[..., step % losses.shape[-1]]


def irm(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """IRMv1, with the schedule of its authors: a small penalty first, later a large one and a loss in its units."""
    weight = torch.where(torch.as_tensor(step >= grid["anneal"]), grid["penalty"], torch.ones_like(grid["penalty"]))
    return (losses.mean(-1) + weight * penalties.mean(-1)) / weight.clamp(min=1)


def v_rex(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """V-REx, the variance of the risks as the penalty, with the schedule of IRM, as its authors do."""
    weight = torch.where(torch.as_tensor(step >= grid["anneal"]), grid["penalty"], torch.ones_like(grid["penalty"]))
    return (losses.mean(-1) + weight * losses.var(-1, unbiased=False)) / weight.clamp(min=1)


def group_dro(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """Group DRO: weights of the environments grow with their losses."""
    weights = state.get("weights", torch.full_like(losses, 0.5)) * torch.exp(grid["growth"][:, None] * losses.detach())
    state["weights"] = weights / weights.sum(-1, keepdim=True)
    return (state["weights"] * losses).sum(-1)


class TrainedImages(NamedTuple):
    """What training leaves.

    Attributes:
        best: networks at the step that the rule chose, for each seed and setting.
        score: (S, C), the rule's score on held-out rows at that step.
        step: (S, C), that step.
        test: (S, C), accuracy on test rows at that step.
        held_out: (S, C, 2), accuracy in each training environment.
        last_score: (S, C), the rule's score at the last step.
        last_test: (S, C), accuracy on test rows at the last step.
        course: (records, S, C), accuracy on test rows over training, for the report.
        snapshots: networks by step.
    """

    best: BatchedNetwork
    score: np.ndarray
    step: np.ndarray
    test: np.ndarray
    held_out: np.ndarray
    last_score: np.ndarray
    last_test: np.ndarray
    course: np.ndarray
    snapshots: dict[int, BatchedNetwork]


def train_method(
    method: ImageMethod,
    problem: ImageProblem,
    rule: Callable[[torch.Tensor], torch.Tensor],
    *,
    steps: int,
    weights: torch.Tensor | None = None,
    snapshots: tuple[int, ...] = (),
    hidden: tuple[int, ...] | None = None,
    learning_rate: float | None = None,
) -> TrainedImages:
    """Train all seeds and settings at once; the step of the best score on held-out rows is chosen for each.

    Args:
        method: what is minimised, with which settings.
        problem: rows of all seeds.
        rule: right or wrong for each held-out row, (S, C, rows) -> (S, C), the score.
        steps: of full gradients.
        weights: (S, rows) of training rows; None: equal.
        snapshots: steps whose networks are returned.
        hidden: units of each hidden layer; None: two of 256.
        learning_rate: of Adam; None: 0.001.
    """
    train, device = problem.train, problem.train.inputs.device
    grid = {name: torch.tensor(values, device=device) for name, values in method.grid.items()}
    count = len(next(iter(method.grid.values())))
    sizes = (train.inputs.shape[-1], *((HIDDEN, HIDDEN) if hidden is None else hidden), 1)
    network = batched_network(sizes, seeds=problem.seeds, settings=count, device=str(device))
    judged = copied(network) if method.sgd else network
    optimizer = torch.optim.Adam(network.parameters, lr=learning_rate or LEARNING_RATE)
    best, score = copied(network), torch.full((len(problem.seeds), count), -torch.inf, device=device)
    chosen = {name: torch.zeros_like(score) for name in ("step", "test", "first", "second")}
    course, found = [], {}
    state: dict[str, torch.Tensor] = {}
    signs = train.labels[:, None]
    own = torch.ones_like(train.labels) if weights is None else weights
    own = own / own.mean(-1, keepdim=True)
    for step in range(1, steps + 1):
        scores = logits(network, train.inputs)
        entries = torch.nn.functional.softplus(scores) - signs * scores
        losses = _by_environment(own[:, None] * entries)
        # the derivative of the loss by a factor of the logits, in each environment
        penalties = _by_environment(own[:, None] * (torch.sigmoid(scores) - signs) * scores) ** 2
        objective = method.objective(losses, penalties, grid, step - 1, state)
        decay = grid["weight_decay"] / (grid["penalty"].clamp(min=1) if "penalty" in grid else 1.0)
        if "anneal" in grid:
            decay = torch.where(torch.as_tensor(step - 1 >= grid["anneal"]), decay, grid["weight_decay"])
        optimizer.zero_grad(set_to_none=True)
        (objective + decay * squared_norm(network)).sum().backward()
        if method.sgd:
            _descend(network, judged, grid["step_size"], step)
        else:
            optimizer.step()
        if step in snapshots:
            found[step] = copied(judged)
        if step % (AVERAGED if method.sgd else SCORED_EVERY) == 0:
            right, on_test = (_right(judged, rows) for rows in (problem.held_out, problem.test))
            now, tested, environments = rule(right), on_test.mean(-1), _by_environment(right)
            better = now > score
            replace_where(better, judged, best)
            score = torch.where(better, now, score)
            values = {"step": torch.full_like(now, step), "test": tested}
            values |= {"first": environments[..., 0], "second": environments[..., 1]}
            chosen = {name: torch.where(better, values[name], chosen[name]) for name in chosen}
            course.append(tested.cpu().numpy())
    held_out = torch.stack([chosen["first"], chosen["second"]], -1).cpu().numpy()
    numbers = {name: chosen[name].cpu().numpy() for name in ("step", "test")}
    last = {"last_score": now.cpu().numpy(), "last_test": tested.cpu().numpy()}
    return TrainedImages(
        best, score.cpu().numpy(), **numbers, held_out=held_out, **last, course=np.array(course), snapshots=found
    )


def _descend(network: BatchedNetwork, average: BatchedNetwork, step_sizes: torch.Tensor, step: int) -> None:
    """One step of SGD; `average` is the mean over the steps since the last score."""
    part = (step - 1) % AVERAGED + 1
    with torch.no_grad():
        for each, mean in zip(network.parameters, average.parameters, strict=True):
            gradient = each.grad
            assert gradient is not None
            each -= step_sizes[:, None, None] * gradient
            mean += (each - mean) / part


def _by_environment(values: torch.Tensor) -> torch.Tensor:
    """(S, C, 2): means of the first and of the second half of the rows."""
    return values.unflatten(-1, (2, -1)).mean(-1)


def _right(network: BatchedNetwork, rows: ImageRows) -> torch.Tensor:
    """(S, C, rows): 1 where the label is predicted."""
    with torch.no_grad():
        return ((logits(network, rows.inputs) > 0) == (rows.labels[:, None] > 0.5)).float()
