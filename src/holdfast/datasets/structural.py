"""Linear structural models with random graphs, observed under interventions on all variables but the target."""

from dataclasses import dataclass

import numpy as np

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
