"""Theory as code: pure functions on problems, states and trajectories."""

from holdfast.theory.lyapunov import two_point_exponent, two_point_threshold

__all__ = ["two_point_exponent", "two_point_threshold"]
