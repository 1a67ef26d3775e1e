from .explicit import ExplicitClassifier as ExplicitClassifier
from .explicit import ExplicitRegressor as ExplicitRegressor
from .linear import AnchorRegressor as AnchorRegressor
from .linear import InvariantCausalRegressor as InvariantCausalRegressor
from .linear import InvariantGradientRegressor as InvariantGradientRegressor
from .linear import InvariantLeastSquares as InvariantLeastSquares
from .linear import PooledClassifier as PooledClassifier
from .linear import PooledRegressor as PooledRegressor
