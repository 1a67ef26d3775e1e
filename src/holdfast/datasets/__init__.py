"""Tables with environments, in which some features predict the target everywhere and others only in training."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
