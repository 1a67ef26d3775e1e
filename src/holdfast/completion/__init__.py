"""Matrix completion by deep linear networks, from settings to trajectories and what became of their ranks."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
