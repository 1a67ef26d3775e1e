"""What is measured of a method on one draw of a test."""

import time

import numpy as np

from holdfast.comparison.methods.base import ComparedMethod, environment_errors
from holdfast.datasets.splits import Dataset

Values = dict[str, float | str]


def compute_cell(method: ComparedMethod, task: Dataset, seed: int) -> Values:
    """Fit a method to one draw of a test and measure it.

    Returns:
        error: on the test rows, mean over environments.
        worst_error: in the worst environment.
        coefficient_error: distance to the coefficients of the invariant predictor, where they are known.
        false_coefficient: the largest among those that should be 0, likewise.
        choice: of hyper-parameters.
        seconds: of the fit.
    """
    begin = time.monotonic()
    fitted = method.fit(task, seed)
    seconds = time.monotonic() - begin
    errors = environment_errors(fitted.predict(task.test.inputs), task.test, task.kind)
    values: Values = {"error": float(errors.mean()), "worst_error": float(errors.max())}
    if task.coefficients is not None and fitted.coefficients is not None and task.kind == "regression":
        values["coefficient_error"] = float(np.linalg.norm(fitted.coefficients - task.coefficients))
        false = np.abs(fitted.coefficients[task.coefficients == 0])
        values["false_coefficient"] = float(false.max()) if len(false) else 0.0
    return {**values, "choice": fitted.choice, "seconds": round(seconds, 3)}
