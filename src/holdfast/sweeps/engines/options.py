"""The choice of an engine as options of a command."""

from dataclasses import dataclass

from holdfast.core.validation import COUNT
from holdfast.sweeps.engines.base import Engine


@dataclass(frozen=True)
class EngineOptions:
    """Where the work runs. Choose at most one. Default: threads, unless the command says otherwise.

    Example:
        >>> EngineOptions(workers=2).engine().name, EngineOptions().engine()
        ('2 threads', None)
        >>> EngineOptions(processes=2, devices=True).engine()
        Traceback (most recent call last):
        ValueError: only one engine may be chosen, got processes and devices
    """

    workers: int | None = None
    """Threads of this process; in most commands, one for each core if no engine is chosen."""
    processes: int | None = None
    """Processes on this machine, each held to one core."""
    dask: str | None = None
    """Workers of a Dask cluster: the address of its scheduler (tcp://...), or its scheduler file."""
    devices: bool = False
    """One thread for each device that jax sees, such as several GPUs."""

    def __post_init__(self) -> None:
        for name in ("workers", "processes"):
            count = getattr(self, name)
            if count is not None:
                COUNT.check(name, count)

    def engine(self) -> Engine | None:
        """The engine that is chosen; None if none is, and the default of the work applies.

        Raises:
            ValueError: if more than one is.
        """
        chosen = [
            name for name in ("workers", "processes", "dask", "devices") if getattr(self, name) not in (None, False)
        ]
        if len(chosen) > 1:
            raise ValueError(f"only one engine may be chosen, got {' and '.join(chosen)}")
        if self.processes is not None:
            from holdfast.sweeps.engines.processes import ProcessEngine

            return ProcessEngine(self.processes)
        if self.dask is not None:
            from holdfast.sweeps.engines.dask import DaskEngine

            return DaskEngine(self.dask)
        if self.devices:
            from holdfast.sweeps.engines.devices import DeviceEngine

            return DeviceEngine()
        if self.workers is not None:
            from holdfast.sweeps.engines.threads import ThreadEngine

            return ThreadEngine(self.workers)
        return None
