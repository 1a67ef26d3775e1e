"""The contract of a method in the comparison, how estimators meet it, and what is measured of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from holdfast.datasets.splits import Dataset, Kind, Split
from holdfast.estimators.contract import EnvironmentEstimator

Measure = Literal["error", "worst_error", "coefficient_error", "false_coefficient", "log_ratio", "beyond_2_percent"]
Values = dict[str, float | str]

TITLES: dict[Measure, str] = {
    "error": "test error",
    "worst_error": "test error in the worst environment",
    "coefficient_error": "distance of the coefficients to the invariant ones",
    "false_coefficient": "largest coefficient that should be 0",
    "log_ratio": "log of the error relative to least squares",
    "beyond_2_percent": "share of tables over 2 % worse than least squares",
}
# Packages that every method uses, so that their versions decide the numbers.
PACKAGES = ("numpy", "scipy", "scikit-learn", "jax", "pandas")


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


def compute_cells(method: ComparedMethod, data_sets: Sequence[Dataset], seeds: Sequence[int]) -> list[Values]:
    """Fit a method to data sets and measure it on each.

    Args:
        method: to fit on the training and validation rows.
        data_sets: seeds of one test; several are fitted at once, if the method can do that.
        seeds: of the method, one for each data set.

    Returns:
        error: on the test rows, mean over environments.
        worst_error: in the worst environment.
        coefficient_error: distance to the coefficients of the invariant predictor, if they are known.
        false_coefficient: the largest of those that should be 0, if they are known.
        choice: of hyper-parameters.
        seconds: of the fit; of several at once, an equal share.

    Example:
        >>> from holdfast_studies.comparison import METHODS
        >>> from holdfast.datasets import toy_dataset
        >>> (values,) = compute_cells(METHODS["least_squares"], [toy_dataset(1.0, 0.5, 0, samples=100)], [0])
        >>> values["error"] > 1  # the variance of the noise, which least squares on all rows does not reach
        True
    """
    begin = time.monotonic()
    if method.fit_all is not None and len(data_sets) > 1:
        fits = method.fit_all(data_sets, seeds)
    else:
        fits = [method.fit(data_set, seed) for data_set, seed in zip(data_sets, seeds, strict=True)]
    seconds = (time.monotonic() - begin) / len(data_sets)
    return [
        {**_measured(fitted, data_set), "choice": fitted.choice, "seconds": round(seconds, 3)}
        for fitted, data_set in zip(fits, data_sets, strict=True)
    ]


def _measured(fitted: FittedMethod, data_set: Dataset) -> Values:
    errors = environment_errors(fitted.predict(data_set.test.inputs), data_set.test, data_set.kind)
    values: Values = {"error": float(errors.mean()), "worst_error": float(errors.max())}
    if data_set.coefficients is not None and fitted.coefficients is not None and data_set.kind == "regression":
        values["coefficient_error"] = float(np.linalg.norm(fitted.coefficients - data_set.coefficients))
        false = np.abs(fitted.coefficients[data_set.coefficients == 0])
        values["false_coefficient"] = float(false.max()) if len(false) else 0.0
    return values
