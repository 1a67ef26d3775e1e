"""The user's files: tables in chunks, measurements of matrices, models."""

from holdfast.io.measurements import read_measurements
from holdfast.io.models import TableModel
from holdfast.io.tables import Column, read_chunks

__all__ = ["Column", "TableModel", "read_chunks", "read_measurements"]
__dir__ = __all__.copy
