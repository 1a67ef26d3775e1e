"""Methods over public tests: which one predicts where the shortcuts fail."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
