"""Small tables with causes, and effects of the target whose strength changes: the toy model, and curved mechanisms."""

from collections.abc import Callable

import numpy as np

from holdfast.datasets.splits import Dataset, Split, permute_within, stack, with_shortcuts

FEATURES = 12
CAUSES = np.arange(3)
EFFECTS = np.arange(3, 6)
SAMPLES = 5_000
ENVIRONMENTS = 4
TOY_SETTINGS = ((0.1, 0.5), (0.3, 0.3), (0.5, 0.5), (1.0, 1.0), (1.0, 0.5), (0.5, 0.2))
"""Pairs (s, M), where effects of the target have strength s + M in even environments and s - M in odd ones."""


def toy_dataset(bias: float, heterogeneity: float, seed: int, *, samples: int = SAMPLES) -> Dataset:
    """One seed of the toy model.

        y = x_1 + x_2 + x_3 + N,    x_4, x_5, x_6 = c_e y + N,    c_e = s + M or s - M in turn

    In the test split the effects are permuted over the rows of an environment.

    Args:
        bias: s, the mean strength of the effects.
        heterogeneity: M, its spread.
        seed: of the rows.
        samples: rows of each of the 4 environments.

    Example:
        >>> toy_dataset(1.0, 0.5, seed=0, samples=50).coefficients
        array([1., 1., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0.])
    """
    random = np.random.default_rng(seed)

    def environment(strength: float) -> tuple[np.ndarray, np.ndarray]:
        inputs = random.standard_normal((samples, FEATURES))
        target = inputs[:, CAUSES].sum(1) + random.standard_normal(samples)
        inputs[:, EFFECTS] = strength * target[:, None] + random.standard_normal((samples, len(EFFECTS)))
        return inputs, target

    def split(shortcuts: bool) -> Split:
        signs = np.resize([1.0, -1.0], ENVIRONMENTS)
        rows = stack([environment(bias + sign * heterogeneity) for sign in signs])
        return rows if shortcuts else permute_within(rows, EFFECTS, random)

    return with_shortcuts("regression", split, np.isin(np.arange(FEATURES), CAUSES).astype(float))


ROWS = 500  # of each environment of a curved table

CURVED_SHAPES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "line": lambda a, b: a - b,
    "square": lambda a, b: a**2 + b,
    "wave": lambda a, b: 2 * np.sin(1.5 * a) + b,
    "product": lambda a, b: a * b,
    "product and square": lambda a, b: a * b + b**2 / 2,
}
"""Name of a shape -> the mean of the response, given its two causes."""


def curved_table(shape: str, seed: int, *, rows: int = ROWS, environments: int = ENVIRONMENTS) -> Split:
    """Two causes whose distribution shifts, a consequence whose strength varies, and a column without effect.

        y = f(x_0, x_1) + N(0, 1),    x_2 = strength_e y + N(0, 1),    x_j ~ N(mean_ej, spread_ej^2) for j = 0, 1, 3

    The best straight lines of x_0 and x_1 depend on where an environment lies, unless f is a line.

    Args:
        shape: f, a name in `CURVED_SHAPES`.
        seed: decides environments and rows.
        rows: of each environment.
        environments: their number.

    Example:
        >>> curved_table("square", 0, rows=10).inputs.shape
        (40, 4)
    """
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(environments), rows)
    means, spreads = random.uniform(-2, 2, (environments, 3)), random.uniform(0.5, 1.5, (environments, 3))
    first, second, idle = (means[codes] + spreads[codes] * random.standard_normal((len(codes), 3))).T
    y = CURVED_SHAPES[shape](first, second) + random.standard_normal(len(codes))
    strengths = random.permutation(np.linspace(0.3, 2, environments))
    consequence = strengths[codes] * y + random.standard_normal(len(codes))
    return Split(np.column_stack([first, second, consequence, idle]), y, codes)
