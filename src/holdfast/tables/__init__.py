"""The user's files: tables in chunks, measurements of matrices, models."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
