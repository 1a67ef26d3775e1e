"""What code knows about the worker that runs it: how many threads it may use, and whether it has been asked to stop."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple


class StoppedError(Exception):
    """Raised by work that ends early because it was asked to.

    Example:
        >>> with working(stopped=lambda: True):
        ...     if current_worker().stopped():
        ...         raise StoppedError
        Traceback (most recent call last):
        holdfast.core.worker.StoppedError
    """


class Worker(NamedTuple):
    """The worker that runs the current code.

    Attributes:
        threads: that the code may use; None: as many as there are cores.
        stopped: whether the code should raise `StoppedError` as soon as it can; cheap, so it can be asked often.

    Example:
        >>> Worker().threads is None, Worker().stopped()
        (True, False)
    """

    threads: int | None = None
    stopped: Callable[[], bool] = lambda: False


_current: ContextVar[Worker] = ContextVar("worker", default=Worker())  # noqa: B039 (it is immutable)


def current_worker() -> Worker:
    """The worker of this thread; outside of all engines one without limits, which is never stopped.

    Example:
        >>> with working(threads=1):
        ...     current_worker().threads
        1
        >>> current_worker().threads is None
        True
    """
    return _current.get()


@contextmanager
def working(threads: int | None = None, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """A block whose code finds these limits in `current_worker()`; threads that it starts do not inherit them.

    Example:
        >>> with working(stopped=lambda: True):
        ...     current_worker().stopped()
        True
    """
    token = _current.set(Worker(threads, stopped))
    try:
        yield
    finally:
        _current.reset(token)


def available_cores() -> list[int]:
    """The cores that this process may use.

    Example:
        >>> len(available_cores()) >= 1
        True
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def one_blas_thread() -> AbstractContextManager[Any]:
    """A block in which BLAS uses one thread: others would take longer to start than a small matrix takes.

    Example:
        >>> import numpy as np
        >>> with one_blas_thread():
        ...     np.linalg.inv(np.array([[2.0]])).tolist()
        [[0.5]]
    """
    return _blas().limit(limits=1)


@cache
def _blas() -> Any:
    """The libraries of NumPy and SciPy; to look for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
