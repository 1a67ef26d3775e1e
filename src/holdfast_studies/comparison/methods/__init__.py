"""The methods of the comparison by name."""

from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, fitted_estimator
from holdfast_studies.comparison.methods.explicit import EXPLICIT
from holdfast_studies.comparison.methods.hetero import HETERO
from holdfast_studies.comparison.methods.packaged import PACKAGED
from holdfast_studies.comparison.methods.pooled import POOLED

METHODS: dict[str, ComparedMethod] = {method.name: method for method in (*HETERO, *POOLED, *EXPLICIT, *PACKAGED)}
"""The methods of the comparison by name."""

__all__ = ["METHODS", "ComparedMethod", "FittedMethod", "fitted_estimator"]
__dir__ = __all__.copy
