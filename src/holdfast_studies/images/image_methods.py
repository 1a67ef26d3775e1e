"""Training methods on images of two environments, many seeds and settings at once, and rules that choose of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from holdfast.algorithms.invariance.group_dro import raised_weights
from holdfast.algorithms.invariance.irm import invariance_penalty
from holdfast.algorithms.invariance.vrex import extrapolated_risk
from holdfast.core.validation import require
from holdfast.torch.batches import Visits
from holdfast_studies.images.batched_networks import (
    BatchedNetwork,
    batched_network,
    copied,
    drop,
    logits,
    replace_where,
    squared_norm,
)

HIDDEN = 256
LEARNING_RATE = 1e-3  # of Adam
# One stream of random numbers drops pixels and units of all networks. Seeds get independent draws, but the draws of a
# seed depend on which other seeds are trained with it.
DROPOUT_SEED = 0
# Products of training are in bfloat16 on these. Networks are judged in float32, as precise as the caller lets torch be.
HALF_PRECISION = ("cuda",)
# Held-out rows are scored after so many steps.
SCORED_EVERY = 10
# Weights of SGD are averaged over so many steps, a whole number of cycles of two environments.
AVERAGED = 200
# With dropout, steps are noisy, so a running mean of the weights is judged. Its rate of forgetting per step.
FORGET = 0.05


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
        objective: (losses (S, C, 2), penalties (S, C, 2) of IRM, settings, step, state) -> (S, C), what is minimised;
            `state` lasts for the training, and holds the parameters of the networks.
        grid: settings, name -> one value for each of C; all of the same length.
        sgd: SGD with the step sizes of the grid and averaged weights, instead of Adam.
        dropout: rates of the inputs and of the hidden units; with any, weights are averaged over the last steps.
    """

    objective: Callable[..., torch.Tensor]
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sgd: bool = False
    dropout: tuple[float, float] = (0.0, 0.0)

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """C, name -> value."""
        return tuple(dict(zip(self.grid, values, strict=True)) for values in zip(*self.grid.values(), strict=True))


