"""What everything else is built on, without science: the loop, estimates with intervals, survival curves."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
