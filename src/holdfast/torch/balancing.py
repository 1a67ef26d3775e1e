"""Train so that what was discovered says nothing about the label: weights, a sampler, and a whole training."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch.utils.data import WeightedRandomSampler

from holdfast.core.grouping import group_rows
from holdfast.core.validation import COUNT, require
from holdfast.embeddings.attributes import group_scores
from holdfast.embeddings.balancing import (
    BINS,
    Independence,
    RowBalance,
    TargetDistribution,
    attribute_offsets,
    balance_rows,
    balanced_weights,
    check_balance,
)
from holdfast.embeddings.discovery import Discovery, check_labels
from holdfast.embeddings.variation import LEVEL
from holdfast.torch.features import LayerReader, as_read_by
from holdfast.torch.layers import discover
from holdfast.torch.training import (
    History,
    TrainingOptions,
    TrainingRows,
    row_losses,
    train_epochs,
    train_weighted,
    weighted_score,
)

__all__ = ["Balance", "BalancedNetwork", "balance", "balanced_weights", "train_balanced"]


class Balance(NamedTuple):
    """Weights of the rows under which the discovered attributes are independent of the label.

    Attributes:
        weights: (rows,), float32, of mean 1: multiply the loss of each row.
        groups: (rows,), the number of the group of each row, for group losses or a report.
        rows: the same as arrays, with the names and sizes of the groups.

    Example:
        >>> from holdfast.embeddings.balancing import balance_rows
        >>> rows = balance_rows([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
        >>> found = Balance(torch.tensor(rows.weights).float(), torch.tensor(rows.groups), rows)
        >>> found.sampler(seed=0).num_samples
        5
    """

    weights: torch.Tensor
    groups: torch.Tensor
    rows: RowBalance

    def __repr__(self) -> str:
        return f"Balance(rows={self.rows!r})"

    def sampler(self, *, seed: int = 0, rows: int | None = None) -> WeightedRandomSampler:
        """Draws rows in proportion to their weights, for a DataLoader; then the loss needs no weights.

        Args:
            seed: of the draws.
            rows: drawn in an epoch; None: as many as the data have.
        """
        generator = torch.Generator().manual_seed(seed)
        return WeightedRandomSampler(self.weights.tolist(), rows or len(self.weights), generator=generator)


def balance(
    discovery: Discovery,
    *,
    distribution: TargetDistribution = "equal",
    independence: Independence = "joint",
    groups: int | None = None,
    bins: int = BINS,
) -> Balance:
    """Weights, a sampler and groups that make the discovered attributes independent of the label.

    Args:
        discovery: what varies.
        distribution: equal: all groups of label and attributes count the same; product: labels and attributes stay as
            frequent as they are.
        independence: of all attributes together, or of each.
        groups: how many groups each score is cut into by itself; None: the groups of all scores together.
        bins: of a continuous target.

    Example:
        >>> random = np.random.default_rng(0)
        >>> label, environment = np.arange(4000) % 2, np.arange(4000) // 2000
        >>> colour = np.where(random.random(4000) < np.where(environment == 0, 0.7, 0.9), label, 1 - label)
        >>> from holdfast.embeddings import discover as discover_in_arrays
        >>> embedding = np.column_stack([colour, label]) + 0.1 * random.standard_normal((4000, 2))
        >>> found = balance(discover_in_arrays(embedding, label, environment))
        >>> weights = found.weights.numpy()
        >>> bool(abs(np.cov(colour, label, aweights=weights)[0, 1]) < 0.01)
        True
    """
    require(discovery.count > 0, "discovery must hold a direction that varies", f"none. {discovery.sentences[0]}")
    settings: dict[str, Any] = {"distribution": distribution, "independence": independence}
    own_bins = None if discovery.classes else bins
    attributes = discovery.attributes
    if groups is not None:
        attributes = np.column_stack([group_scores(column, groups) for column in discovery.scores.T])
    return _as_tensors(balance_rows(discovery.targets, attributes, bins=own_bins, **settings))


def _as_tensors(rows: RowBalance) -> Balance:
    return Balance(torch.from_numpy(rows.weights).float(), torch.from_numpy(rows.groups), rows)


class BalancedNetwork(NamedTuple):
    """A network trained on balanced rows, with what was found on the way.

    Attributes:
        module: trained; the pooled one if nothing varies, or if what varies cannot be removed.
        pooled: the network of the first training, in which the directions were found.
        discovery: what varies in the pooled network.
        balance: the weights of all rows; None if nothing varies, or if some group has no rows.
        validation: (rows,), which rows were held out to stop and to choose by.
        history: of the chosen training.
        weight_decay: chosen.
        scores: weight decay -> best score on held-out rows, by the same weights.
        sentences: what was found and done.
        rounds: what each round found: `discovery` first, then what varies in the balanced network among rows with the
            same attributes, where the classes are those of label and attributes together.

    Example: see `train_balanced`.

        >>> BalancedNetwork._fields[:2]
        ('module', 'pooled')
    """

    module: torch.nn.Module
    pooled: torch.nn.Module
    discovery: Discovery
    balance: Balance | None
    validation: np.ndarray
    history: History
    weight_decay: float
    scores: dict[float, float]
    sentences: list[str]
    rounds: tuple[Discovery, ...]

    def __repr__(self) -> str:
        module = type(self.module).__name__
        return f"BalancedNetwork(module={module}, discovery={self.discovery!r}, weight_decay={self.weight_decay:g})"


def train_balanced(
    module: torch.nn.Module,
    data: tuple[Any, Any],
    *,
    environments: Any,
    layer: str,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = row_losses,
    continuous: bool = False,
    options: TrainingOptions = TrainingOptions(),  # noqa: B008
    weight_decays: Sequence[float] = (0.0, 3e-4, 1e-3, 3e-3, 1e-2),
    held_out: float = 0.2,
    remedy: Literal["weights", "offsets"] = "weights",
    refit: bool = False,
    distribution: TargetDistribution = "equal",
    independence: Independence = "joint",
    rounds: int = 1,
    level: float = LEVEL,
) -> BalancedNetwork:
    """Train on all rows, discover what varies, and train a fresh network on rows in which it says nothing.

    The second training starts from the same parameters as the first. Its steps and weight decay are those of the best
    score (see `TrainingOptions`) on held-out rows of the training environments, balanced by weights: no other data are
    looked at. With more rounds, the balanced network is looked at again: what varies in it among rows with the same
    attributes is a further attribute, and a fresh network is trained on rows in which none of them says anything, until
    nothing varies.

    Args:
        module: with its initial parameters; it is not changed.
        data: (inputs, targets), arrays or tensors; targets are the numbers of the classes, or numbers.
        environments: one label for each row.
        layer: the layer in which to look, the last hidden one as a rule.
        loss: (outputs, targets) -> (rows,).
        continuous: whether the target is a number instead of a class.
        options: optimiser steps, batches, patience, score, seed.
        weight_decays: to choose from.
        held_out: share of the rows that decide when to stop and what to choose.
        remedy: weights: of the rows, see `balance`; offsets: what the attributes say about the class is added to the
            outputs in training, and all rows count the same (`holdfast.embeddings.attribute_offsets`), which needs
            classes and a loss of their scores or log-odds.
        refit: whether the network is trained once more, with the chosen weight decay and for the chosen number of
            epochs, on the held-out rows as well.
        distribution: of the weighted groups; see `balance`.
        independence: of all attributes together, or of each.
        rounds: how often to discover and train again at most; more than one needs classes.
        level: of the tests in each round.

    Example:
        >>> from holdfast.datasets import coloured_digits
        >>> rows = coloured_digits([0.75, 0.95], seed=0)
        >>> _ = torch.manual_seed(0)
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Flatten(), torch.nn.Linear(128, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
        ... )
        >>> data = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
        >>> trained = train_balanced(
        ...     network, data, environments=rows.environments, layer="2", options=TrainingOptions(epochs=5)
        ... )
        >>> trained.discovery.count
        1
    """
    # all that can be checked before the first training, which may take hours
    require(0 < held_out < 1, "held_out must be a number between 0 and 1", repr(held_out))
    require(len(weight_decays) > 0, "weight_decays must hold at least one number", repr(weight_decays))
    remedies = ("weights",) if continuous else ("weights", "offsets")
    require(remedy in remedies, f"remedy must be {' or '.join(remedies)}", repr(remedy))
    check_balance(distribution, independence)
    COUNT.check("rounds", rounds)
    require(rounds == 1 or not continuous, "rounds must be 1 for a continuous target", rounds)
    inputs, targets = as_read_by(module, torch.as_tensor(data[0])), torch.as_tensor(data[1])
    if not continuous:
        check_labels(targets.cpu().numpy())
    targets = targets.float() if continuous else targets.long()
    LayerReader(module, layer)
    group_rows(environments, len(targets))
    random = np.random.default_rng(options.seed)
    aside = random.permutation(len(targets)) < held_out * len(targets)
    validation = torch.from_numpy(aside)
    rows = TrainingRows(inputs, targets, torch.ones(len(targets)), validation)
    pooled, history = train_weighted(deepcopy(module), rows, options, loss=loss)
    trained, weights, chosen, scores = pooled, None, 0.0, {0.0: history.best}
    settings: dict[str, Any] = {"distribution": distribution, "independence": independence}
    settings["bins"] = BINS if continuous else None
    discoveries: list[Discovery] = []
    sentences: list[str] = []
    for number in range(1, rounds + 1):
        given = _joint_classes(discoveries) if discoveries else targets
        found = discover(
            trained, (inputs, given), layer=layer, environments=environments, continuous=continuous, level=level
        )
        discoveries.append(found)
        again = f"Round {number}, among rows with the same attributes: {found.sentences[0]}"
        sentences += found.sentences if number == 1 else [again]
        if found.count == 0:
            break
        codes, attributes = discoveries[0].targets, np.column_stack([each.attributes for each in discoveries])
        try:
            balanced = _as_tensors(balance_rows(codes, attributes, **settings))
            offsets = attribute_offsets(codes, attributes) if remedy == "offsets" else None
        except ValueError as reason:  # of groups without rows: the network that is trained already does not need them
            sentences.append(f"What varies cannot be removed: {reason}.")
            break
        weights, rows = balanced, _remedied(rows, balanced, offsets)
        candidates = {
            decay: train_weighted(deepcopy(module), rows, options, loss=loss, weight_decay=decay)
            for decay in weight_decays
        }
        chosen = max(candidates, key=lambda decay: candidates[decay][1].best)
        scores = {decay: each.best for decay, (_, each) in candidates.items()}
        trained, history = candidates[chosen]
        sentences.append(
            f"Balanced: {len(weights.rows.counts)} groups, the smallest of {int(weights.rows.counts.min())} rows; the "
            f"weighted rows count as {weights.rows.effective_rows:.0f} of {len(targets)}."
        )
        if not continuous:
            sentences += _no_better_than_chance(trained, rows, weights.weights, codes, options.device)
    if weights is None:
        sentences.append("The network trained on all rows is returned.")
    elif refit:
        epochs = history.scores.index(history.best) + 1
        everything = _remedied(rows._replace(held_out=torch.zeros_like(validation)), weights, offsets)
        chosen_epochs = replace(options, epochs=epochs)
        *_, trained = train_epochs(deepcopy(module), everything, chosen_epochs, loss=loss, weight_decay=chosen)
        trained.eval()
        sentences.append(f"Trained once more on all {len(targets)} rows, for {epochs} epochs.")
    return BalancedNetwork(
        trained, pooled, discoveries[0], weights, aside, history, chosen, scores, sentences, tuple(discoveries)
    )


def _remedied(rows: TrainingRows, balance: Balance, offsets: np.ndarray | None) -> TrainingRows:
    """Rows with the weights of a balance, or with offsets: then only held-out rows are weighted, to be judged by."""
    if offsets is None:
        return rows._replace(weights=balance.weights)
    weights = torch.where(rows.held_out, balance.weights, 1.0)
    return rows._replace(weights=weights, offsets=torch.from_numpy(offsets).to(rows.inputs.dtype))


def _joint_classes(discoveries: Sequence[Discovery]) -> np.ndarray:
    """(rows,): class and attributes of each row as one label, whose features would not depend on the environment."""
    columns = [discoveries[0].targets, *(each.attributes for each in discoveries)]
    cells, numbers = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    classes = discoveries[0].classes
    names = [f"{classes[code]} with {' and '.join(map(str, groups))}" for code, *groups in cells.tolist()]
    return np.array(names)[numbers.ravel()]


def _no_better_than_chance(
    module: torch.nn.Module, rows: TrainingRows, weights: torch.Tensor, codes: np.ndarray, device: str
) -> list[str]:
    """A sentence if the network does not predict held-out rows, balanced by the weights; otherwise none."""
    own = weights[rows.held_out].numpy()
    inputs, targets = (each[rows.held_out].to(device) for each in (rows.inputs, rows.targets))
    accuracy = weighted_score(module, inputs, targets, torch.from_numpy(own))
    error = np.sqrt(0.25 / max(own.sum() ** 2 / (own @ own), 1.0))
    # of the best guess without looking: the most frequent class, by the weights
    chance = float(np.bincount(codes, weights=weights).max() / weights.sum())
    if accuracy >= chance + 2 * error:
        return []
    return [
        f"On balanced rows the network is not better than chance (accuracy {accuracy:.2f} on held-out "
        f"rows, two standard errors are {2 * error:.2f}): what varies was the signal, or the rows are too few."
    ]
