from .alternating import AlternatingLeastSquares as AlternatingLeastSquares
from .soft_impute import SoftImpute as SoftImpute
from .two_way_means import TwoWayMeans as TwoWayMeans
