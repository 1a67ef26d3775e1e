"""Losses of linear models in each environment: risk, gradient, curvature and variance, for NumPy and jax arrays."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
