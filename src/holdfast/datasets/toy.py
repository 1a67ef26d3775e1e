"""The toy model: three causes of a target, three effects whose strength changes, six features of noise."""

import numpy as np

from holdfast.datasets.splits import Dataset, Split, permute_within, stack

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

    return Dataset(
        kind="regression",
        train=split(True),
        validation=split(True),
        test=split(False),
        shortcut_free=split(False),
        coefficients=np.isin(np.arange(FEATURES), CAUSES).astype(float),
    )
