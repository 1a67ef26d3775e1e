"""The report of a reproduction: one HTML file that needs nothing else."""

from holdfast.report.page import Section, page

__all__ = ["Section", "page"]
