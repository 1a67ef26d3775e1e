"""The measures of a method on one seed of a test."""

import time
from typing import Literal

import numpy as np

from holdfast.comparison.methods.base import ComparedMethod, environment_errors
from holdfast.datasets.splits import Dataset

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


def compute_cell(method: ComparedMethod, dataset: Dataset, seed: int) -> Values:
    """Fit a method to one data set and measure it.

    Args:
        method: to fit on the training and validation rows.
        dataset: one seed of a test.
        seed: of the method.

    Returns:
        error: on the test rows, mean over environments.
        worst_error: in the worst environment.
        coefficient_error: distance to the coefficients of the invariant predictor, if they are known.
        false_coefficient: the largest of those that should be 0, if they are known.
        choice: of hyper-parameters.
        seconds: of the fit.

    Example:
        >>> from holdfast.comparison import METHODS
        >>> from holdfast.datasets import toy_dataset
        >>> values = compute_cell(METHODS["least_squares"], toy_dataset(1.0, 0.5, 0, samples=100), 0)
        >>> values["error"] > 1  # the variance of the noise, which least squares on all rows does not reach
        True
    """
    begin = time.monotonic()
    fitted = method.fit(dataset, seed)
    seconds = time.monotonic() - begin
    errors = environment_errors(fitted.predict(dataset.test.inputs), dataset.test, dataset.kind)
    values: Values = {"error": float(errors.mean()), "worst_error": float(errors.max())}
    if dataset.coefficients is not None and fitted.coefficients is not None and dataset.kind == "regression":
        values["coefficient_error"] = float(np.linalg.norm(fitted.coefficients - dataset.coefficients))
        false = np.abs(fitted.coefficients[dataset.coefficients == 0])
        values["false_coefficient"] = float(false.max()) if len(false) else 0.0
    return {**values, "choice": fitted.choice, "seconds": round(seconds, 3)}
