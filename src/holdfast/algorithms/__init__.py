"""Algorithms: pairs (init, step) of pure functions."""

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.factored import Factors, factored, sampled

__all__ = ["Algorithm", "Factors", "factored", "sampled"]
