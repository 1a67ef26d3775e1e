"""The choice of an engine: the default of each kind of work, and the options of commands."""

from dataclasses import dataclass
from typing import Annotated

from holdfast.core.validation import COUNT, check_fields
from holdfast.sweeps.engines.base import Engine
from holdfast.sweeps.engines.threads import DeviceEngine, ThreadEngine

# Experiments trace programs and compute short arrays, which hold Python's lock, so they run in processes. Each takes
# about a gigabyte of memory, hence this limit.
MOST_PROCESSES = 4


def default_engine() -> Engine:
    """The default for cells of a sweep: one thread for each core, or for each accelerator, which one cell fills.

    A comparison always has one thread for each core, because most of its methods compute on the CPU.

    Example:
        >>> default_engine().name.endswith(("thread", "threads"))
        True
    """
    import jax

    return ThreadEngine() if jax.default_backend() == "cpu" else DeviceEngine()


def engine_of_experiments(count: int) -> Engine | None:
    """The default of `holdfast reproduce`: one process for each core; None for one core, one experiment or a GPU.

    Python calls have another default: processes import functions, so they cannot compute those of an interactive
    session, and a script that starts processes needs `if __name__ == "__main__":`.

    Example:
        >>> engine_of_experiments(1) is None
        True
    """
    from holdfast.core.run import available_devices
    from holdfast.core.worker import available_cores
    from holdfast.sweeps.engines.dask import ProcessEngine

    processes = min(count, len(available_cores()), MOST_PROCESSES)
    return ProcessEngine(processes) if processes > 1 and available_devices()[0].platform == "cpu" else None


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

    workers: Annotated[int | None, COUNT] = None
    """Threads of this process; in most commands, one for each core if no engine is chosen."""
    processes: Annotated[int | None, COUNT] = None
    """Processes on this machine, each held to one core."""
    dask: str | None = None
    """Workers of a Dask cluster: the address of its scheduler (tcp://...), or its scheduler file."""
    devices: bool = False
    """One thread for each device that jax sees, such as several GPUs."""

    def __post_init__(self) -> None:
        check_fields(self)

    def engine(self) -> Engine | None:
        """The engine that is chosen; None if none is, and the default of the work applies.

        Raises:
            ValueError: if more than one is.
        """
        names = ("workers", "processes", "dask", "devices")
        chosen = [name for name in names if getattr(self, name) not in (None, False)]
        if len(chosen) > 1:
            raise ValueError(f"only one engine may be chosen, got {' and '.join(chosen)}")
        if self.workers is not None:
            return ThreadEngine(self.workers)
        if self.devices:
            return DeviceEngine()
        if not chosen:
            return None
        from holdfast.sweeps.engines.dask import DaskEngine, ProcessEngine

        return ProcessEngine(self.processes) if self.processes else DaskEngine(self.dask or "")
