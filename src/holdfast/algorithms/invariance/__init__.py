"""Published methods for invariance: penalties, weights and masks on the risks of the environments."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
