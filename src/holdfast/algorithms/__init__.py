"""Algorithms: pure functions init and step; see `holdfast.core.Algorithm`."""

from holdfast.algorithms.factored import AlgorithmMaker, Factors, Gradient, factored, sampled

__all__ = ["AlgorithmMaker", "Factors", "Gradient", "factored", "sampled"]
__dir__ = __all__.copy
