"""What is read off the last hidden layer of trained networks: heads in closed form, and the attribute that varies."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from holdfast.core.class_moments import ClassMoments
from holdfast.embeddings.attributes import group_scores
from holdfast.embeddings.balancing import balance_rows
from holdfast.embeddings.linear_head import invariant_head_of
from holdfast.embeddings.variation import find_variation
from holdfast_studies.images.batched_networks import BatchedNetwork, hidden
from holdfast_studies.images.image_methods import ImageProblem, ImageRows, is_right


def fit_heads(
    rows: ImageRows,
    test: ImageRows,
    snapshots: Mapping[int, BatchedNetwork],
    settings: Sequence[Mapping[str, float]],
) -> dict[str, list]:
    """For each seed the head with the largest margin, over steps and settings.

    Args:
        rows: of the training environments, to which the heads are fitted.
        test: rows on which the chosen head is tested.
        snapshots: step -> networks.
        settings: of the networks, name -> value for each.
    """
    found = []
    # many small matrices: several threads of BLAS would wait for each other
    with threadpool_limits(limits=1, user_api="blas"):
        for seed in range(len(rows.labels)):
            found.append(
                max(
                    (
                        _head(rows, test, network, seed, number) | {"step": step, **setting}
                        for step, network in snapshots.items()
                        for number, setting in enumerate(settings)
                    ),
                    # a head with which less is found to vary would win by keeping the shortcut
                    key=lambda head: (head["directions"], head["margin"]),
                )
            )
    return {key: [each[key] for each in found] for key in found[0]}


def _head(rows: ImageRows, test: ImageRows, network: BatchedNetwork, seed: int, setting: int) -> dict[str, Any]:
    """The head of one network: how sure it is, and what it does on test rows."""
    features = features_of(network, rows.inputs, seed, setting)
    if not features.var(0).any():  # all units died in training: one class is guessed, and no other head is worse
        guessed = float(is_right(torch.zeros_like(test.labels[seed]), test.labels[seed]).mean())
        return {"test": guessed, "margin": -np.inf, "directions": 0, "components": 0, "share": 0.0}
    head = invariant_head_of(device_moments(features, rows.labels[seed], halves(len(features))))
    new = features_of(network, test.inputs, seed, setting)
    slope = torch.from_numpy(np.diff(head.coefficients, axis=0)[0]).to(new)
    right = is_right(new @ slope + float(np.diff(head.intercepts)[0]), test.labels[seed])
    return {
        "test": float(right.mean()),
        "margin": head.quality.margin,
        "directions": head.quality.varying,
        "components": head.quality.components,
        "share": head.variation.share,
    }


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
    environments = torch.cat([halves(rows.labels.shape[1]) for rows in parts])
    with threadpool_limits(limits=1, user_api="blas"):
        for seed, setting in enumerate(settings):
            features = torch.cat([features_of(network, rows.inputs, seed, int(setting)) for rows in parts])
            labels = torch.cat([rows.labels[seed] for rows in parts])
            found = find_variation(device_moments(features, labels, environments))
            own, balanced = np.zeros(len(labels), int), np.ones(len(labels))
            if found.count:
                centre, loadings = found.components.centre, found.loadings
                centred = features - torch.from_numpy(centre).to(features)
                own = group_scores((centred @ torch.from_numpy(loadings[:, 0]).to(features)).cpu().numpy(), 2)
                balanced = balance_rows(labels.cpu().numpy(), own).weights
            colours = torch.cat([rows.attribute[seed] for rows in parts]).cpu().numpy()
            agreement = float(np.mean(own == colours))
            about["agreement"].append(round(max(agreement, 1 - agreement), 5))
            about["directions"].append(found.count)
            about["p_value"].append(float(found.p_values[0]))
            about["share"].append(round(found.share, 4))
            # does anything else vary, among rows with the same attribute? the smaller of two p-values counts twice
            chosen = [torch.from_numpy(own == code) for code in (0, 1) if (own == code).any()]
            within = [
                find_variation(device_moments(features[rows], labels[rows], environments[rows])).p_values[0]
                for rows in chosen
            ]
            about["p_value_within"].append(min(1.0, len(within) * float(min(within))))
            groups.append(own)
            weights.append(balanced)
    device = problem.train.inputs.device
    both, marks = (torch.from_numpy(np.stack(each)).to(device, torch.float32) for each in (weights, groups))
    return DiscoveredAttribute(marks[:, :first], marks[:, first:], both[:, :first], both[:, first:], about)


def features_of(network: BatchedNetwork, inputs: torch.Tensor, seed: int, setting: int) -> torch.Tensor:
    """(rows, units): the last hidden layer of one network, in double precision."""
    own = slice(seed, seed + 1), slice(setting, setting + 1)
    one = BatchedNetwork(*(tuple(each[own] for each in part) for part in network))
    with torch.no_grad():
        return hidden(one, inputs[seed : seed + 1])[0, 0].double()


def device_moments(features: torch.Tensor, labels: torch.Tensor, environments: torch.Tensor) -> ClassMoments:
    """`collect_class_moments` of two environments and two classes, summed where the features are.

    Args:
        features: (rows, features).
        labels: (rows,), 0 and 1.
        environments: (rows,), 0 and 1.
    """
    shift = features.mean(0)
    rows = torch.cat([torch.ones_like(features[:, :1]), features - shift], 1)
    cells = 2 * environments.to(labels) + labels
    sums = torch.stack([rows[cells == cell].T @ rows[cells == cell] for cell in range(4)])
    shape = (2, 2, *sums.shape[1:])
    return ClassMoments(("first", "second"), (0, 1), shift.cpu().numpy(), sums.reshape(shape).cpu().numpy())


def halves(rows: int) -> torch.Tensor:
    """(rows,), the environment of each: the first half is one, the second half the other."""
    return torch.arange(rows) // (rows // 2)
