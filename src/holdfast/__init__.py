"""Holdfast: what heterogeneity in the data makes SGD hold on to, and what it washes away."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast import environments
    from holdfast.core.linear_algebra import orthonormal_frame
    from holdfast.problems import MatrixSensing, matrix_sensing
    from holdfast.sensing.settings import Settings
    from holdfast.sensing.simulation import simulate
    from holdfast.sensing.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = [
    "MatrixSensing",
    "Settings",
    "Trajectory",
    "environments",
    "matrix_sensing",
    "orthonormal_frame",
    "simulate",
]

# Names are imported when first used, so that the command line can answer --help without loading jax.
_HOME = {
    "MatrixSensing": "holdfast.problems",
    "Settings": "holdfast.sensing.settings",
    "Trajectory": "holdfast.sensing.trajectory",
    "matrix_sensing": "holdfast.problems",
    "orthonormal_frame": "holdfast.problems",
    "simulate": "holdfast.sensing.simulation",
}


def __getattr__(name: str) -> Any:
    if name == "environments":
        return importlib.import_module("holdfast.environments")
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
