"""Anchor regression, DRIG, invariant causal prediction and EILLS, with the settings of their papers."""

from collections.abc import Callable
from functools import partial

import numpy as np

from holdfast.datasets.splits import Dataset
from holdfast.estimators.baselines.linear import (
    AnchorRegressor,
    InvariantCausalRegressor,
    InvariantGradientRegressor,
    InvariantLeastSquares,
)
from holdfast.estimators.contract import EnvironmentEstimator
from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, fitted_estimator

# Invariant causal prediction tests every set of candidates in every environment, in Python.
FEW_ENVIRONMENTS = 20
CANDIDATES, FEWER_CANDIDATES = 8, 5
# On many tables methods are run where a fit takes seconds: the tests of an environment 16,000 times, and 2^12 sets.
MOST_ENVIRONMENTS = 10
MOST_FEATURES = 12


def _fit(make: Callable[[], EnvironmentEstimator], data: Dataset, seed: int) -> FittedMethod:
    return fitted_estimator(make(), data.train)


def _invariant_gradients(data: Dataset, seed: int) -> FittedMethod:
    fitted = InvariantGradientRegressor()
    return fitted_estimator(fitted, data.train)._replace(choice=f"gamma={fitted.gamma_:.3g}")


def _causal(data: Dataset, seed: int) -> FittedMethod:
    few = len(np.unique(data.train.environments)) <= FEW_ENVIRONMENTS
    return fitted_estimator(InvariantCausalRegressor(candidates=CANDIDATES if few else FEWER_CANDIDATES), data.train)


PACKAGED = (
    ComparedMethod(
        "anchor", "anchor regression", "gamma 5, not tuned (package ivmodels)", ("regression",),
        partial(_fit, AnchorRegressor), __name__, ("ivmodels",),
    ),
    ComparedMethod(
        "drig", "DRIG",
        "gamma 5, not tuned, or less where the objective has no minimum; reference: the environment that varies least",
        ("regression",), _invariant_gradients, __name__,
    ),
    ComparedMethod(
        "icp", "invariant causal prediction",
        "level 0.05, first 8 features on the path of the lasso, 5 with over 20 environments (package causalicp)",
        ("regression",), _causal, __name__, ("causalicp",), most_environments=MOST_ENVIRONMENTS,
    ),
    ComparedMethod(
        "eills", "EILLS", "penalty 20 as in its paper, all sets of features searched", ("regression",),
        partial(_fit, InvariantLeastSquares), __name__, most_features=MOST_FEATURES,
    ),
)  # fmt: skip
