"""Theory as code: pure functions on problems, states and trajectories.

Growth: `lyapunov` has exponents, `logarithm` the mean logarithms behind them, `finite_time` the law after T steps,
`sampling` what finite batches add. Answers: `window` has the step sizes that wash out, `advice` settings for a wanted
confidence, `regions` what a setting ends in, `diagnosis` all of it in words. Data: `estimation` finds the problem
behind measurements, `assumptions` checks those of the paper, `findings` puts both together. Proofs: `sequences` has
the auxiliary sequences of the paper, `isometry` the restricted isometry property, `absorbing` the
sets that SGD on deep linear networks does not leave.
"""

from holdfast.theory.advice import Advice, advise
from holdfast.theory.assumptions import check_assumptions
from holdfast.theory.diagnosis import Diagnosis, diagnose
from holdfast.theory.estimation import Estimated, estimate
from holdfast.theory.findings import Findings, examine
from holdfast.theory.finite_time import log_share, median_share
from holdfast.theory.lyapunov import (
    exponents,
    matrix_exponents,
    stationary_shares,
    top_exponent,
    two_point_exponent,
    two_point_threshold,
)
from holdfast.theory.sampling import residual_floor
from holdfast.theory.window import Window, paper_window, sharp_window

__all__ = [
    "Advice",
    "Diagnosis",
    "Estimated",
    "Findings",
    "Window",
    "advise",
    "check_assumptions",
    "diagnose",
    "estimate",
    "examine",
    "exponents",
    "log_share",
    "matrix_exponents",
    "median_share",
    "paper_window",
    "residual_floor",
    "sharp_window",
    "stationary_shares",
    "top_exponent",
    "two_point_exponent",
    "two_point_threshold",
]
__dir__ = __all__.copy
