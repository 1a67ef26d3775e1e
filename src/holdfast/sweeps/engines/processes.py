"""Processes on this machine by joblib's loky: one on each core, replaced when it is killed.

loky gives up a whole pool when one of its processes is killed. Each core therefore has a pool of one: a kill costs the
item that was running there, and it is known which one that was.
"""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import describe
from holdfast.core.validation import COUNT
from holdfast.core.worker import available_cores, working
from holdfast.sweeps.engines.base import DEPTH, POLL, Finished, attempt, drained, drive
from holdfast.sweeps.engines.remote import Payload, RefusedWorkerError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# An item whose process died this often is no longer tried: most likely it is the item that kills them.
ATTEMPTS = 3
# One thread in products, as the process has one core; PJRT_NPROC is XLA's name for the size of its pool.
_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC"), "1")


@dataclass(frozen=True)
class ProcessEngine:
    """Processes on this machine, each held to one core.

    For work that holds Python's lock, or that may crash: a process that dies takes nothing with it. A script that uses
    it needs the `if __name__ == "__main__":` of all programs that start processes.

    Attributes:
        count: of processes; by default one for each core.

    Example:
        >>> engine = ProcessEngine(2)
        >>> engine.name
        '2 processes'
        >>> sorted(finished.value for finished in engine.run(abs, [-3, 2]))  # doctest: +SKIP
        [2, 3]
    """

    count: int = field(default_factory=lambda: len(available_cores()))

    def __post_init__(self) -> None:
        COUNT.check("count", self.count)

    @property
    def name(self) -> str:
        """Human-readable."""
        return f"{self.count} process{'es' if self.count > 1 else ''}"

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result, in any order; see `Engine`."""
        return drive(partial(_Processes, work, self.count), items)


@dataclass
class _Job:
    item: Any
    sent: bool = False
    losses: int = 0


class _Process:
    """One process at a time: the next one takes over the items of the one that is lost."""

    def __init__(self, core: int, payload: Payload, results: "queue.SimpleQueue[tuple[_Process, Future]]"):
        self._core, self._payload, self._results = core, payload, results
        self.jobs: dict[Future, _Job] = {}
        self._start()

    def submit(self, job: _Job) -> None:
        future: Future
        try:
            with _no_interrupt():
                future = self._executor.submit(_perform, job.item)
            job.sent = True
        except BrokenProcessPool as error:  # killed a moment ago, or while it was idle: lost like all that it had
            future = Future()
            future.set_exception(error)
            job.sent = False
        self.jobs[future] = job
        # Called at once if the future is already finished.
        future.add_done_callback(lambda future: self._results.put((self, future)))

    def replace(self) -> list[_Job]:
        """Start another process; returns the jobs that were in flight, the one that was running first."""
        jobs = list(self.jobs.values())
        self.jobs.clear()
        self.close()
        self._start()
        return jobs

    def stop(self) -> None:
        """Ask what is running to stop."""
        self._stop_writer.close()

    def close(self) -> None:
        self.stop()
        self._executor.shutdown()
        self._stop_reader.close()

    def _start(self) -> None:
        from joblib.externals.loky.backend import get_context
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        context = get_context("loky")  # never fork: a forked process hangs once jax has run
        # The process sees the end of this pipe when we close it, and also when we are killed.
        self._stop_reader, self._stop_writer = context.Pipe(duplex=False)
        # The work travels once, and not with every item.
        begin = (self._core, self._stop_reader, self._payload)
        self._executor = ProcessPoolExecutor(1, context=context, initializer=_begin, initargs=begin, env=_ENVIRONMENT)


class _Processes:
    def __init__(self, work: Callable[[Any], Any], count: int):
        cores, payload = available_cores(), Payload.of(work)
        self._results: queue.SimpleQueue[tuple[_Process, Future]] = queue.SimpleQueue()
        self._processes = [_Process(cores[slot % len(cores)], payload, self._results) for slot in range(count)]

    def has_room(self) -> bool:
        return any(len(process.jobs) < DEPTH for process in self._processes)

    def submit(self, item: Any) -> None:
        min(self._processes, key=lambda process: len(process.jobs)).submit(_Job(item))

    def finished(self, timeout: float) -> list[Finished]:
        found = (self._answer(process, future) for process, future in drained(self._results, timeout))
        return [finished for each in found for finished in each]

    def close(self) -> None:
        for process in self._processes:
            process.stop()  # all of them before the first is waited for
        for process in self._processes:
            process.close()

    def _answer(self, process: _Process, future: Future) -> list[Finished]:
        if future not in process.jobs:  # its process is lost, and it was submitted again
            return []
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            running, *waiting = process.replace()
            running.losses += running.sent  # what never got there cannot have killed it
            given_up = running.losses == ATTEMPTS
            for job in waiting if given_up else (running, *waiting):
                process.submit(job)
            reason = f"LostWorkerError: its process ended {ATTEMPTS} times (killed, crashed or out of memory)"
            return [Finished(running.item, None, reason)] if given_up else []
        job = process.jobs.pop(future)
        if isinstance(error, RefusedWorkerError):
            raise error
        return [future.result() if error is None else Finished(job.item, None, describe(error))]


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Processes that are started here never see Ctrl-C, which a terminal sends to them too: we stop them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# Below: what runs in the processes.

_stop = threading.Event()
_idle = threading.Lock()
_sent: list[Payload] = []


def _begin(core: int, stop_reader: "Connection", payload: Payload) -> None:
    """Make this process a worker: held to its core, and stopped by the one that started it."""
    from joblib.externals.loky import process_executor

    # loky takes growth by 300 MB for a leak and starts another process. Compiled programs take more than that, and the
    # next process would import and compile everything again.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be blocked
    _sent.append(payload)  # opened with the first item, where an error can be answered
    threading.Thread(target=_listen, args=(stop_reader, os.getppid()), daemon=True).start()


def _listen(stop_reader: "Connection", parent: int) -> None:
    with contextlib.suppress(EOFError, OSError):
        stop_reader.recv_bytes()
    _stop.set()
    # A parent that lives will end this process. One that was killed closes its pipes a moment before it is gone.
    while os.getppid() == parent:
        time.sleep(POLL)
    with _idle:  # what is running saves its result, or gives up
        os._exit(1)


def _perform(item: Any) -> Finished:
    if _stop.is_set():  # it waited here when the others were asked to stop, and nobody asks for its result
        return Finished(item, None, "StoppedError")
    work = _sent[0].open(f"process {os.getpid()}")
    assert work is not None  # it came with its content
    with _idle, working(1, _stop.is_set):
        return attempt(work, item)
