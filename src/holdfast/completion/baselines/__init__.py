"""Other methods of matrix completion, in scikit-learn's conventions."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
