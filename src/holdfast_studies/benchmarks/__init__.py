"""Speed, measured against the limits of the machine in the same run."""

from holdfast_studies.benchmarks.suite import report

__all__ = ["report"]
__dir__ = __all__.copy
