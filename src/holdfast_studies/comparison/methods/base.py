"""The contract of a method in the comparison, and how estimators meet it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.datasets.splits import Dataset, Kind, Split
from holdfast.estimators.contract import EnvironmentEstimator


class FittedMethod(NamedTuple):
    """A method after its fit.

    Attributes:
        predict: (rows, features) -> (rows,), numbers or labels.
        coefficients: (features,), or None for a method that has none.
        choice: the hyper-parameters that were chosen, in words.

    Example:
        >>> FittedMethod(lambda inputs: inputs.sum(1)).predict(np.ones((3, 2))).tolist()
        [2.0, 2.0, 2.0]
    """

    predict: Callable[[np.ndarray], np.ndarray]
    coefficients: np.ndarray | None = None
    choice: str = ""


@dataclass(frozen=True)
class ComparedMethod:
    """A method in the comparison.

    Attributes:
        name: on the command line.
        title: in tables.
        about: how it is tuned, one sentence.
        kinds: what it can learn.
        fit: (data, seed) -> FittedMethod; sees the training and validation rows, never the test.
        home: the module that decides what it does.
        packages: that it needs in addition to those that all methods need.
        fit_all: (data sets of one shape, seeds) -> their fits, for a method that is faster on an accelerator when it
            fits many at once; None: they are fitted one by one.
        oracle: whether it knows what is invariant.
        ours: whether it is a method of this library.
        groups: of tests that it is run on; None for all.
        most_features: of a test that states them; None for any number.
        most_environments: the same.

    Example, a method that predicts the mean of the training rows:
        >>> def fit_mean(data: Dataset, seed: int) -> FittedMethod:
        ...     mean = data.train.targets.mean()
        ...     return FittedMethod(lambda inputs: np.full(len(inputs), mean))
        >>> method = ComparedMethod("mean", "Mean", "Nothing to tune.", ("regression",), fit_mean, __name__)
        >>> rows = Split(np.zeros((2, 1)), np.array([1.0, 3.0]), np.array([0, 1]))
        >>> method.fit(Dataset("regression", rows, rows, rows), 0).predict(rows.inputs).tolist()
        [2.0, 2.0]
    """

    name: str
    title: str
    about: str
    kinds: tuple[Kind, ...]
    fit: Callable[[Dataset, int], FittedMethod]
    home: str
    packages: tuple[str, ...] = ()
    fit_all: Callable[[Sequence[Dataset], Sequence[int]], list[FittedMethod]] | None = None
    oracle: bool = False
    ours: bool = False
    groups: tuple[str, ...] | None = None
    most_features: int | None = None
    most_environments: int | None = None


def environment_errors(predicted: np.ndarray, table: Split, kind: Kind) -> np.ndarray:
    """Mean squared error, or share of wrong labels, in each environment of a table.

    Example:
        >>> table = Split(np.zeros((3, 1)), np.array([0.0, 1.0, 1.0]), np.array([0, 0, 1]))
        >>> environment_errors(np.ones(3), table, "classification").tolist()
        [0.5, 0.0]
    """
    lost = np.square(predicted - table.targets) if kind == "regression" else predicted != table.targets
    return np.array([lost[table.environments == each].mean() for each in np.unique(table.environments)])


def fitted_estimator(estimator: EnvironmentEstimator, table: Split, choice: str = "") -> FittedMethod:
    """An estimator fitted to a table.

    Example:
        >>> from holdfast.estimators.baselines import PooledRegressor
        >>> rows = Split(np.arange(4.0)[:, None], 2 * np.arange(4.0), np.array([0, 0, 1, 1]))
        >>> fitted_estimator(PooledRegressor(), rows).coefficients.round(3).tolist()
        [2.0]
    """
    estimator.fit(table.inputs, table.targets, environments=table.environments)
    coefficients = getattr(estimator, "coef_", None)
    return FittedMethod(estimator.predict, None if coefficients is None else np.ravel(coefficients), choice)


def best_on_validation(candidates: list[FittedMethod], data: Dataset) -> FittedMethod:
    """The one with the lowest error on the validation rows, mean over environments; the first of several."""
    errors = [
        environment_errors(each.predict(data.validation.inputs), data.validation, data.kind) for each in candidates
    ]
    means = np.array([error.mean() for error in errors])
    return candidates[int(np.argmin(np.where(np.isfinite(means), means, np.inf)))]
