"""Methods over public tests: which one predicts where the shortcuts fail."""

from holdfast.comparison.methods import METHODS
from holdfast.comparison.public_tests import PUBLIC_TESTS
from holdfast.comparison.runner import Comparison, compare

__all__ = ["Comparison", "METHODS", "PUBLIC_TESTS", "compare"]
