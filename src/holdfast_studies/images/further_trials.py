"""Further ideas on coloured MNIST, each against what it would replace, by rules written down before the first run.

    python -m holdfast_studies.images.further_trials --data FOLDER --out further_trials.json

FOLDER holds the IDX files of MNIST. Rows, network and optimiser are those of `coloured_mnist`. Seeds 1002 to 1004 were
looked at before; 1005 to 1014 were not, and are run once. A gain is clear if the mean over the first is above zero, and
so is the interval of 95 % over the others, seed by seed. The rules, and what is expected:

- discover and offset, decaying: the last training of `discover and remove`, by offsets, with dropout of 0.4 and a
  weight decay of 0.0003, as seeds 0 to 9 chose. The step size falls to 0, linearly in 600 steps, or as a cosine in 600
  or 300; the likelihood of held-out rows, balanced, chooses schedule and step. Against: a constant step size, with the
  same rule for the step. Expected: a gain of 0.003 at most, since a running mean of the weights is judged already.
- in turn, growing and decaying: one environment a step, with step sizes that grow linearly from 0.2 to 2 or 0.4 to 4,
  or fall as far; worst environment chooses step and setting, as for the constant step sizes 1 and 2. Expected: growing
  ends where the growth of the colour is smallest, and gains a little with 0.9 and 0.3; nothing with 0.8 and 0.9.
- in turn, amplified: the gradient is that of the mean plus k times how the environment differs from it, at the length
  that the gradient of the environment has; k of 2, 5, 10, 30, step size 1, worst environment. The correlations 0.6 and
  0.8 of the colour change sign from k = 7 on, so that it could be washed out with 0.8 and 0.9; the rule would not show
  it there, so that the last step with the best k on test is recorded as well.
- head after in turn: `invariant_head` on the network of the constant step sizes 1 and 2 after 800 steps, by its own
  margin. Against: the head after pooled training, at 400 or 600 steps. Expected: a gain below 0.01, with 0.9 and 0.3.
- directions of variances (`second_moments`), in the pooled network: expected to find the colour, in 99 % of the images
  or more, and nothing among images of one colour.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from holdfast_studies.images.attribute_removal import HIDDEN_DROPOUT, adjustment
from holdfast_studies.images.coloured_mnist import POOLED, SNAPSHOT_EVERY
from holdfast_studies.images.coloured_problem import train_on_mnist
from holdfast_studies.images.frozen_networks import DiscoveredAttribute, discover_attribute, fit_heads
from holdfast_studies.images.image_methods import (
    AVERAGED,
    ImageMethod,
    ImageProblem,
    log_likelihood,
    mean_risk,
    one_in_turn,
)
from holdfast_studies.images.recorded_trials import CONFIRMED, LOOKED_AT
from holdfast_studies.images.recording import record
from holdfast_studies.images.second_moments import variances_of_features
from holdfast_studies.images.selection import (
    Candidates,
    candidates,
    chosen_results,
    mean_accuracy,
    only,
    setting_list,
    weighted_by,
    worst_environment,
)

OF_POOLED = ("discover and offset, constant", "discover and offset, decaying", "head after pooled")
IN_TURN = ("in turn, constant", "in turn, growing", "in turn, decaying", "head after in turn")
AMPLIFIED = "in turn, amplified"
PROTOCOL = (*OF_POOLED, *IN_TURN, AMPLIFIED, "pooled")
# What seeds 0 to 9 chose on held-out rows.
DROPOUT, DECAY = (0.4, HIDDEN_DROPOUT), 3e-4
# SGD takes so many times the steps of Adam.
LONGER = 4 / 3
CONSTANT_SIZES = (1.0, 2.0)
RANGES = ((0.2, 2.0), (0.4, 4.0))
AMPLIFICATIONS = (2.0, 5.0, 10.0, 30.0)


def falling(step: int, grid: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """(C,): from 1 to 0 within `horizon` steps, linearly or as a cosine; 1 where `falls` is 0.

    Example:
        >>> grid = {"horizon": torch.full((3,), 10.0), "cosine": torch.tensor([0.0, 0.0, 1.0])}
        >>> grid["falls"] = torch.tensor([0.0, 1.0, 1.0])
        >>> [falling(step, grid).round(decimals=3).tolist() for step in (0, 5, 12)]
        [[1.0, 1.0, 1.0], [1.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    """
    progress = (step / grid["horizon"]).clamp(max=1.0)
    risen = torch.where(grid["cosine"] > 0, (1 - torch.cos(math.pi * progress)) / 2, progress)
    return 1 - grid["falls"] * risen


def linear(step: int, grid: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """(C,): factors that take the step size from `step_size` to `last` within `horizon` steps.

    Example:
        >>> grid = {"step_size": torch.tensor([1.0]), "last": torch.tensor([3.0]), "horizon": torch.tensor([10.0])}
        >>> linear(5, grid).tolist()
        [2.0]
    """
    progress = (step / grid["horizon"]).clamp(max=1.0)
    return 1 + (grid["last"] / grid["step_size"] - 1) * progress


def amplified(losses: torch.Tensor, penalties: torch.Tensor, grid: Mapping, step: int, state: dict) -> torch.Tensor:
    """One environment a step, in turn, with its difference from the mean gradient amplified, at the same length.

        g = mean + k (g_e - mean),    the step goes along g |g_e| / |g|

    Returns an inner product of the parameters whose gradient is that.
    """
    parameters = state["parameters"]
    each = [torch.autograd.grad(losses[..., number].sum(), parameters, retain_graph=True) for number in (0, 1)]
    own = each[step % 2]
    factor = grid["amplification"][:, None, None]
    mean = [(one + other) / 2 for one, other in zip(*each, strict=True)]
    larger = [middle + factor * (one - middle) for middle, one in zip(mean, own, strict=True)]
    scale = (_squares(own) / _squares(larger).clamp(min=1e-30)).sqrt()
    products = ((one * gradient).sum((-2, -1)) for one, gradient in zip(parameters, larger, strict=True))
    return scale * sum(products, torch.zeros_like(scale))


def _squares(gradient: Sequence[torch.Tensor]) -> torch.Tensor:
    """(S, C): the squared length."""
    return torch.stack([(each**2).sum((-2, -1)) for each in gradient]).sum(0)


def run_trials(
    problem: ImageProblem, steps: int, finished: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(trial, results) on one problem, as they come; what is finished is left out."""
    left = set(PROTOCOL).difference(finished)
    if left.intersection((*OF_POOLED, "pooled")):
        snapshots = tuple(range(2 * SNAPSHOT_EVERY, steps + 1, SNAPSHOT_EVERY)) or (steps,)
        pooled = train_on_mnist(POOLED, problem, mean_accuracy, steps=steps, snapshots=snapshots)
        best = np.argmax(pooled.score, axis=1)
        found = discover_attribute(problem, pooled.best, best)
    if left.intersection(OF_POOLED):
        tried = _without_attribute(problem, found, steps)
        constant, decaying = (only(tried, [each["falls"] == own for each in tried.settings]) for own in (0, 1))
        heads = _heads(problem, pooled.snapshots, setting_list(POOLED))
        yield from zip(OF_POOLED, (chosen_results(constant), chosen_results(decaying), heads), strict=True)
    longer = max(AVERAGED, int(LONGER * steps))
    if left.intersection(IN_TURN):
        yield from zip(IN_TURN, _in_turn(problem, longer), strict=True)
    if AMPLIFIED in left:
        grid = {"amplification": AMPLIFICATIONS} | _repeated(len(AMPLIFICATIONS), step_size=1.0, weight_decay=0.0)
        method = ImageMethod(amplified, grid, sgd=True)
        yield (
            AMPLIFIED,
            chosen_results(candidates(method, train_on_mnist(method, problem, worst_environment, steps=longer))),
        )
    if "pooled" in left:
        variances = variances_of_features(problem, pooled.best, best, found)
        about = {"means": found.about, "variances": variances}
        yield "pooled", chosen_results(candidates(POOLED, pooled)) | {"discovery": about}


def _in_turn(problem: ImageProblem, steps: int) -> Iterator[dict[str, Any]]:
    """The results of one environment a step: with constant, growing and falling step sizes, and of heads."""
    constant = tuple((size, size) for size in CONSTANT_SIZES)
    first, last = zip(*constant, *RANGES, *((last, first) for first, last in RANGES), strict=True)
    grid = {"step_size": first, "last": last} | _repeated(len(first), horizon=float(steps), weight_decay=0.0)
    method = ImageMethod(one_in_turn, grid, sgd=True, schedule=linear)
    trained = train_on_mnist(method, problem, worst_environment, steps=steps, snapshots=(steps,))
    tried = candidates(method, trained)
    for sign in (0, 1, -1):
        yield chosen_results(
            only(tried, [np.sign(each["last"] - each["step_size"]) == sign for each in tried.settings])
        )
    yield _heads(problem, trained.snapshots, setting_list(method)[: len(constant)])


def _without_attribute(problem: ImageProblem, found: DiscoveredAttribute, steps: int) -> Candidates:
    """Trained by offsets and with dropout, with a constant step size and with falling ones."""
    horizons = (float(steps), float(steps), float(steps), float(steps // 2))
    grid = {
        "falls": (0.0, 1.0, 1.0, 1.0),
        "cosine": (0.0, 0.0, 1.0, 1.0),
        "horizon": horizons,
        "weight_decay": (DECAY,) * len(horizons),
    }
    method = ImageMethod(mean_risk, grid, dropout=DROPOUT, schedule=falling)
    _, offsets = adjustment("offsets", problem.train.labels, found.groups, found.train)
    rule = weighted_by(found.held_out)
    return candidates(
        method, train_on_mnist(method, problem, rule, steps=steps, offsets=offsets, row_score=log_likelihood)
    )


def _heads(problem: ImageProblem, snapshots: Mapping, settings: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    found = fit_heads(problem.held_out, problem.test, snapshots, settings)
    return {name: np.round(values, 5).tolist() for name, values in found.items()}


def _repeated(count: int, **values: float) -> dict[str, tuple[float, ...]]:
    """Settings that are the same in all networks."""
    return {name: (value,) * count for name, value in values.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the trials and write them as JSON; with a file that exists, what it lacks."""
    about = "Coloured MNIST: further ideas, each against what it would replace."
    record(about, PROTOCOL, run_trials, arguments, seeds=range(LOOKED_AT.start, CONFIRMED.stop))


if __name__ == "__main__":
    main()
