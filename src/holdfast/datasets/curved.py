"""Tables in which straight lines differ between environments although the mechanism is the same in all of them."""

from collections.abc import Callable

import numpy as np

from holdfast.datasets.splits import Split

ROWS = 500  # of each environment
ENVIRONMENTS = 4

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
