"""Engines: where a function runs over many items (threads, processes, a Dask cluster, devices of jax)."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
