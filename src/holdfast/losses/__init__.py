"""Losses of linear models in each environment: risk, gradient, curvature and variance, for NumPy and jax arrays."""

from holdfast.losses import logistic, squared
from holdfast.losses.logistic import LogisticRows
from holdfast.losses.slopes import Slopes
from holdfast.losses.squared import SecondMoments

__all__ = ["LogisticRows", "SecondMoments", "Slopes", "logistic", "squared"]
__dir__ = __all__.copy
