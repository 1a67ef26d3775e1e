"""What is true: signals and environments. A problem knows nothing about training."""

from holdfast.problems.matrix_sensing import MatrixSensing, matrix_sensing, orthonormal_frame
from holdfast.problems.quadratic_network import quadratic_network, random_neurons

__all__ = ["MatrixSensing", "matrix_sensing", "orthonormal_frame", "quadratic_network", "random_neurons"]
