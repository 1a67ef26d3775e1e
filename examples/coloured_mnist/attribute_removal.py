"""Networks that do without a discovered attribute: by weights or by offsets, with dropout, and fitted to all rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from recording import together

from holdfast.embeddings.balancing import attribute_offsets
from holdfast_studies.images.coloured_problem import interleaved, joined, train_on_mnist
from holdfast_studies.images.frozen_networks import DiscoveredAttribute
from holdfast_studies.images.image_methods import (
    Candidates,
    ImageMethod,
    ImageProblem,
    log_likelihood,
    mean_risk,
    weighted_by,
)

# Of the inputs. A network of two colours can learn the images of a rare group by heart, and hidden pixels prevent it.
DROPOUT_RATES = (0.4, 0.6)
HIDDEN_DROPOUT = 0.5
DECAYS = (3e-4, 1e-3)


def with_dropout(rates: Sequence[float]) -> tuple[ImageMethod, ...]:
    """The mean risk with dropout, a method for each rate."""
    grid = {"weight_decay": DECAYS}
    return tuple(ImageMethod(mean_risk, grid, dropout=(rate, HIDDEN_DROPOUT)) for rate in rates)


def remove_attribute(problem: ImageProblem, found: DiscoveredAttribute, remedy: str, steps: int) -> Candidates:
    """Train with dropout and without the attribute; steps are chosen by the likelihood of held-out rows, balanced.

    Args:
        problem: rows of all seeds.
        found: the attribute.
        remedy: weights, or offsets of the logits.
        steps: of full gradients.
    """
    weights, offsets = adjustment(remedy, problem.train.labels, found.groups, found.train)
    rule = weighted_by(found.held_out)
    parts = []
    for method in with_dropout(DROPOUT_RATES):
        trained = train_on_mnist(
            method, problem, rule, steps=steps, weights=weights, offsets=offsets, row_score=log_likelihood
        )
        common = {"remedy": remedy, "dropout": method.dropout[0]}
        parts.append(trained.tried._replace(settings=tuple(common | each for each in trained.tried.settings)))
    return together(parts)


def refit(problem: ImageProblem, found: DiscoveredAttribute, tried: Candidates) -> dict[str, Any]:
    """The chosen setting of each seed, trained on training and held-out rows together up to the chosen step."""
    everything = problem._replace(train=joined(problem.train, problem.held_out))
    groups, weights = interleaved(found.groups, found.held_out_groups), interleaved(found.train, found.held_out)
    best, rows = tried.best, np.arange(len(problem.seeds))
    stops = np.full(tried.score.shape, -1)
    stops[rows, best] = tried.step[rows, best]
    test = np.zeros(tried.score.shape)
    for method in with_dropout(DROPOUT_RATES):
        for remedy in ("weights", "offsets"):
            wanted = {"remedy": remedy, "dropout": method.dropout[0]}
            own = [number for number, each in enumerate(tried.settings) if wanted.items() <= each.items()]
            if own and stops[:, own].max() > 0:
                own_weights, offsets = adjustment(remedy, everything.train.labels, groups, weights)
                last = int(stops[:, own].max())
                trained = train_on_mnist(
                    method,
                    everything,
                    weighted_by(found.held_out),
                    steps=last,
                    stops=stops[:, own],
                    weights=own_weights,
                    offsets=offsets,
                )
                test[:, own] = trained.tried.test
    return {
        "test": tried.at(best, test).round(5).tolist(),
        "step": tried.at(best, tried.step).astype(int).tolist(),
        "settings": [tried.settings[number] for number in best],
    }


def adjustment(
    remedy: str, labels: torch.Tensor, groups: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Weights and offsets of the rows, one of which takes the attribute away."""
    if remedy == "weights":
        return weights, None
    found = [
        np.diff(attribute_offsets(*pair), axis=1)[:, 0]
        for pair in zip(labels.cpu().numpy(), groups.cpu().numpy(), strict=True)
    ]
    return None, torch.from_numpy(np.stack(found)).to(labels)
