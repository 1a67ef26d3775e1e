"""Which engine computes if none is chosen."""

from holdfast.sweeps.engines.base import Engine

# Several experiments are computed in processes, one on each core: threads would wait for Python's lock, which tracing
# and short arrays hold. Each process takes about a gigabyte, so there are not more than this.
MOST_PROCESSES = 4


def default_engine() -> Engine:
    """Of cells of a sweep: threads, one for each core; on accelerators one for each of them, since a cell fills one.

    Those of a comparison have a thread for each core everywhere: most of its methods compute on the CPU.

    Example:
        >>> default_engine().name.endswith(("thread", "threads"))
        True
    """
    import jax

    from holdfast.sweeps.engines.devices import DeviceEngine
    from holdfast.sweeps.engines.threads import ThreadEngine

    return ThreadEngine() if jax.default_backend() == "cpu" else DeviceEngine()


def engine_of_experiments(count: int) -> Engine | None:
    """Of experiments: a process on each core, unless there is one only, or they would share an accelerator.

    For the command alone: processes import the functions, so those that a user wrote in a session cannot be computed
    there, and a script that starts processes needs `if __name__ == "__main__":`.

    Example:
        >>> engine_of_experiments(1) is None
        True
    """
    from holdfast.core.run import available_devices
    from holdfast.core.worker import available_cores
    from holdfast.sweeps.engines.processes import ProcessEngine

    processes = min(count, len(available_cores()), MOST_PROCESSES)
    return ProcessEngine(processes) if processes > 1 and available_devices()[0].platform == "cpu" else None
