"""Networks on real tables: trained on all environments but one, repaired by head and balance, tested on the one."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from holdfast.core.class_moments import collect_class_moments
from holdfast.core.grouping import Grouping
from holdfast.datasets.real_tables import real_dataset
from holdfast.embeddings.balancing import balanced_weights
from holdfast.embeddings.discovery import Discovery, discover
from holdfast.embeddings.linear_head import invariant_head_of
from holdfast.embeddings.variation import find_variation
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.torch.balancing import balance
from holdfast.torch.training import TrainingOptions, TrainingRows, one_thread, train_weighted

NETWORKS = ("pooled", "discriminant", "head", "head, if advised", "balance")
LINEAR = ("logistic regression", "HeteroClassifier")
WIDTH, EPOCHS, BATCH_SIZE, LEARNING_RATE, PATIENCE = 32, 20, 512, 3e-3, 5


class TableRows(NamedTuple):
    """The rows of a fold.

    Attributes:
        inputs: (rows, features), of the training environments.
        labels: (rows,), 0 and 1.
        environments: (rows,).
        held_out: (rows,), which rows stop the training.
        test_inputs: (rows, features), of the environment that is left out.
        test_labels: (rows,).
    """

    inputs: torch.Tensor
    labels: np.ndarray
    environments: np.ndarray
    held_out: np.ndarray
    test_inputs: torch.Tensor
    test_labels: np.ndarray


class TableResult(NamedTuple):
    """What one network on one fold gives.

    Attributes:
        areas: (NETWORKS,), area under the ROC curve in the environment that is left out.
        directions: that vary.
        share: of what separates the classes that lies along them.
        persistence: the difference between the classes along them in the environment that is left out, as a multiple
            of that in training: 1 if it is the same, -1 if it is reversed; NaN if nothing varies.
        advised: whether what was found may be a shortcut: the class given the features varies as well, and it is not
            all that separates the classes.
        balanced: whether there are weights under which it says nothing about the class.
        false_alarms: findings in permuted environments.
    """

    areas: np.ndarray
    directions: int
    share: float
    persistence: float
    advised: bool
    balanced: bool
    false_alarms: int


def table_rows(name: str, fold: int) -> TableRows:
    """A fold of a real table, as tensors."""
    dataset = real_dataset(name, fold)
    train, validation, test = dataset.train, dataset.validation, dataset.test
    inputs, targets, environments = (np.concatenate(pair) for pair in zip(train, validation, strict=True))
    return TableRows(
        torch.from_numpy(inputs).float(),
        targets.astype(int),
        environments,
        np.arange(len(targets)) >= len(train.targets),
        torch.from_numpy(test.inputs).float(),
        test.targets.astype(int),
    )


@one_thread()
def run_network(rows: TableRows, seed: int, permutations: int, level: float) -> TableResult:
    """Train on all rows, find what varies, and repair the network in two ways.

    Environments are permuted so many times to count false alarms at this level. All trainings start from the same
    weights and stop by the same held-out rows, with classes of equal weight: without that, accuracy says little where
    one class is rare.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        start = torch.nn.Sequential(
            torch.nn.Linear(rows.inputs.shape[1], WIDTH), torch.nn.ReLU(),
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1),
        )  # fmt: skip
    labels, held_out = torch.from_numpy(rows.labels), torch.from_numpy(rows.held_out)
    options = TrainingOptions(EPOCHS, BATCH_SIZE, LEARNING_RATE, PATIENCE, seed)

    def trained(weights: torch.Tensor) -> torch.nn.Sequential:
        network = deepcopy(start)
        train_weighted(network, TrainingRows(rows.inputs, labels, weights, held_out), options)
        return network

    def area(scores: np.ndarray) -> float:
        return float(roc_auc_score(rows.test_labels, scores.ravel()))

    equal = balanced_weights(rows.labels, np.zeros(len(rows.labels)))
    pooled = trained(torch.from_numpy(equal).float())
    features, tested = (_read(pooled[:-1], each) for each in (rows.inputs, rows.test_inputs))
    found = discover(features, rows.labels, rows.environments)
    moments = collect_class_moments(features, rows.labels, found.grouping)
    head = area(tested @ np.diff(invariant_head_of(moments).coefficients, axis=0)[0])
    advised = bool(found.count and found.tests.classes < found.variation.level and not found.variation.is_signal)
    weights = _weights(found)
    repaired = pooled if weights is None else trained(weights)
    # shrunk, since some hidden units never fire
    plain = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(features, rows.labels)
    as_it_is = area(_read(pooled, rows.test_inputs))
    areas = {
        "pooled": as_it_is,
        "discriminant": area(plain.decision_function(tested)),
        "head": head,
        "head, if advised": head if advised else as_it_is,
        "balance": area(_read(repaired, rows.test_inputs)),
    }
    seen, unseen = _difference(found.scores, rows.labels), _difference(found.score(tested), rows.test_labels)
    persistence = float(seen @ unseen / (seen @ seen)) if found.count else np.nan
    alarms = _false_alarms(features, rows.labels, found.grouping, np.random.default_rng(seed), permutations, level)
    values = np.array([areas[each] for each in NETWORKS])
    return TableResult(values, found.count, found.variation.share, persistence, advised, weights is not None, alarms)


def run_linear(rows: TableRows) -> np.ndarray:
    """(LINEAR,): areas under the ROC curve of linear models on the columns themselves."""
    inputs, tested = rows.inputs.double().numpy(), rows.test_inputs.double().numpy()
    models = (
        LogisticRegression(max_iter=1000).fit(inputs, rows.labels),
        HeteroClassifier().fit(inputs, rows.labels, environments=rows.environments),
    )
    return np.array([roc_auc_score(rows.test_labels, model.decision_function(tested)) for model in models])


def _weights(found: Discovery) -> torch.Tensor | None:
    """None if nothing varies, or if some class never has some value of what varies."""
    if found.count == 0:
        return None
    try:
        return balance(found, independence="each").weights
    except ValueError:
        return None


def _difference(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(attributes,), between the means of the classes."""
    return scores[labels == 1].mean(0) - scores[labels == 0].mean(0)


def _read(layers: torch.nn.Module, inputs: torch.Tensor) -> np.ndarray:
    """(rows, outputs)."""
    with torch.no_grad():
        return layers(inputs).double().numpy()


def _false_alarms(
    features: np.ndarray,
    labels: np.ndarray,
    grouping: Grouping,
    random: np.random.Generator,
    permutations: int,
    level: float,
) -> int:
    """How often a direction is found if environments are permuted within each class."""
    count = 0
    for _ in range(permutations):
        codes = grouping.codes.copy()
        for label in (0, 1):
            own = np.flatnonzero(labels == label)
            codes[own] = grouping.codes[random.permutation(own)]
        moments = collect_class_moments(features, labels, Grouping(codes, grouping.labels))
        count += find_variation(moments, level=level).count > 0
    return count
