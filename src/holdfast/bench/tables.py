"""The cost of fitting a large table, against one pooled least-squares fit of the same rows."""

import numpy as np

from holdfast.bench.timing import best

FEATURES, ENVIRONMENTS = 100, 10


def large_table(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ten features that cause the response, ten that follow it with a strength of their own in each environment."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, FEATURES), dtype=np.float32)
    codes = random.integers(0, ENVIRONMENTS, rows)
    y = x[:, :10].sum(1) + random.standard_normal(rows)
    x[:, 10:20] = (np.linspace(0.2, 1.2, ENVIRONMENTS)[codes] * y)[:, None] + random.standard_normal((rows, 10))
    return x, y, codes


def against_least_squares(quick: bool) -> dict[str, float]:
    """Seconds of both fits and their ratio; compiled programs are warm."""
    from sklearn.linear_model import LinearRegression

    from holdfast.estimators.regressor import HeteroRegressor

    x, y, codes = large_table(50_000 if quick else 1_000_000)
    pooled = best(lambda: LinearRegression().fit(x, y), repeats=2)
    ours = best(lambda: HeteroRegressor().fit(x, y, environments=codes), repeats=2)
    return {
        "rows": len(x),
        "seconds_least_squares": pooled,
        "seconds_hetero": ours,
        "times_least_squares": ours / pooled,
    }
