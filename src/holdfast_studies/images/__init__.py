"""Methods on images with a shortcut, trained for many seeds and settings at once; needs torch."""

__all__: list[str] = []
__dir__ = __all__.copy
