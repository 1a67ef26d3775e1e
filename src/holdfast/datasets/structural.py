"""Linear structural models with random graphs, observed under interventions, perhaps with hidden confounders.

`structural_dataset` has one size. The sizes of the others are random too: suites of them are for choosing a default
that does not lean on one size.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from holdfast.core.validation import require
from holdfast.datasets.splits import Dataset, Split, permute_within, stack

VARIABLES = 9  # with the target
DEGREE = 3.0  # neighbours of a variable, on average
WEIGHT = (0.5, 1.5)  # size of an effect
NOISE = (0.5, 1.5)
SAMPLES = 1_000
ENVIRONMENTS = 5
TARGETS = 3  # variables that an environment intervenes on
SHIFT = 2.0  # spread of an intervention in training
TEST_SHIFT = 5.0


@dataclass(frozen=True)
class StructuralModel:
    """A linear structural model with normal noise.

        X = X B + noise,    noise_j ~ N(0, scale_j^2)

    Attributes:
        weights: (variables, variables), B; B[i, j] is the effect of i on j, and B is nilpotent.
        scales: (variables,), of the noise.
        target: the variable to predict.

    Example:
        >>> chain = StructuralModel(np.array([[0.0, 2.0], [0.0, 0.0]]), np.ones(2), target=1)
        >>> rows = chain.sample(np.random.default_rng(0), 10_000, shift=np.zeros(2))
        >>> rows.shape, round(float(np.cov(rows.T)[0, 1]))
        ((10000, 2), 2)
    """

    weights: np.ndarray
    scales: np.ndarray
    target: int

    def sample(self, random: np.random.Generator, samples: int, shift: np.ndarray) -> np.ndarray:
        """(samples, variables); an intervention of spread shift_j widens the noise of variable j, whose causes stay."""
        spread = np.sqrt(self.scales**2 + shift**2)
        return self.caused_by(spread * random.standard_normal((samples, len(spread))))

    def caused_by(self, noise: np.ndarray) -> np.ndarray:
        """(samples, variables), from the noise of each."""
        return np.linalg.solve((np.eye(len(self.scales)) - self.weights).T, noise.T).T

    @property
    def features(self) -> np.ndarray:
        """All variables but the target."""
        return np.delete(np.arange(len(self.scales)), self.target)


def random_structural_model(
    random: np.random.Generator, variables: int = VARIABLES, degrees: tuple[float, float] | None = None
) -> StructuralModel:
    """A random acyclic graph with weights of size 0.5 to 1.5, and a target with at least one cause and one effect.

    Without a cause nothing is invariant, and without an effect nothing is misleading.

    Args:
        random: decides the graph.
        variables: with the target.
        degrees: as in `random_weights`.

    Example:
        >>> random_structural_model(np.random.default_rng(0)).weights.shape
        (9, 9)
    """
    while True:
        weights = random_weights(random, variables, degrees)
        inner = np.flatnonzero((weights != 0).any(0) & (weights != 0).any(1))
        if len(inner):
            return StructuralModel(weights, random.uniform(*NOISE, variables), int(random.choice(inner)))


def random_weights(
    random: np.random.Generator, variables: int, degrees: tuple[float, float] | None = None
) -> np.ndarray:
    """(variables, variables): effects along the edges of a random acyclic graph.

    Args:
        random: decides the graph.
        variables: their number.
        degrees: between which the number of neighbours of a variable is drawn, on average; None: 3.

    Example:
        >>> random_weights(np.random.default_rng(0), 2).shape
        (2, 2)
    """
    share = min(1.0, (DEGREE if degrees is None else random.uniform(*degrees)) / (variables - 1))
    order = random.permutation(variables)
    edge = np.triu(random.random((variables, variables)) < share, 1)
    weights = np.zeros((variables, variables))
    weights[np.ix_(order, order)] = edge * random_effects(random, edge.shape)
    return weights


def random_effects(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Effects of either sign, of size 0.5 to 1.5.

    Example:
        >>> bool(abs(random_effects(np.random.default_rng(0), (3,))).max() < 1.5)
        True
    """
    return random.uniform(*WEIGHT, shape) * random.choice([-1.0, 1.0], shape)


def structural_dataset(seed: int, *, samples: int = SAMPLES, environments: int = ENVIRONMENTS) -> Dataset:
    """A random model: one environment without interventions, others with three each, and all at once in the test.

    Reference: J. Peters, P. Bühlmann, N. Meinshausen, *Causal inference by using invariant prediction*, Journal of the
    Royal Statistical Society B 78 (2016), section 6, for the scheme; the sizes are ours.

    Args:
        seed: decides model, interventions and rows.
        samples: rows of each environment.
        environments: their number.

    Example:
        >>> dataset = structural_dataset(0, samples=20)
        >>> dataset.train.inputs.shape, bool(np.any(dataset.coefficients))
        ((100, 8), True)
    """
    random = np.random.default_rng(seed)
    model = random_structural_model(random)
    features = model.features
    shifts = np.zeros((environments, VARIABLES))
    for environment in range(1, environments):
        shifts[environment, random.choice(features, TARGETS, replace=False)] = SHIFT
    everywhere = np.where(np.isin(np.arange(VARIABLES), features), TEST_SHIFT, 0.0)
    coefficients = model.weights[features, model.target]

    def split(shifts: np.ndarray) -> Split:
        environments = (model.sample(random, samples, shift) for shift in shifts)
        return stack([(rows[:, features], rows[:, model.target]) for rows in environments])

    train = split(shifts)
    return Dataset(
        kind="regression",
        train=train,
        validation=split(shifts),
        test=split(everywhere[None]),
        shortcut_free=permute_within(train, np.flatnonzero(coefficients == 0), random),
        coefficients=coefficients,
    )


Intervention = Literal["shift", "do", "mean", "noise"]
"""What an environment does to some of the features: see `random_graph_dataset`."""

# Of the graphs of random size.
GRAPH_SAMPLES = 500  # of each environment and split
TEST_ENVIRONMENTS = 5
FEATURES = (5, 15)  # fewest and most
GRAPH_ENVIRONMENTS = (3, 8)
DEGREES = (1.5, 4.0)  # neighbours of a variable, on average
# The noise of the target is multiplied by a factor between 1 / 3 and 3, uniform in the logarithm.
NOISE_FACTOR = 3.0


def random_graph_dataset(intervention: Intervention, seed: int, *, samples: int = GRAPH_SAMPLES) -> Dataset:
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


def confounded_dataset(seed: int, *, samples: int = GRAPH_SAMPLES) -> Dataset:
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


def spurious_dataset(seed: int, *, samples: int = GRAPH_SAMPLES) -> Dataset:
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
    count = int(random.integers(*GRAPH_ENVIRONMENTS, endpoint=True))
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
