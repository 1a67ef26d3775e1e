"""One module for each figure, theorem or question, which ends with its `EXPERIMENT`; phase diagrams for any law."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
