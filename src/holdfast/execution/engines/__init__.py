"""Engines: where a function runs over many items (threads, processes, a Dask cluster, devices of jax)."""

from holdfast.execution.engines.base import Engine, Feed, Finished
from holdfast.execution.engines.dask import DaskEngine, LostClusterError
from holdfast.execution.engines.devices import DeviceEngine
from holdfast.execution.engines.options import EngineOptions
from holdfast.execution.engines.processes import ProcessEngine
from holdfast.execution.engines.remote import VersionMismatchError, Versions
from holdfast.execution.engines.threads import ThreadEngine

__all__ = [
    "DaskEngine",
    "DeviceEngine",
    "Engine",
    "EngineOptions",
    "Feed",
    "Finished",
    "LostClusterError",
    "ProcessEngine",
    "ThreadEngine",
    "VersionMismatchError",
    "Versions",
]
__dir__ = __all__.copy
