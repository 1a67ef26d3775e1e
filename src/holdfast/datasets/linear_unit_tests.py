"""The six linear unit tests for invariance discovery.

Reference: B. Aubin, A. Słowik, M. Arjovsky, L. Bottou, D. Lopez-Paz, *Linear unit-tests for invariance discovery*,
arXiv:2102.10867 (2021). The constants are those of the published code.
"""

from collections.abc import Callable, Sequence

import numpy as np

from holdfast.core.validation import require
from holdfast.datasets.splits import Dataset, Kind, Split, permute_within, stack, with_shortcuts

SAMPLES = 10_000  # of each environment and split
ENVIRONMENTS = 3
BLOCK = 5  # invariant inputs, and as many spurious ones
SPURIOUS = np.arange(BLOCK, 2 * BLOCK)

# (generator, rows, parameters of an environment) -> its inputs, not rotated yet, and targets; the parameters of each
# environment; the coefficients of the invariant inputs
Maker = tuple[Callable[..., tuple[np.ndarray, np.ndarray]], Sequence[tuple], np.ndarray]


def linear_unit_test(name: str, seed: int, *, samples: int = SAMPLES, environments: int = ENVIRONMENTS) -> Dataset:
    """One seed of a linear unit test (Aubin et al. 2021).

    The inputs are [invariant, spurious] S, with S = I or, where the name ends in "s", an orthogonal matrix. In the
    test split, and in the training split of the oracle, the spurious block is permuted over the rows of an environment.

    Args:
        name: a key of `LINEAR_UNIT_TESTS`.
        seed: decides the environments, the rotation and the rows.
        samples: rows of each environment in each split.
        environments: their number; the published table has 3.

    Example:
        >>> dataset = linear_unit_test("Example1s", seed=0, samples=100)
        >>> dataset.train.inputs.shape, dataset.kind
        ((300, 10), 'regression')
    """
    require(name in LINEAR_UNIT_TESTS, f"name must be among {', '.join(LINEAR_UNIT_TESTS)}", repr(name))
    random = np.random.default_rng(seed)
    make, rotated = LINEAR_UNIT_TESTS[name]
    environment, parameters, coefficients = make(random, environments)
    rotation = np.linalg.qr(random.standard_normal((2 * BLOCK, 2 * BLOCK)))[0] if rotated else np.eye(2 * BLOCK)

    def split(shortcuts: bool) -> Split:
        rows = stack([environment(random, samples, *own) for own in parameters])
        rows = rows if shortcuts else permute_within(rows, SPURIOUS, random)
        return rows._replace(inputs=rows.inputs @ rotation)

    kind: Kind = "regression" if make is _causes_and_effects else "classification"
    return with_shortcuts(kind, split, rotation.T @ np.append(coefficients, np.zeros(BLOCK)))


def _causes_and_effects(random: np.random.Generator, environments: int) -> Maker:
    """Example1: causes x and effects z of a target whose noise changes with the environment.

    x = s_e N,    t = x W_xy + s_e N,    z = t W_yz + N,    y = sum_j t_j
    """
    further = 10 ** random.uniform(-2, 1, max(0, environments - 3))
    noise = np.append([0.1, 1.5, 2.0][:environments], further)
    to_target = random.standard_normal((BLOCK, BLOCK)) / BLOCK
    to_effects = random.standard_normal((BLOCK, BLOCK)) / BLOCK

    def environment(random: np.random.Generator, samples: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        causes = scale * random.standard_normal((samples, BLOCK))
        parts = causes @ to_target + scale * random.standard_normal((samples, BLOCK))
        effects = parts @ to_effects + random.standard_normal((samples, BLOCK))
        return np.hstack([causes, effects]), parts.sum(1)

    return environment, [(scale,) for scale in noise], to_target.sum(1)


def _animals(random: np.random.Generator, environments: int) -> Maker:
    """Example2: cows and camels; the label is the animal, whose features are small, and the background follows it.

    Component i of 4 has probability [p s, (1-p) s, p (1-s), (1-p) (1-s)], animal (+, +, -, -), background (+, -, -, +),
    x_inv = 0.01 (N / sqrt(10) + animal_i),    x_spu = N / sqrt(10) + background_i,    y = 1[sum x_inv > 0]
    """
    further = max(0, environments - 3)
    follows = np.append([0.95, 0.97, 0.99][:environments], random.uniform(0.9, 1, further))
    cows = np.append([0.3, 0.5, 0.7][:environments], random.uniform(0.3, 0.7, further))
    animal, background = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, -1.0, 1.0])

    def environment(random: np.random.Generator, samples: int, p: float, s: float) -> tuple[np.ndarray, np.ndarray]:
        component = random.choice(4, samples, p=[p * s, (1 - p) * s, p * (1 - s), (1 - p) * (1 - s)])
        noise = random.standard_normal((samples, 2 * BLOCK)) / np.sqrt(10)
        invariant = 0.01 * (noise[:, :BLOCK] + animal[component][:, None])
        spurious = noise[:, BLOCK:] + background[component][:, None]
        return np.hstack([invariant, spurious]), (invariant.sum(1) > 0).astype(float)

    return environment, list(zip(follows, cows, strict=True)), np.ones(BLOCK)


def _margins(random: np.random.Generator, environments: int) -> Maker:
    """Example3: a small invariant margin, and a large spurious one whose direction mu_e differs between environments.

    Class 0: x_inv = 0.1 N + 0.1, x_spu = 0.1 N + mu_e, mu_e ~ N(0, I); class 1: the means negated; classes balanced.
    """
    means = random.standard_normal((environments, BLOCK))

    def environment(random: np.random.Generator, samples: int, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        label = np.repeat([0.0, 1.0], samples // 2)
        centre = np.append(np.full(BLOCK, 0.1), mean)
        noise = 0.1 * random.standard_normal((len(label), 2 * BLOCK))
        return noise + (1 - 2 * label)[:, None] * centre, label

    return environment, [(mean,) for mean in means], -np.ones(BLOCK)


LINEAR_UNIT_TESTS = {
    "Example1": (_causes_and_effects, False),
    "Example1s": (_causes_and_effects, True),
    "Example2": (_animals, False),
    "Example2s": (_animals, True),
    "Example3": (_margins, False),
    "Example3s": (_margins, True),
}
"""Name -> (what makes the test, whether its inputs are rotated)."""
