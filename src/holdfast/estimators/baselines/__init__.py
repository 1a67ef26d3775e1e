"""What others would fit: pooled regressions and published methods for invariance, as estimators."""

from holdfast.estimators.baselines.anchor import AnchorRegressor
from holdfast.estimators.baselines.explicit import ExplicitClassifier, ExplicitRegressor
from holdfast.estimators.baselines.invariant_causal_prediction import InvariantCausalRegressor
from holdfast.estimators.baselines.invariant_least_squares import InvariantLeastSquares
from holdfast.estimators.baselines.pooled import PooledClassifier, PooledRegressor

__all__ = [
    "AnchorRegressor",
    "ExplicitClassifier",
    "ExplicitRegressor",
    "InvariantCausalRegressor",
    "InvariantLeastSquares",
    "PooledClassifier",
    "PooledRegressor",
]
__dir__ = __all__.copy
