"""Small networks on digits with a coloured shortcut: all methods under one protocol, chosen without the test rows.

Settings and steps are chosen for each seed on held-out rows of the training environments: by mean accuracy (pooled), by
the worst environment (SGD, in turn or pooled; IRM; V-REx; Group DRO), by groups of equal weight (discover and balance),
and by the margin that the sampling error leaves (head). Imports torch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from holdfast.comparison.images.batched_networks import BatchedNetwork, hidden
from holdfast.comparison.images.coloured_mnist import make_problem, mean_accuracy, weighted_by, worst_environment
from holdfast.comparison.images.image_methods import (
    ImageMethod,
    ImageProblem,
    ImageRows,
    TrainedImages,
    group_dro,
    irm,
    mean_risk,
    train_method,
    v_rex,
)
from holdfast.datasets.digit_images import bundled_digits
from holdfast.embeddings.attributes import group_scores
from holdfast.embeddings.balancing import balance_rows
from holdfast.embeddings.discovery import discover
from holdfast.embeddings.linear_head import LinearHead, invariant_head_of
from holdfast.estimators.class_moments import collect_class_moments
from holdfast.estimators.grouping import Grouping
from holdfast.torch.batches import Visits

# One hidden layer: 1,200 rows with a quarter of the labels wrong do not ask for more, and CI computes it.
UNITS = 16
# Of Adam: ten times that of coloured MNIST, with a third of the steps.
LEARNING_RATE = 0.01
WEIGHT_DECAYS = (0.0, 1e-3, 3e-3)
# The value of the authors of IRM, rounded, for the methods that they compare.
PUBLISHED_DECAY = 1e-3
PENALTIES = (1e1, 1e2, 1e3)
GROWTH = (0.01, 0.1)
STEP_SIZES = (0.3, 1.0, 2.0)
# The penalty of IRM and V-REx acts after this part of the steps, as their authors do.
ANNEALED = 1 / 3
# Networks of the pooled training from which the head is chosen.
SNAPSHOTS = 4
METHODS = (
    "pooled",
    "pooled SGD, averaged",
    "in turn, averaged",
    "IRM",
    "V-REx",
    "Group DRO",
    "head",
    "discover and balance",
    "without colour",
)
POOLED, SGD, IN_TURN, IRM, VREX, DRO, HEAD, BALANCED, GREY = METHODS
STAGES = len(METHODS) - 1  # the head is not trained


class DigitResults(NamedTuple):
    """What all methods reach on one problem.

    Attributes:
        accuracy: method -> (seeds,), on test rows.
        score: method -> (seeds,), by which settings were chosen; of the head, its margin.
        found: (seeds,), whether a direction that varies was found.
        agreement: (seeds,), of the discovered attribute with the colour; 0.5 where nothing was found.
    """

    accuracy: dict[str, np.ndarray]
    score: dict[str, np.ndarray]
    found: np.ndarray
    agreement: np.ndarray


def in_turn(seeds: Sequence[int], steps: int) -> Callable[..., torch.Tensor]:
    """The objective of HeteroSGD: one environment a step, every cycle in a fresh random order, by seed."""
    orders = torch.tensor(np.stack([Visits("reshuffled", np.array([1, 1]), seed).window(0, steps) for seed in seeds]))

    def objective(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
        chosen = orders[:, step, None, None].expand(*losses.shape[:2], 1)
        return losses.gather(-1, chosen)[..., 0]

    return objective


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: products this small gain nothing from a second, which waits busily for its share."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_methods(
    agreements: Sequence[float], seeds: Sequence[int], steps: int, sgd_steps: int, progress: Callable[[], None]
) -> DigitResults:
    """Train and judge every method on digits whose colour agrees with the label in these shares.

    Args:
        agreements: in the two training environments.
        seeds: of rows and networks.
        steps: of Adam, with full gradients.
        sgd_steps: of SGD.
        progress: called after each of `STAGES` trainings.
    """
    problem = make_problem(bundled_digits(), agreements, seeds, "cpu")
    accuracy: dict[str, np.ndarray] = {}
    score: dict[str, np.ndarray] = {}

    def train(
        name: str,
        method: ImageMethod,
        rule: Callable[[torch.Tensor], torch.Tensor],
        rows: ImageProblem = problem,
        weights: torch.Tensor | None = None,
    ) -> TrainedImages:
        every = max(1, steps // SNAPSHOTS)
        trained = train_method(
            method,
            rows,
            rule,
            steps=sgd_steps if method.sgd else steps,
            weights=weights,
            snapshots=tuple(range(every, steps + 1, every)) if name == POOLED else (),
            hidden=(UNITS,),
            learning_rate=LEARNING_RATE,
        )
        best = np.argmax(trained.score, axis=1)[:, None]
        score[name], accuracy[name] = (
            np.take_along_axis(each, best, 1)[:, 0] for each in (trained.score, trained.test)
        )
        progress()
        return trained

    decays = ImageMethod(mean_risk, {"weight_decay": WEIGHT_DECAYS})
    descent = {"step_size": STEP_SIZES, "weight_decay": (0.0,) * len(STEP_SIZES)}
    anneal, published = (float(round(ANNEALED * steps)),) * len(PENALTIES), (PUBLISHED_DECAY,) * len(PENALTIES)
    penalised = {"penalty": PENALTIES, "anneal": anneal, "weight_decay": published}
    climb = {"growth": GROWTH, "weight_decay": (PUBLISHED_DECAY,) * len(GROWTH)}
    pooled = train(POOLED, decays, mean_accuracy)
    train(SGD, ImageMethod(mean_risk, descent, sgd=True), worst_environment)
    train(IN_TURN, ImageMethod(in_turn(seeds, sgd_steps), descent, sgd=True), worst_environment)
    train(IRM, ImageMethod(irm, penalised), worst_environment)
    train(VREX, ImageMethod(v_rex, penalised), worst_environment)
    train(DRO, ImageMethod(group_dro, climb), worst_environment)
    seen = _together(problem.train, problem.held_out)
    score[HEAD], accuracy[HEAD] = _fit_heads(seen, problem.test, pooled.snapshots)
    found, agreement, weights = _discover(seen, pooled)
    own, aside = _apart(weights, problem)
    train(BALANCED, decays, weighted_by(aside), weights=own)
    grey = problem._replace(train=_grey(problem.train), held_out=_grey(problem.held_out), test=_grey(problem.test))
    train(GREY, decays, mean_accuracy, rows=grey)
    return DigitResults(accuracy, score, found, agreement)


def _together(*parts: ImageRows) -> ImageRows:
    """Rows of both parts; the first half of them is the first environment."""

    def joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.cat([each.unflatten(1, (2, -1)) for each in tensors], 2).flatten(1, 2)

    return ImageRows(*map(joined, zip(*parts, strict=True)))


def _apart(weights: torch.Tensor, problem: ImageProblem) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of training rows and of held-out rows, from those of `_together`."""
    own = problem.train.labels.shape[1] // 2
    halves = weights.unflatten(1, (2, -1))
    return halves[..., :own].flatten(1), halves[..., own:].flatten(1)


