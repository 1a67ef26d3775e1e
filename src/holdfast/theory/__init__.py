"""Theory as code: pure functions on problems, states and trajectories.

`lyapunov` has growth rates, `sequences` the auxiliary sequences of the paper's proof, `isometry` the restricted
isometry property, `absorbing` the sets that SGD on deep linear networks does not leave.
"""

from holdfast.theory.lyapunov import two_point_exponent, two_point_threshold

__all__ = ["two_point_exponent", "two_point_threshold"]
