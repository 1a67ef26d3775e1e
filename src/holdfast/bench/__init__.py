"""Speed, measured against the limits of the machine in the same run."""

from holdfast.bench.report import report

__all__ = ["report"]