def _environments(rows: ImageRows) -> np.ndarray:
    count = rows.labels.shape[1]
    return np.arange(count) // (count // 2)


def _features(network: BatchedNetwork, rows: ImageRows) -> np.ndarray:
    """(seeds, settings, rows, units)."""
    with torch.no_grad():
        return hidden(network, rows.inputs).double().numpy()


def _fit_heads(
    seen: ImageRows, test: ImageRows, snapshots: Mapping[int, BatchedNetwork]
) -> tuple[np.ndarray, np.ndarray]:
    """For each seed margin and accuracy of the head with the largest margin, over steps and weight decays."""
    features = [(_features(network, seen), _features(network, test)) for network in snapshots.values()]
    grouping = Grouping(_environments(seen), [0, 1])
    margins, accuracies = [], []
    for seed, (labels, wanted) in enumerate(zip(seen.labels.numpy(), test.labels.numpy(), strict=True)):
        tried: list[tuple[LinearHead, np.ndarray]] = []
        for own, new in features:
            for setting in range(own.shape[1]):
                moments = collect_class_moments(own[seed, setting], labels.astype(int), grouping)
                tried.append((invariant_head_of(moments), new[seed, setting]))
        # a head with which less is found to vary would win by keeping the shortcut
        head, rows = max(tried, key=lambda each: (each[0].quality.varying, each[0].quality.margin))
        log_odds = rows @ np.diff(head.coefficients, axis=0)[0] + np.diff(head.intercepts)[0]
        margins.append(head.quality.margin)
        accuracies.append(np.mean((log_odds > 0) == wanted))
    return np.array(margins), np.array(accuracies)


def _discover(seen: ImageRows, pooled: TrainedImages) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    """Whether something varies, how well it agrees with the colour, and weights of all rows that balance it."""
    features = _features(pooled.best, seen)
    found, agreement, weights = [], [], []
    for seed, setting in enumerate(np.argmax(pooled.score, axis=1)):
        labels = seen.labels[seed].numpy().astype(int)
        discovery = discover(features[seed, setting], labels, _environments(seen))
        found.append(discovery.count > 0)
        if not discovery.count:
            agreement.append(0.5)
            weights.append(np.ones(len(labels)))
            continue
        groups = group_scores(discovery.scores[:, 0], 2)
        same = float(np.mean(groups == seen.attribute[seed].numpy()))
        agreement.append(max(same, 1 - same))
        weights.append(balance_rows(labels, groups).weights)
    return np.array(found), np.array(agreement), torch.from_numpy(np.stack(weights)).float()


def _grey(rows: ImageRows) -> ImageRows:
    """Both channels hold the sum of the colours."""
    total = rows.inputs.unflatten(-1, (2, -1)).sum(-2)
    return rows._replace(inputs=torch.cat([total, total], -1))
