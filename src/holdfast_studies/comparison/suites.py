"""Suites to choose a default on: many tables and seeds, half of them put aside to confirm the choice once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from holdfast.core.progress import Progress
from holdfast.core.run import available_workers
from holdfast.datasets.real_tables import NEW_TABLES, REAL_TABLES, Half, RealTable, half_of, real_dataset
from holdfast.datasets.splits import Dataset, Kind, Split
from holdfast.datasets.structural import confounded_dataset, random_graph_dataset, spurious_dataset, structural_dataset
from holdfast.estimators.baselines.linear import PooledClassifier, PooledRegressor
from holdfast.estimators.contract import EnvironmentEstimator
from holdfast_studies.kit.runs import tracked

if TYPE_CHECKING:
    import pandas as pd

Measured = TypeVar("Measured")

SEEDS = 100  # of each half
FIRST_SEED: dict[Half, int] = {"choice": 0, "confirmation": 1000}
# The comparison runs the first seeds of the structural models, so those of the suite are others.
STRUCTURAL_OFFSET = 10_000
# No probability is taken to be nearer to 0 or 1 than this.
SMALLEST_PROBABILITY = 1e-6


class SuiteCell(NamedTuple):
    """One fit of a suite.

    Attributes:
        table: the row of the result that it belongs to: a real table, or a seed.
        number: the fold, or the seed.

    Example:
        >>> SuiteCell("tips", 0).table
        'tips'
    """

    table: str
    number: int


@dataclass(frozen=True)
class Suite:
    """Data sets of one sort, and how they are halved.

    Attributes:
        name: a key of `SUITES`.
        about: one sentence.
        kind: regression or classification.
        cells: half -> what is fitted.
        draw: the data set of a cell.

    Example:
        >>> SUITES["spurious"].cells("confirmation")[0]
        SuiteCell(table='seed 1000', number=1000)
    """

    name: str
    about: str
    kind: Kind
    cells: Callable[[Half], list[SuiteCell]]
    draw: Callable[[SuiteCell], Dataset]


def evaluate(
    make: Callable[[], EnvironmentEstimator],
    suite: str = "real",
    half: Half = "choice",
    *,
    tables: Sequence[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> "pd.DataFrame":
    """The error of an estimator in environments it has not seen, relative to least squares on the same rows.

    The error is the mean squared error, or the log loss relative to logistic regression; the estimator is fitted to
    the training and validation rows together. On real tables the ratio is the geometric mean over folds.

    Args:
        make: makes the estimator, anew for each fit.
        suite: a key of `SUITES`.
        half: "choice", or "confirmation" once everything is chosen.
        tables: rows of the result, for a part of the suite.
        workers: threads; by default one for each core.
        progress: called with (fits done, fits in all).

    Returns:
        for each table or seed: relative_error, worst (of its folds), folds and seconds (of a fit).

    Example:
        >>> from holdfast.estimators.baselines import PooledRegressor
        >>> evaluate(PooledRegressor, "graph_do", tables=["seed 3"])["relative_error"].tolist()
        [1.0]
    """
    import pandas as pd

    if suite not in SUITES:
        raise ValueError(f"suite must be among {', '.join(SUITES)}, got {suite!r}")
    if half not in FIRST_SEED:
        raise ValueError(f"half must be among {', '.join(FIRST_SEED)}, got {half!r}")
    chosen = SUITES[suite]
    cells = [cell for cell in chosen.cells(half) if tables is None or cell.table in tables]
    fits = each(partial(_fit_cell, make, chosen.name), cells, workers, progress)
    rows = [(cell.table, *fit) for cell, fit in zip(cells, fits, strict=True)]
    found = pd.DataFrame(rows, columns=["table", "ratio", "seconds"])
    logarithms = found.assign(ratio=np.log(found["ratio"])).groupby("table", sort=False)
    ratio, seconds = logarithms["ratio"], logarithms["seconds"].mean()
    errors = {"relative_error": np.exp(ratio.mean()), "worst": np.exp(ratio.max())}
    return pd.DataFrame(errors | {"folds": logarithms.size(), "seconds": seconds})


def each(
    measure: Callable[[SuiteCell], Measured],
    cells: Sequence[SuiteCell],
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """What is measured on each cell; cells run side by side, one thread each."""
    with threadpool_limits(1), ThreadPoolExecutor(workers or available_workers()) as pool:
        return list(tracked(pool.map(measure, cells), progress, len(cells)))


def suite_summary(found: "pd.DataFrame") -> dict[str, float]:
    """What a result of `evaluate` says in three numbers.

    Example:
        >>> import pandas as pd
        >>> suite_summary(pd.DataFrame({"relative_error": [1.0, 1.04, 0.5, 2.0]}))
        {'geometric_mean': 1.0099, 'within_2_percent': 0.5, 'within_5_percent': 0.75}
    """
    ratios = found["relative_error"]
    return {
        "geometric_mean": round(float(np.exp(np.log(ratios).mean())), 4),
        "within_2_percent": round(float((ratios <= 1.02).mean()), 4),
        "within_5_percent": round(float((ratios <= 1.05).mean()), 4),
    }


def _fit_cell(make: Callable[[], EnvironmentEstimator], suite: str, cell: SuiteCell) -> tuple[float, float]:
    data = SUITES[suite].draw(cell)
    rows = _training_rows(data)
    begin = monotonic()
    estimator = make().fit(rows.inputs, rows.targets, environments=rows.environments)
    seconds = monotonic() - begin
    return _error(estimator, data) / _pooled_error(suite, cell), seconds


def _training_rows(data: Dataset) -> Split:
    return Split(*(np.concatenate(pair) for pair in zip(data.train, data.validation, strict=True)))


def _error(estimator: EnvironmentEstimator, data: Dataset) -> float:
    inputs, targets, _ = data.test
    if data.kind == "regression":
        return float(np.square(estimator.predict(inputs) - targets).mean())
    classifier: Any = estimator  # a suite of labels is for classifiers
    probabilities = classifier.predict_proba(inputs)[:, 1].clip(SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    return float(-np.log(np.where(targets == 1, probabilities, 1 - probabilities)).mean())


@cache
def _pooled_error(suite: str, cell: SuiteCell) -> float:
    """Least squares or logistic regression, which every estimator is compared with: computed once."""
    data = SUITES[suite].draw(cell)
    rows = _training_rows(data)
    pooled = PooledRegressor() if data.kind == "regression" else PooledClassifier()
    return _error(pooled.fit(rows.inputs, rows.targets), data)


def _folds(tables: dict[str, RealTable], kind: Kind, half: Half) -> list[SuiteCell]:
    chosen = {name: table for name, table in tables.items() if table.kind == kind and half_of(name) == half}
    return [SuiteCell(name, fold) for name, table in chosen.items() for fold in range(table.folds)]


def _seeds(half: Half) -> list[SuiteCell]:
    return [SuiteCell(f"seed {seed}", seed) for seed in range(FIRST_SEED[half], FIRST_SEED[half] + SEEDS)]


def _real(cell: SuiteCell) -> Dataset:
    return real_dataset(cell.table, cell.number)


def _synthetic(name: str, about: str, draw: Callable[[int], Dataset], offset: int = 0) -> Suite:
    return Suite(name, about, "regression", _seeds, lambda cell: draw(cell.number + offset))


def _tables(name: str, about: str, tables: dict[str, RealTable], kind: Kind) -> Suite:
    return Suite(name, about, kind, partial(_folds, tables, kind), _real)


_ALL = (
    _tables("real", "real tables, a number to predict", REAL_TABLES, "regression"),
    _tables("real_labels", "real tables, two labels", REAL_TABLES, "classification"),
    _tables("new", "tables collected later, a number to predict", NEW_TABLES, "regression"),
    _tables("new_labels", "tables collected later, two labels", NEW_TABLES, "classification"),
    _synthetic("structural", "the structural models of the comparison", structural_dataset, STRUCTURAL_OFFSET),
    _synthetic("graph_shift", "random graphs, wider noise", partial(random_graph_dataset, "shift")),
    _synthetic("graph_do", "random graphs, features set without their causes", partial(random_graph_dataset, "do")),
    _synthetic("graph_mean", "random graphs, moved means", partial(random_graph_dataset, "mean")),
    _synthetic("graph_noise", "random graphs, changing noise of the target", partial(random_graph_dataset, "noise")),
    _synthetic("confounded", "random graphs with a hidden cause", confounded_dataset),
    _synthetic("spurious", "effects of the target, and no cause", spurious_dataset),
)
SUITES = {suite.name: suite for suite in _ALL}
"""The suites by name."""
