"""What is true: signals and environments. A problem knows nothing about training."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
