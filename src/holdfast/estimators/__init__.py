"""Invariant prediction for tables, in scikit-learn's conventions: `fit(X, y, *, environments=None)`."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
