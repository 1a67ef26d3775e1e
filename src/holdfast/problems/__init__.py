"""What is true: signals and environments. A problem knows nothing about training."""

from holdfast.problems.matrix_sensing import MatrixSensing, matrix_sensing, orthonormal_frame

__all__ = ["MatrixSensing", "matrix_sensing", "orthonormal_frame"]
