"""What is true: signals and environments. A problem knows nothing about training."""

from holdfast.problems.matrix_completion import MatrixCompletion, matrix_completion, random_low_rank, two_by_two
from holdfast.problems.matrix_sensing import MatrixSensing, matrix_sensing
from holdfast.problems.quadratic_network import quadratic_network, random_neurons

__all__ = [
    "MatrixCompletion",
    "MatrixSensing",
    "matrix_completion",
    "matrix_sensing",
    "quadratic_network",
    "random_low_rank",
    "random_neurons",
    "two_by_two",
]
__dir__ = __all__.copy
