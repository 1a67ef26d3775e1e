"""Algorithms: pure functions init and step; see `holdfast.core.algorithm`."""

from holdfast.algorithms.factored import AlgorithmMaker, Factors, Gradient, factored, sampled
from holdfast.core.algorithm import Algorithm

__all__ = ["Algorithm", "AlgorithmMaker", "Factors", "Gradient", "factored", "sampled"]
__dir__ = __all__.copy
