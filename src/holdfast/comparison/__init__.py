"""Methods over public tests: which one predicts where the shortcuts fail."""

from holdfast.comparison.methods import METHODS, ComparedMethod, FittedMethod, fitted_estimator
from holdfast.comparison.public_tests import PUBLIC_TESTS, Group, PublicTest
from holdfast.comparison.rendering import to_html, to_json, to_markdown
from holdfast.comparison.results import Comparison, Ranking
from holdfast.comparison.runner import compare
from holdfast.comparison.summary import ComparisonSummary, summarize

__all__ = [
    "METHODS",
    "PUBLIC_TESTS",
    "ComparedMethod",
    "Comparison",
    "ComparisonSummary",
    "FittedMethod",
    "Group",
    "PublicTest",
    "Ranking",
    "compare",
    "fitted_estimator",
    "summarize",
    "to_html",
    "to_json",
    "to_markdown",
]
__dir__ = __all__.copy
