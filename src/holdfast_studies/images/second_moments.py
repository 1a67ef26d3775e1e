"""Directions of the last hidden layer in which variances within classes, instead of means, vary between environments.

An attribute that agrees with the label in a share p of the rows has the variance p (1 - p) within each class: 0.16 and
0.09 of its squared size for shares of 0.8 and 0.9, 0.09 and 0.21 for 0.9 and 0.3. So variances can show it as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from holdfast.embeddings.attributes import bimodal_rotation, group_scores
from holdfast.embeddings.variation import LEVEL, find_variation
from holdfast_studies.images.batched_networks import BatchedNetwork
from holdfast_studies.images.frozen_networks import DiscoveredAttribute, device_moments, features_of, halves
from holdfast_studies.images.image_methods import ImageProblem

PERMUTATIONS = 200
# So many directions are looked for at most.
MOST = 5


@dataclass(frozen=True)
class VaryingVariances:
    """Directions in which the variance within classes varies.

    Attributes:
        directions: (components, components), for whitened coordinates, first those that vary most.
        p_values: of the tests that at most 0, 1, ... directions vary, up to the first that passes.
        count: the number of directions that vary.
    """

    directions: torch.Tensor
    p_values: list[float]
    count: int


def varying_variances(rows: torch.Tensor, cells: torch.Tensor, *, level: float = LEVEL) -> VaryingVariances:
    """In which directions covariances within classes differ between two environments, by permutations.

        A = sum over classes c of (S_1c - S_2c)^2

    with the covariances S_ec of whitened rows. The directions are the eigenvectors of A; the test that at most r of
    them vary compares the largest eigenvalue of A outside of the first r with those of rows permuted between the
    environments, class by class, each about its mean.

    Args:
        rows: (rows, components), of covariance 1 within classes and environments.
        cells: (rows,), 2 environment + class.
        level: of the tests.

    Example, the second of three coordinates has a larger variance in one environment:
        >>> random = torch.Generator().manual_seed(0)
        >>> cells = torch.arange(4000) % 4
        >>> spread = torch.where(cells >= 2, 1.2, 0.8)
        >>> rows = torch.randn(4000, 3, generator=random)
        >>> found = varying_variances(torch.stack([rows[:, 0], spread * rows[:, 1], rows[:, 2]], 1), cells)
        >>> found.count, found.directions[:, 0].abs().argmax().item()
        (1, 1)
    """
    generator = torch.Generator(rows.device).manual_seed(0)
    observed, permuted = [], []
    for label in (0, 1):
        first, second = (rows[cells == 2 * environment + label] for environment in (0, 1))
        both = torch.cat([first - first.mean(0), second - second.mean(0)])
        total = both.T @ both

        def difference(part: torch.Tensor, total: torch.Tensor = total, others: int = len(second)) -> torch.Tensor:
            inner = part.T @ part
            return inner / len(part) - (total - inner) / others

        observed.append(difference(both[: len(first)]))
        orders = (torch.randperm(len(both), generator=generator, device=rows.device) for _ in range(PERMUTATIONS))
        permuted.append(torch.stack([difference(both[order[: len(first)]]) for order in orders]))
    differences, draws = torch.stack(observed), torch.stack(permuted, 1)  # (classes, ...), (permutations, classes, ...)
    directions = torch.linalg.eigh((differences @ differences).sum(0))[1].flip(-1)
    p_values: list[float] = []
    for rank in range(min(MOST, len(directions))):
        rest = directions[:, rank:]
        own, others = (rest.T @ each @ rest for each in (differences, draws))
        largest, drawn = (torch.linalg.eigvalsh((each @ each).sum(-3))[..., -1] for each in (own, others))
        p_values.append((1 + int((drawn >= largest).sum())) / (1 + PERMUTATIONS))
        if p_values[-1] >= level:
            break
    return VaryingVariances(directions, p_values, sum(value < level for value in p_values))


def variances_of_features(
    problem: ImageProblem, network: BatchedNetwork, settings: np.ndarray, found: DiscoveredAttribute
) -> dict[str, list[Any]]:
    """For each seed what variances show in the last hidden layer, beside what means show.

    Returns the number of directions, the p-value of the first, the share of rows in which two groups are the colours,
    and the p-value of the test that no variances vary among rows of the same group of `found`. Scores along the
    directions are turned as `discover` turns them, and the one whose groups are closest to the colours counts.

    Args:
        problem: its training and held-out rows are looked at.
        network: trained on all rows.
        settings: (S,), the number of the setting for each seed.
        found: the attribute that means show.
    """
    parts = (problem.train, problem.held_out)
    environments = torch.cat([halves(rows.labels.shape[1]) for rows in parts]).to(problem.train.labels)
    about: dict[str, list[Any]] = {"agreement": [], "directions": [], "p_value": [], "p_value_within": []}
    with threadpool_limits(limits=1, user_api="blas"):
        for seed, setting in enumerate(settings):
            features = torch.cat([features_of(network, rows.inputs, seed, int(setting)) for rows in parts])
            labels = torch.cat([rows.labels[seed] for rows in parts])
            groups = torch.cat([found.groups[seed], found.held_out_groups[seed]])
            cells = 2 * environments + labels
            rows = _whitened(features, labels, environments)
            variances = varying_variances(rows, cells)
            scores = (rows @ variances.directions[:, : max(variances.count, 1)]).cpu().numpy()
            attributes = [group_scores(column, 2) for column in (scores @ bimodal_rotation(scores)).T]
            colours = torch.cat([each.attribute[seed] for each in parts]).cpu().numpy()
            agreements = [float(np.mean(each == colours)) for each in attributes]
            within = [
                varying_variances(
                    _whitened(features[same], labels[same], environments.to(same.device)[same]), cells[same]
                )
                for same in (groups == code for code in groups.unique())
            ]
            about["agreement"].append(round(max(max(each, 1 - each) for each in agreements), 5))
            about["directions"].append(variances.count)
            about["p_value"].append(variances.p_values[0])
            # the smaller of two p-values counts twice
            about["p_value_within"].append(min(1.0, len(within) * min(each.p_values[0] for each in within)))
    return about


def _whitened(features: torch.Tensor, labels: torch.Tensor, environments: torch.Tensor) -> torch.Tensor:
    """(rows, components): the components that `discover` compares, of covariance 1 within classes and environments."""
    components = find_variation(device_moments(features, labels, environments)).components
    centre, directions = (torch.from_numpy(each).to(features) for each in (components.centre, components.directions))
    rows = (features - centre) @ directions
    cells = (2 * environments + labels).long()
    means = torch.stack([rows[cells == cell].mean(0) for cell in range(4)])
    residuals = rows - means[cells]
    values, vectors = torch.linalg.eigh(residuals.T @ residuals / len(rows))
    return rows @ (vectors / values.sqrt()) @ vectors.T
