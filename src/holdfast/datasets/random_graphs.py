"""Structural models of random size under four kinds of intervention, with hidden confounders, and without causes.

They differ from `holdfast.datasets.structural` in that sizes are random too: suites of them are for choosing a default
that does not lean on one size.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from holdfast.core.validation import require
from holdfast.datasets.splits import Dataset, Split, stack
from holdfast.datasets.structural import (
    NOISE,
    SHIFT,
    TEST_SHIFT,
    StructuralModel,
    random_effects,
    random_structural_model,
    random_weights,
)

Intervention = Literal["shift", "do", "mean", "noise"]
"""What an environment does to some of the features: see `random_graph_dataset`."""

SAMPLES = 500  # of each environment and split
TEST_ENVIRONMENTS = 5
FEATURES = (5, 15)  # fewest and most
ENVIRONMENTS = (3, 8)
DEGREES = (1.5, 4.0)  # neighbours of a variable, on average
# The noise of the target is multiplied by a factor between 1 / 3 and 3, uniform in the logarithm.
NOISE_FACTOR = 3.0


def random_graph_dataset(intervention: Intervention, seed: int, *, samples: int = SAMPLES) -> Dataset:
    """A random graph with 5 to 15 features, seen in 3 to 8 environments, the first without interventions.

    In each other environment a random part of the features, from one of them to half, is intervened on:

    - "shift": their noise gets wider by a spread of 2, their causes stay;
    - "do": they are set to N(0, 2^2), whatever their causes;
    - "mean": their means move by N(0, 2^2);
    - "noise": as "shift", and the noise of the target is multiplied by a factor between 1/3 and 3 everywhere.

    In the test all features are intervened on in 5 environments, with 5 in place of 2.

    Args:
        intervention: its kind.
        seed: decides model, interventions and rows.
        samples: rows of each environment.

    Example:
        >>> dataset = random_graph_dataset("do", 0, samples=20)
        >>> dataset.test.inputs.shape, len(np.unique(dataset.train.environments))
        ((100, 10), 6)
    """
    kinds = get_args(Intervention)
    require(intervention in kinds, f"intervention must be among {', '.join(kinds)}", repr(intervention))
    random = np.random.default_rng([seed, kinds.index(intervention)])
    features = int(random.integers(*FEATURES, endpoint=True))
    model = random_structural_model(random, features + 1, DEGREES)
    return _dataset(random, model, model.features, intervention, samples)


def confounded_dataset(seed: int, *, samples: int = SAMPLES) -> Dataset:
    """A random graph in which a hidden variable is a cause of the target and of one to half of the features.

    The interventions are those of "shift" in `random_graph_dataset`, on the features alone. The relation of the
    target to its causes is then the same everywhere and yet not the best prediction in training.

    Args:
        seed: decides model, interventions and rows.
        samples: rows of each environment.

    Example:
        >>> confounded_dataset(0, samples=20).coefficients is None  # no set of features has equal effects for certain
        True
    """
    random = np.random.default_rng([seed, len(get_args(Intervention))])
    features = int(random.integers(*FEATURES, endpoint=True))
    inner = random_structural_model(random, features + 1, DEGREES)
    confounded = random.choice(inner.features, int(random.integers(1, features // 2, endpoint=True)), replace=False)
    weights = np.zeros((features + 2, features + 2))
    weights[:-1, :-1] = inner.weights
    caused = np.append(confounded, inner.target)
    weights[-1, caused] = random_effects(random, caused.shape)
    model = StructuralModel(weights, np.append(inner.scales, 1.0), inner.target)
    return replace(_dataset(random, model, inner.features, "shift", samples), coefficients=None)


def spurious_dataset(seed: int, *, samples: int = SAMPLES) -> Dataset:
    """A random graph in which no feature is a cause of the target and each is an effect of it.

    The interventions are those of "shift" in `random_graph_dataset`. No relation holds everywhere, and under strong
    interventions the mean is the best that can be predicted.

    Args:
        seed: decides model, interventions and rows.
        samples: rows of each environment.

    Example:
        >>> bool(np.any(spurious_dataset(0, samples=20).coefficients))
        False
    """
    random = np.random.default_rng([seed, len(get_args(Intervention)) + 1])
    features = int(random.integers(*FEATURES, endpoint=True))
    weights = np.zeros((features + 1, features + 1))
    weights[1:, 1:] = random_weights(random, features, DEGREES)
    weights[0, 1:] = random_effects(random, (features,))
    model = StructuralModel(weights, random.uniform(*NOISE, features + 1), target=0)
    return _dataset(random, model, model.features, "shift", samples)


def _dataset(
    random: np.random.Generator, model: StructuralModel, features: np.ndarray, intervention: Intervention, samples: int
) -> Dataset:
    count = int(random.integers(*ENVIRONMENTS, endpoint=True))
    train = [_environment(random, model, np.array([], int), intervention, SHIFT)]
    for _ in range(count - 1):
        touched = random.choice(features, int(random.integers(1, len(features) // 2, endpoint=True)), replace=False)
        train.append(_environment(random, model, touched, intervention, SHIFT))
    test = [_environment(random, model, features, intervention, TEST_SHIFT) for _ in range(TEST_ENVIRONMENTS)]

    def split(environments: list[Callable[[int], np.ndarray]]) -> Split:
        drawn = (sample(samples) for sample in environments)
        return stack([(rows[:, features], rows[:, model.target]) for rows in drawn])

    coefficients = model.weights[features, model.target]
    return Dataset("regression", split(train), split(train), split(test), coefficients=coefficients)


def _environment(
    random: np.random.Generator, model: StructuralModel, touched: np.ndarray, intervention: Intervention, size: float
) -> Callable[[int], np.ndarray]:
    """A function of the number of samples that draws them in an environment of its own."""
    variables = len(model.scales)
    chosen = np.isin(np.arange(variables), touched)
    moved = np.where(chosen, size * random.standard_normal(variables), 0.0)
    mean, spread = (moved, 0.0) if intervention == "mean" else (0.0, size * chosen)
    scales = model.scales.copy()
    if intervention == "noise":
        scales[model.target] *= NOISE_FACTOR ** random.uniform(-1, 1)
    if intervention == "do":  # these no longer listen to their causes
        scales = np.where(chosen, 0.0, scales)
        model = replace(model, weights=np.where(chosen, 0.0, model.weights))

    def sample(samples: int) -> np.ndarray:
        return model.caused_by(mean + np.hypot(scales, spread) * random.standard_normal((samples, variables)))

    return sample
