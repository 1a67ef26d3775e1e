"""The cost of fitting tables, in processor time, and against one pooled least-squares fit of the same rows."""

import time
from functools import partial

import numpy as np

from holdfast_studies.benchmarks.timing import best, best_of_each

FEATURES, ENVIRONMENTS = 100, 10


def large_table(
    rows: int, features: int = FEATURES, environments: int = ENVIRONMENTS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A tenth of the features cause the response, a tenth follow it with a strength that each environment has."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, features), dtype=np.float32)
    codes = random.integers(0, environments, rows)
    some = features // 10
    y = x[:, :some].sum(1) + random.standard_normal(rows)
    followers = (np.linspace(0.2, 1.2, environments)[codes] * y)[:, None] + random.standard_normal((rows, some))
    x[:, some : 2 * some] = followers
    return x, y, codes


def against_least_squares(quick: bool) -> dict[str, float]:
    """Processor seconds of both fits, taken in turn, and their ratio."""
    from sklearn.linear_model import LinearRegression

    from holdfast.estimators.regressor import HeteroRegressor

    x, y, codes = large_table(10_000 if quick else 1_000_000)
    works = {
        "least_squares": partial(LinearRegression().fit, x, y),
        "hetero": partial(HeteroRegressor().fit, x, y, environments=codes),
    }
    seconds = best_of_each(works, 1 if quick else 5, time.process_time)
    return {
        "rows": len(x),
        **{f"cpu_seconds_{name}": value for name, value in seconds.items()},
        "times_least_squares": seconds["hetero"] / seconds["least_squares"],
    }


def fits(quick: bool) -> dict[str, float]:
    """Processor seconds of a fit, after import."""
    from holdfast.estimators.regressor import HeteroRegressor

    found = {}
    for rows, features, environments in ((10_000, 20, 5), (50_000, 20, 1_000), (3_000, 10, 949)):
        x, y, codes = large_table(rows, features, environments)
        work = partial(HeteroRegressor().fit, x, y, environments=codes)
        name = f"{rows} rows, {features} features, {environments} environments"
        found[name] = best(work, repeats=1 if quick else 5, clock=time.process_time)
    return found
