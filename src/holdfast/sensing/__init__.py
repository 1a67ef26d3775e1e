"""Multi-environment matrix sensing from settings to result: settings, simulation, signals, outcome, trajectory."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
