"""Anchor regression, invariant causal prediction and EILLS, with the settings of their papers."""

from functools import partial

from holdfast.comparison.methods.base import ComparedMethod, Fitted, fitted_estimator
from holdfast.estimators.baselines.anchor import AnchorRegressor
from holdfast.estimators.baselines.invariant_causal_prediction import InvariantCausalRegressor
from holdfast.estimators.baselines.invariant_least_squares import InvariantLeastSquares
from holdfast.problems.linear.table import Task


def _fit(name: str, task: Task, seed: int) -> Fitted:
    kinds = {"anchor": AnchorRegressor, "icp": InvariantCausalRegressor, "eills": InvariantLeastSquares}
    return fitted_estimator(kinds[name](), task.train)


_HERE = "holdfast.comparison.methods.packaged"
PACKAGED = (
    ComparedMethod(
        "anchor",
        "anchor regression",
        "gamma 5, not tuned (package ivmodels)",
        ("regression",),
        partial(_fit, "anchor"),
        _HERE,
        ("ivmodels",),
    ),
    ComparedMethod(
        "icp",
        "invariant causal prediction",
        "level 0.05, sets of 8 features on the path of the lasso (package causalicp)",
        ("regression",),
        partial(_fit, "icp"),
        _HERE,
        ("causalicp",),
    ),
    ComparedMethod(
        "eills",
        "EILLS",
        "penalty 20 as in its paper, all sets of features searched",
        ("regression",),
        partial(_fit, "eills"),
        _HERE,
    ),
)
