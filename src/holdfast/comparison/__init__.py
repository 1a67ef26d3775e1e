"""Methods over public tests: which one predicts where the shortcuts fail."""

from holdfast.comparison.methods import METHODS
from holdfast.comparison.runner import Comparison, compare
from holdfast.comparison.tests import TESTS

__all__ = ["Comparison", "METHODS", "TESTS", "compare"]
