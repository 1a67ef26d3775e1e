"""Sweeps: a program over a grid, a list or a random design of settings times seeds, on any machine."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
