"""The measures of a method on one seed of a test."""

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from holdfast.datasets.splits import Dataset
from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, environment_errors

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
