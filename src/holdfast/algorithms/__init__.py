"""Algorithms: pairs (init, step) of pure functions."""

from holdfast.algorithms.factored import Factors, factored, sampled
from holdfast.core.algorithm import Algorithm

__all__ = ["Algorithm", "Factors", "factored", "sampled"]
