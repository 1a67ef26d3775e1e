"""Results that are computed cell by cell, stores of them, and the fingerprint of the code that decides them."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
