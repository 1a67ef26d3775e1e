"""Small networks on digits with a coloured shortcut: all methods under one protocol, chosen without the test rows.

Settings and steps are chosen for each seed on held-out rows of the training environments: by mean accuracy (pooled), by
the worst environment (SGD, in turn or pooled; IRM; V-REx; Group DRO), by groups of equal weight (discover and balance),
and by the margin that the sampling error leaves (head). Imports torch.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import xarray as xr

from holdfast.datasets.coloured_digits import bundled_digits
from holdfast.torch.training import one_thread
from holdfast_studies.images.coloured_problem import joined, make_problem, without_colour
from holdfast_studies.images.frozen_networks import discover_attribute, fit_heads
from holdfast_studies.images.image_methods import (
    ImageMethod,
    ImageProblem,
    TrainedImages,
    environment_visits,
    group_dro,
    irm,
    mean_accuracy,
    mean_risk,
    train_method,
    v_rex,
    visiting,
    weighted_by,
    worst_environment,
)

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
STAGES = 8  # trainings: the head is not trained


@one_thread()
def run_methods(
    agreements: Sequence[float], seeds: Sequence[int], steps: int, sgd_steps: int, progress: Callable[[], None]
) -> xr.Dataset:
    """Train and judge every method on digits whose colour agrees with the label in these shares.

    The accuracy of each method on test rows; the score by which its settings were chosen, which is the margin of the
    head; whether a direction that varies was found; and the agreement of the discovered attribute with the colour, 0.5
    where nothing was found.

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
            snapshots=tuple(range(every, steps + 1, every)) if name == "pooled" else (),
            hidden=(UNITS,),
            learning_rate=LEARNING_RATE,
        )
        tried = trained.tried
        score[name], accuracy[name] = (tried.at(tried.best, each) for each in (tried.score, tried.test))
        progress()
        return trained

    decays = ImageMethod(mean_risk, {"weight_decay": WEIGHT_DECAYS})
    descent = {"step_size": STEP_SIZES, "weight_decay": (0.0,) * len(STEP_SIZES)}
    anneal, published = (float(round(ANNEALED * steps)),) * len(PENALTIES), (PUBLISHED_DECAY,) * len(PENALTIES)
    penalised = {"penalty": PENALTIES, "anneal": anneal, "weight_decay": published}
    climb = {"growth": GROWTH, "weight_decay": (PUBLISHED_DECAY,) * len(GROWTH)}
    pooled = train("pooled", decays, mean_accuracy)
    train("pooled SGD, averaged", ImageMethod(mean_risk, descent, sgd=True), worst_environment)
    in_turn = visiting(environment_visits("reshuffled", seeds, sgd_steps))
    train("in turn, averaged", ImageMethod(in_turn, descent, sgd=True), worst_environment)
    train("IRM", ImageMethod(irm, penalised), worst_environment)
    train("V-REx", ImageMethod(v_rex, penalised), worst_environment)
    train("Group DRO", ImageMethod(group_dro, climb), worst_environment)
    every_row = joined(problem.train, problem.held_out)
    heads = fit_heads(every_row, problem.test, pooled.snapshots, decays.settings)
    score["head"], accuracy["head"] = np.array(heads["margin"]), np.array(heads["test"])
    discovered = discover_attribute(problem, pooled.best, pooled.tried.best)
    train("discover and balance", decays, weighted_by(discovered.held_out), weights=discovered.train)
    train("without colour", decays, mean_accuracy, rows=without_colour(problem))
    found = np.array(discovered.about["directions"]) > 0
    by_method = {"accuracy": accuracy, "score": score}
    return xr.Dataset(
        {name: (("algorithm", "seed"), np.stack(list(each.values()))) for name, each in by_method.items()}
        | {"found": ("seed", found), "agreement": ("seed", np.where(found, discovered.about["agreement"], 0.5))},
        {"algorithm": list(accuracy)},
    )
