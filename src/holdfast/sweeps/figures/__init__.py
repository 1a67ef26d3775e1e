"""Figures of sweeps: what is drawn, summarised over seeds, and how it is drawn."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