def mean_risk(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """The mean of the environments."""
    return losses.mean(-1)


def one_in_turn(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """One environment a step, in turn: HeteroSGD."""
    return losses[..., step % losses.shape[-1]]


def environment_visits(order: str, seeds: Sequence[int], steps: int) -> torch.Tensor:
    """(S, steps): the environment of each step, of two, in an order of `holdfast.torch.batches.Visits`."""
    return torch.from_numpy(np.stack([Visits(order, np.array([1, 1]), seed).window(0, steps) for seed in seeds]))


def visiting(visits: torch.Tensor) -> Callable[..., torch.Tensor]:
    """One environment a step, in any order: (S, steps), the number of the environment for each seed and step."""

    def objective(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
        return losses.take_along_dim(visits[:, step, None, None], -1)[..., 0]

    return objective


def irm(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """IRMv1, with the schedule of its authors: a small penalty first, later a large one and a loss in its units."""
    weight = _annealed(grid, step)
    return (losses.mean(-1) + weight * penalties.mean(-1)) / weight.clamp(min=1)


def v_rex(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """V-REx, the variance of the risks as the penalty, with the schedule of IRM, as its authors do."""
    weight = _annealed(grid, step)
    return extrapolated_risk(losses, weight) / weight.clamp(min=1)


def _annealed(grid: Mapping, step: int) -> torch.Tensor:
    """(C,): the weight of a penalty in a step."""
    return torch.where(torch.as_tensor(step >= grid["anneal"]), grid["penalty"], torch.ones_like(grid["penalty"]))


def group_dro(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """Group DRO: weights of the environments grow with their losses."""
    weights = state.get("weights", torch.full_like(losses, 0.5))
    state["weights"] = raised_weights(weights, losses.detach(), grid["growth"][:, None])
    return (state["weights"] * losses).sum(-1)


def is_right(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """1 where the label is predicted, 0 elsewhere."""
    return ((logits > 0) == (labels > 0.5)).float()


def log_likelihood(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of the label of each row. Chooses with less noise than the share of right ones."""
    return labels * logits - torch.nn.functional.softplus(logits)


def mean_accuracy(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.mean(-1)


def worst_environment(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.unflatten(-1, (2, -1)).mean(-1).amin(-1)


def weighted_by(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The accuracy by weights of the rows of each seed."""
    return lambda right: (right * weights[:, None]).sum(-1) / weights.sum(-1)[:, None]


class Candidates(NamedTuple):
    """Trained networks to choose from: S seeds, K settings.

    Attributes:
        settings: K, name -> value.
        score: (S, K), on held-out rows at the chosen step.
        step: (S, K), that step.
        test: (S, K), accuracy on test rows at that step.
        last_score: (S, K), on held-out rows at the last step.
        last_test: (S, K), accuracy on test rows at the last step.
    """

    settings: tuple[dict[str, Any], ...]
    score: np.ndarray
    step: np.ndarray
    test: np.ndarray
    last_score: np.ndarray
    last_test: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """(S,), the number of the setting with the best score, for each seed."""
        return np.argmax(self.score, axis=1)

    def at(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(S,), of values (S, K), that of the setting with the given number."""
        return np.take_along_axis(values, numbers[:, None], 1)[:, 0].astype(float)


class TrainedImages(NamedTuple):
    """What training leaves.

    Attributes:
        best: networks at the step that the rule chose, for each seed and setting.
        tried: what they reach.
        snapshots: networks by step.
    """

    best: BatchedNetwork
    tried: Candidates
    snapshots: dict[int, BatchedNetwork]


def train_method(
    method: ImageMethod,
    problem: ImageProblem,
    rule: Callable[[torch.Tensor], torch.Tensor],
    *,
    steps: int,
    weights: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    row_score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = is_right,
    stops: np.ndarray | None = None,
    scored_every: int = SCORED_EVERY,
    snapshots: tuple[int, ...] = (),
    hidden: tuple[int, ...] | None = None,
    learning_rate: float | None = None,
    schedule: Callable[[int], float] = lambda step: 1.0,
) -> TrainedImages:
    """Train all seeds and settings at once; the step of the best score on held-out rows is chosen for each.

    Args:
        method: what is minimised, with which settings.
        problem: rows of all seeds.
        rule: of the score of each held-out row, (S, C, rows) -> (S, C), the score of a network.
        steps: of full gradients.
        weights: (S, rows) of training rows; None: equal.
        offsets: (S, rows) of training rows, added to their logits in training only; None: 0.
        row_score: (logits, labels) -> the score of each row, for the rule.
        stops: (S, C), the steps to choose, instead of those of the best score.
        scored_every: held-out rows are scored after so many steps of Adam.
        snapshots: steps whose networks are returned.
        hidden: units of each hidden layer; None: two of 256.
        learning_rate: of Adam; None: 0.001.
        schedule: steps taken -> what step sizes are multiplied by.
    """
    every = AVERAGED if method.sgd else scored_every
    require(steps >= every, f"steps must be at least {every}, after which held-out rows are scored", repr(steps))
    train, device = problem.train, problem.train.inputs.device
    grid = {name: torch.tensor(values, device=device) for name, values in method.grid.items()}
    count = len(next(iter(method.grid.values())))
    sizes = (train.inputs.shape[-1], *((HIDDEN, HIDDEN) if hidden is None else hidden), 1)
    network = batched_network(sizes, seeds=problem.seeds, settings=count, device=str(device))
    judged = copied(network) if method.sgd or any(method.dropout) else network
    random = torch.Generator(device).manual_seed(DROPOUT_SEED)
    optimizer = torch.optim.Adam(network.parameters, lr=learning_rate or LEARNING_RATE)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    best, score = copied(network), torch.full((len(problem.seeds), count), -torch.inf, device=device)
    chosen = {name: torch.zeros_like(score) for name in ("step", "test")}
    found = {}
    state: dict[str, Any] = {"parameters": network.parameters}
    signs = train.labels[:, None]
    own = torch.ones_like(train.labels) if weights is None else weights
    own = own / own.mean(-1, keepdim=True)
    for step in range(1, steps + 1):
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type in HALF_PRECISION):
            scores = logits(network, drop(train.inputs, method.dropout[0], random), method.dropout[1], random)
        scores = scores.float() if offsets is None else scores.float() + offsets[:, None]
        entries = torch.nn.functional.softplus(scores) - signs * scores
        losses = _by_environment(own[:, None] * entries)
        # the derivative of the loss by a factor of the logits, in each environment
        derivatives = _by_environment(own[:, None] * (torch.sigmoid(scores) - signs) * scores)
        penalties = invariance_penalty(derivatives[..., None])
        objective = method.objective(losses, penalties, grid, step - 1, state)
        decay = grid["weight_decay"] / (grid["penalty"].clamp(min=1) if "penalty" in grid else 1.0)
        if "anneal" in grid:
            decay = torch.where(torch.as_tensor(step - 1 >= grid["anneal"]), decay, grid["weight_decay"])
        optimizer.zero_grad(set_to_none=True)
        (objective + decay * squared_norm(network)).sum().backward()
        if method.sgd:
            _descend(network, judged, grid["step_size"] * schedule(step - 1), step)
        else:
            optimizer.step()
            rates.step()
            if judged is not network:
                _forget(judged, network)
        if step in snapshots:
            found[step] = copied(judged)
        if step % every == 0:
            with torch.no_grad():
                on_held_out, on_test = (logits(judged, rows.inputs) for rows in (problem.held_out, problem.test))
                now = rule(row_score(on_held_out, problem.held_out.labels[:, None]))
                tested = is_right(on_test, problem.test.labels[:, None]).mean(-1)
            better = now > score if stops is None else torch.as_tensor(stops == step, device=device)
            replace_where(better, judged, best)
            score = torch.where(better, now, score)
            values = {"step": torch.full_like(now, step), "test": tested}
            chosen = {name: torch.where(better, values[name], chosen[name]) for name in chosen}
    measured = (score, chosen["step"], chosen["test"], now, tested)
    return TrainedImages(best, Candidates(method.settings, *(each.cpu().numpy() for each in measured)), found)


def _descend(network: BatchedNetwork, average: BatchedNetwork, step_sizes: torch.Tensor, step: int) -> None:
    """One step of SGD; `average` is the mean over the steps since the last score."""
    part = (step - 1) % AVERAGED + 1
    with torch.no_grad():
        for each, mean in zip(network.parameters, average.parameters, strict=True):
            gradient = each.grad
            assert gradient is not None
            each -= step_sizes[:, None, None] * gradient
            mean += (each - mean) / part


def _forget(average: BatchedNetwork, network: BatchedNetwork) -> None:
    """The running mean of the weights moves towards them."""
    with torch.no_grad():
        for mean, each in zip(average.parameters, network.parameters, strict=True):
            mean.lerp_(each, FORGET)


def _by_environment(values: torch.Tensor) -> torch.Tensor:
    """(S, C, 2): means of the first and of the second half of the rows."""
    return values.unflatten(-1, (2, -1)).mean(-1)
