"""The store of results, and the fingerprint of the code that decides whether a result is still valid."""

from holdfast.execution.store import DATASETS, RECORDS, DamagedError, Key, Store

__all__ = ["DATASETS", "DamagedError", "Key", "RECORDS", "Store"]
__dir__ = __all__.copy
