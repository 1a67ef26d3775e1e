"""Regressions on all rows at once, and the oracle."""

import numpy as np

from holdfast.comparison.methods.base import ComparedMethod, Fitted, best_on_validation, fitted_estimator
from holdfast.datasets.splits import Dataset, Split
from holdfast.estimators.baselines.pooled import PooledClassifier, PooledRegressor

# Relative to the mean loss; the smallest for classification is as good as none.
REGULARIZATIONS = np.logspace(-5, 1, 13)


def _least_squares(task: Dataset, seed: int) -> Fitted:
    return fitted_estimator(PooledRegressor(), task.train)


def _regularised(task: Dataset, train: Split) -> Fitted:
    kind = PooledRegressor if task.kind == "regression" else PooledClassifier
    fits = [fitted_estimator(kind(value), train, f"regularization {value:.2g}") for value in REGULARIZATIONS.tolist()]
    return best_on_validation(fits, task)


def _tuned(task: Dataset, seed: int) -> Fitted:
    return _regularised(task, task.train)


def _oracle(task: Dataset, seed: int) -> Fitted:
    if task.shortcut_free is None:
        raise ValueError("an oracle needs a test whose invariant features are known")
    kind = PooledRegressor() if task.kind == "regression" else PooledClassifier(float(REGULARIZATIONS[0]))
    return fitted_estimator(kind, task.shortcut_free)


_HERE = "holdfast.comparison.methods.pooled"
POOLED = (
    ComparedMethod(
        "oracle",
        "oracle",
        "least squares or logistic regression on rows whose spurious features were permuted",
        ("regression", "classification"),
        _oracle,
        _HERE,
        oracle=True,
    ),
    ComparedMethod("least_squares", "least squares", "pooled, nothing to tune", ("regression",), _least_squares, _HERE),
    ComparedMethod(
        "regularized",
        "ridge, or logistic regression",
        "pooled; standardised for classification; regularisation chosen on validation rows among 13 values",
        ("regression", "classification"),
        _tuned,
        _HERE,
    ),
)
