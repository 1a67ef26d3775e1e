from .anchor import AnchorRegressor as AnchorRegressor
from .drig import InvariantGradientRegressor as InvariantGradientRegressor
from .explicit import ExplicitClassifier as ExplicitClassifier
from .explicit import ExplicitRegressor as ExplicitRegressor
from .invariant_causal_prediction import InvariantCausalRegressor as InvariantCausalRegressor
from .invariant_least_squares import InvariantLeastSquares as InvariantLeastSquares
from .pooled import PooledClassifier as PooledClassifier
from .pooled import PooledRegressor as PooledRegressor
