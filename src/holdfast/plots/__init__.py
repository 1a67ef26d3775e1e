"""Figures: one style, curves with bands over seeds, maps over two settings, figures of a fitted table."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
