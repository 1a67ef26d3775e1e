"""What others would fit: pooled regressions and published methods for invariance, as estimators."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
