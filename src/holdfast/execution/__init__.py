"""Results that are computed cell by cell, stores of them, and the fingerprint of the code that decides them."""

from holdfast.execution.cells import Cells, Index, Lease
from holdfast.execution.entries import EntryCells
from holdfast.execution.grid import GridCells
from holdfast.execution.grid_dataset import open_grid
from holdfast.execution.layout import Axis, Layout
from holdfast.execution.leases import Leases
from holdfast.execution.recorded import Recorded
from holdfast.execution.store import DATASETS, RECORDS, DamagedError, Key, Store
from holdfast.execution.work import Report, SaveError, WorkOutcome, compute

__all__ = [
    "Axis",
    "Cells",
    "DATASETS",
    "DamagedError",
    "EntryCells",
    "GridCells",
    "Index",
    "Key",
    "Layout",
    "Lease",
    "Leases",
    "RECORDS",
    "Recorded",
    "Report",
    "SaveError",
    "Store",
    "WorkOutcome",
    "compute",
    "open_grid",
]
__dir__ = __all__.copy
