"""What is read off the last hidden layer of trained networks: heads in closed form, and the attribute that varies."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from holdfast.comparison.images.batched_networks import BatchedNetwork, hidden
from holdfast.comparison.images.image_methods import ImageProblem, ImageRows
from holdfast.embeddings.attributes import group_scores
from holdfast.embeddings.balancing import balance_rows
from holdfast.embeddings.linear_head import invariant_head_of
from holdfast.embeddings.variation import find_variation
from holdfast.estimators.class_moments import ClassMoments, collect_class_moments
from holdfast.estimators.grouping import Grouping


def fit_heads(
    problem: ImageProblem, snapshots: Mapping[int, BatchedNetwork], weight_decays: Sequence[float]
) -> dict[str, list]:
    """For each seed the head with the largest margin on held-out rows, over steps and weight decays.

    Args:
        problem: its held-out rows fit the heads.
        snapshots: step -> networks.
        weight_decays: of the networks, one for each setting.
    """
    found = []
    for seed in range(len(problem.seeds)):
        labels, tested = _labels(problem.held_out, seed), _labels(problem.test, seed)
        best: tuple[tuple[int, float], dict[str, Any]] = ((-1, -np.inf), {})
        for step, network in snapshots.items():
            for setting, decay in enumerate(weight_decays):
                features = features_of(network, problem.held_out.inputs, seed, setting)
                head = invariant_head_of(_moments(features, labels))
                quality = head.quality
                if (quality.varying, quality.margin) > best[0]:
                    new = features_of(network, problem.test.inputs, seed, setting)
                    scores = new @ np.diff(head.coefficients, axis=0)[0] + np.diff(head.intercepts)[0]
                    about = {
                        "test": round(float(np.mean((scores > 0) == tested)), 5),
                        "step": step,
                        "weight_decay": decay,
                        "components": quality.components,
                        "margin": round(quality.margin, 4),
                        "share": round(head.variation.share, 4),
                    }
                    best = ((quality.varying, quality.margin), about)
        found.append(best[1])
    return {key: [each[key] for each in found] for key in found[0]}


class DiscoveredAttribute(NamedTuple):
    """What varies between the environments, for each seed, and weights that make it independent of the label.

    Attributes:
        groups: (S, rows) of the training rows, 0 and 1; zeros where nothing varies.
        held_out_groups: (S, rows) of the held-out rows.
        train: (S, rows), weights of the training rows.
        held_out: (S, rows), weights of the held-out rows.
        about: for each seed the number of directions, their p-value, the share of the class difference that varies, the
            share of rows in which the groups agree with the colour, and the p-value of the test that nothing varies
            among rows of the same group: whether to discover once more.
    """

    groups: torch.Tensor
    held_out_groups: torch.Tensor
    train: torch.Tensor
    held_out: torch.Tensor
    about: dict[str, list]


def discover_attribute(problem: ImageProblem, network: BatchedNetwork, settings: np.ndarray) -> DiscoveredAttribute:
    """Find what varies in the last hidden layer of one network of each seed, and balance it.

    Args:
        problem: its training and held-out rows are looked at.
        network: trained on all rows.
        settings: (S,), the number of the setting for each seed.
    """
    parts = (problem.train, problem.held_out)
    first = problem.train.labels.shape[1]
    groups, weights = [], []
    about: dict[str, list[Any]] = {"agreement": [], "directions": [], "p_value": [], "share": [], "p_value_within": []}
    for seed, setting in enumerate(settings):
        features = np.concatenate([features_of(network, rows.inputs, seed, int(setting)) for rows in parts])
        labels = np.concatenate([_labels(rows, seed) for rows in parts])
        environments = np.concatenate([_halves(rows.labels.shape[1]) for rows in parts])
        found = find_variation(_moments(features, labels, environments))
        own, balanced = np.zeros(len(labels), int), np.ones(len(labels))
        if found.count:
            own = group_scores((features - found.components.centre) @ found.loadings[:, 0], 2)
            balanced = balance_rows(labels, own).weights
        colours = np.concatenate([rows.attribute[seed].cpu().numpy() for rows in parts])
        agreement = float(np.mean(own == colours))
        about["agreement"].append(round(max(agreement, 1 - agreement), 5))
        about["directions"].append(found.count)
        about["p_value"].append(float(found.p_values[0]))
        about["share"].append(round(found.share, 4))
        # does anything else vary, among rows with the same attribute? the smaller of two p-values counts twice
        within = [
            find_variation(_moments(features[rows], labels[rows], environments[rows])).p_values[0]
            for rows in (own == 0, own == 1)
            if rows.any()
        ]
        about["p_value_within"].append(min(1.0, len(within) * float(min(within))))
        groups.append(own)
        weights.append(balanced)
    device = problem.train.inputs.device
    both, marks = (torch.from_numpy(np.stack(each)).to(device, torch.float32) for each in (weights, groups))
    return DiscoveredAttribute(marks[:, :first], marks[:, first:], both[:, :first], both[:, first:], about)


def features_of(network: BatchedNetwork, inputs: torch.Tensor, seed: int, setting: int) -> np.ndarray:
    """(rows, units): the last hidden layer of one network."""
    one = BatchedNetwork(
        tuple(each[seed : seed + 1, setting : setting + 1] for each in network.weights),
        tuple(each[seed : seed + 1, setting : setting + 1] for each in network.biases),
    )
    with torch.no_grad():
        return hidden(one, inputs[seed : seed + 1])[0, 0].double().cpu().numpy()


def _moments(features: np.ndarray, labels: np.ndarray, environments: np.ndarray | None = None) -> ClassMoments:
    environments = _halves(len(labels)) if environments is None else environments
    return collect_class_moments(features, labels, Grouping(environments, ["first", "second"]))


def _halves(rows: int) -> np.ndarray:
    """(rows,), the environment of each: the first half is one, the second half the other."""
    return np.arange(rows) // (rows // 2)


def _labels(rows: ImageRows, seed: int) -> np.ndarray:
    return rows.labels[seed].cpu().numpy().astype(int)
