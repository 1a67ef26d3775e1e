"""Regressions on all rows at once, and the oracle."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from holdfast.datasets.splits import Dataset, Kind
from holdfast.estimators.baselines.linear import PooledClassifier, PooledRegressor
from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, best_on_validation, fitted_estimator

# Relative to the mean loss; the smallest for classification is as good as none.
REGULARIZATIONS = np.logspace(-5, 1, 13)


def _least_squares(data: Dataset, seed: int) -> FittedMethod:
    return fitted_estimator(PooledRegressor(), data.train)


def _regularised(data: Dataset, seed: int) -> FittedMethod:
    kind = PooledRegressor if data.kind == "regression" else PooledClassifier
    names = {value: f"regularization {value:.2g}" for value in REGULARIZATIONS.tolist()}
    fits = [fitted_estimator(kind(value), data.train, name) for value, name in names.items()]
    return best_on_validation(fits, data)


def _boosting(data: Dataset, seed: int) -> FittedMethod:
    kind = HistGradientBoostingRegressor if data.kind == "regression" else HistGradientBoostingClassifier
    # Early stopping would set rows of all environments aside; without it nothing depends on the seed.
    fitted = kind(early_stopping=False, random_state=seed).fit(data.train.inputs, data.train.targets)
    return FittedMethod(fitted.predict)


def _oracle(data: Dataset, seed: int) -> FittedMethod:
    if data.shortcut_free is None:
        raise ValueError("an oracle needs a test whose invariant features are known")
    kind = PooledRegressor() if data.kind == "regression" else PooledClassifier(float(REGULARIZATIONS[0]))
    return fitted_estimator(kind, data.shortcut_free)


BOTH: tuple[Kind, ...] = ("regression", "classification")
POOLED = (
    ComparedMethod(
        "oracle", "oracle", "least squares or logistic regression on rows whose spurious features were permuted",
        BOTH, _oracle, __name__, oracle=True,
    ),
    ComparedMethod(
        "least_squares", "least squares", "pooled, nothing to tune", ("regression",), _least_squares, __name__
    ),
    ComparedMethod(
        "regularized", "ridge, or logistic regression",
        "pooled; standardised for classification; regularisation chosen on validation rows among 13 values",
        BOTH, _regularised, __name__,
    ),
    ComparedMethod(
        "boosting", "gradient boosting",
        "scikit-learn's HistGradientBoosting with its defaults, 100 trees without early stopping; not linear",
        BOTH, _boosting, __name__,
    ),
)  # fmt: skip
