"""Dask: processes of this machine, or the workers of any cluster, which come and go.

Dask replaces lost workers of this machine, and gives the items of a lost worker to another one. A scheduler that is
restarted has forgotten everything, so everything in flight is submitted again.
"""

import contextlib
import logging
import os
import queue
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

import dask
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, WorkerPlugin, get_worker
from distributed.security import Security

from holdfast.core.validation import COUNT, describe
from holdfast.core.worker import available_cores, working
from holdfast.sweeps.engines.local import DEPTH, Finished, attempt, drained, drive
from holdfast.sweeps.engines.remote import (
    Payload,
    RefusedWorkerError,
    check_scheduler,
    connect,
    describe_worker,
    disconnect,
)

# Seconds between two looks at the number of workers.
COUNTING = 1.0
# So many threads are assumed at least: clusters that start workers on demand must see a demand.
LEAST_THREADS = 4
# Seconds within which a worker hands over an answer, which is small; otherwise the engine asks again later.
FETCHING = 10.0
# Seconds between two looks whether our processes have stopped; there is nothing to wait for once they are gone.
STOPPING = 0.05
# An item whose process died this often is given up: most likely the item kills them.
ATTEMPTS = 3
# A local worker has one core, so XLA has one thread; PJRT_NPROC is its name for that. Dask limits those of BLAS.
_ENVIRONMENT = {"PJRT_NPROC": "1"}


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a Dask cluster that runs already, with the package of the same version on all of them.

    Workers that join later are used; a worker that is lost, and a scheduler that is restarted, cost no item. Workers
    end with their scheduler, so they have to be started again, too. After Ctrl-C a worker finishes its current item. A
    worker should have one thread, and tell XLA about it: `PJRT_NPROC=1 dask worker tcp://head:8786 --nthreads 1`.

    Attributes:
        address: of the scheduler, such as "tcp://head:8786", or the path of its scheduler file.
        patience: seconds that a lost scheduler may take to come back.

    Example:
        >>> DaskEngine("tcp://head:8786").name
        'Dask at tcp://head:8786'
    """

    address: str
    patience: float = 60.0

    def __post_init__(self) -> None:
        check_scheduler(self.address)

    @property
    def name(self) -> str:
        """Human-readable."""
        return f"Dask at {self.address}"

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result, in any order; see `Engine`.

        Raises:
            LostClusterError: if there is no scheduler at the address, or it does not come back.
            RefusedWorkerError: at the first worker with another version, or that cannot open the work.
        """
        return drive(partial(_Workers, partial(connect, self.address), Payload.of(work), self.patience), items)


@dataclass(frozen=True)
class ProcessEngine:
    """Processes on this machine, each held to one core: a Dask cluster of its own, which ends with this process.

    For work that holds Python's lock, or that may crash: a process that dies takes nothing with it, and is replaced. A
    script that uses it needs the `if __name__ == "__main__":` of all programs that start processes.

    Attributes:
        count: number of processes; by default one for each core.

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
        with _local_cluster(self.count) as cluster:
            connected = partial(connect, cluster.scheduler_address, security=cluster.security)
            payload = Payload.of(work)._replace(cores=tuple(available_cores()))
            yield from drive(partial(_Workers, connected, payload, workers=self.count), items)


@contextlib.contextmanager
def _local_cluster(count: int) -> Iterator[LocalCluster]:
    """Nannies with one worker each, which only this process can reach and which end with it."""
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        # A worker has the one item that it computes, so Dask blames no other item for the death of a process.
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with dask.config.set(settings), _no_interrupt():
        cluster = LocalCluster(
            n_workers=count, threads_per_worker=1, memory_limit=0, env=_ENVIRONMENT, silence_logs=logging.CRITICAL,
            host="127.0.0.1", protocol="tls://", security=Security.temporary(),
            dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        )  # fmt: skip
    with contextlib.closing(cluster):
        yield cluster


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Processes that are started here never see Ctrl-C, which a terminal sends to them too: we stop them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process starts it, and that unblocks the signal in its thread
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Workers:
    """The workers of a cluster while an engine runs.

    Args:
        connected: makes a client, within some seconds if they are given.
        payload: the work.
        patience: seconds that a lost scheduler may take to come back.
        workers: their number, if they are ours and nobody else's; they are then asked to stop at the end.
    """

    def __init__(
        self, connected: Callable[..., Client], payload: Payload, patience: float = 0.0, workers: int | None = None
    ):
        self._connected, self._payload, self._patience, self._own = connected, payload, patience, workers is not None
        self._most, self._counted = workers or 0, 0.0
        self._items: dict[Future, Any] = {}
        self._results: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._submitted = 0
        self._begin(connected())

    @property
    def capacity(self) -> int:
        if not self._own and time.monotonic() > self._counted + COUNTING and self._client.status == "running":
            with contextlib.suppress(OSError):  # `finished` notices if the scheduler is lost
                self._most = DEPTH * max(LEAST_THREADS, sum(self._client.nthreads().values()))
            self._counted = time.monotonic()
        if self._own and self._submitted > 2 * self._most:  # from then on the scheduler keeps what waits to itself
            return DEPTH * self._most
        return self._most

    def submit(self, item: Any) -> None:
        try:
            future = self._client.submit(_perform, self._payload.run, item, key=(self._payload.run, self._submitted))
        except Exception:
            if self._client.status == "running":
                raise
            self._reconnect()  # the scheduler was lost a moment ago
            self.submit(item)
            return
        self._submitted += 1
        self._items[future] = item
        future.add_done_callback(self._results.put)

    def finished(self, timeout: float) -> list[Finished]:
        if self._client.status != "running":
            self._reconnect()
        # Unknown futures are those of a lost scheduler, whose items were submitted again.
        futures = [future for future in drained(self._results, timeout) if future in self._items]
        try:
            answers = self._client.gather(futures)  # one request for all
        except Exception:  # one of them failed or is lost: which one?
            return [finished for future in futures for finished in self._answer(future)]
        for future in futures:
            del self._items[future]
        return answers

    def close(self) -> None:
        """The scheduler forgets what waits; processes of ours stop what is running, and others finish it."""
        if self._own and self._items and self._client.status == "running":
            with contextlib.suppress(OSError):
                self._client.run(_stop, self._payload.run, on_error="ignore")
                while self._client.nthreads() and not all(future.done() for future in self._items):
                    time.sleep(STOPPING)
        if self._client.status == "running":
            with contextlib.suppress(OSError):
                self._client.unregister_worker_plugin(self._payload.run)
        disconnect(self._client)

    def _begin(self, client: Client) -> None:
        self._client = client
        client.register_plugin(_Delivery(self._payload))

    def _answer(self, future: Future) -> list[Finished]:
        if future not in self._items:  # submitted again a moment ago
            return []
        try:
            answer = future.result(timeout=FETCHING)
        except TimeoutError:  # the worker that has it is being lost, and another one will compute it
            future.add_done_callback(self._results.put)
            return []
        except RefusedWorkerError:
            raise
        except ImportError as error:
            raise RefusedWorkerError(f"a Dask worker cannot load the work: {error}") from error
        except Exception as error:
            on_the_way = isinstance(error, OSError) and future.status != "error"  # and not on the worker
            if on_the_way or isinstance(error, CancelledError) or self._client.status != "running":
                self._reconnect()
                return []
            lost = f"LostWorkerError: its process ended {ATTEMPTS} times (killed, crashed or out of memory)"
            answer = Finished(self._items[future], None, lost if isinstance(error, KilledWorker) else describe(error))
        del self._items[future]
        return [answer]

    def _reconnect(self) -> None:
        """To the scheduler that took the place of the one that was lost."""
        items = list(self._items.values())
        self._items.clear()
        disconnect(self._client, timeout=1)
        self._begin(self._connected(self._patience))
        for item in items:
            self.submit(item)


# Below: what runs on the workers.

_stopped: set[str] = set()


class _Delivery(WorkerPlugin):
    """Takes the work to every worker once, also to those that join later."""

    def __init__(self, payload: Payload):
        self.payload, self.name = payload, payload.run

    def teardown(self, worker: Any) -> None:
        self.payload.forget()


def _stop(run: str) -> None:
    _stopped.add(run)


def _perform(run: str, item: Any) -> Finished:
    worker = get_worker()
    delivery: Any = worker.plugins[run]
    payload = delivery.payload
    if payload.cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {payload.cores[worker.name % len(payload.cores)]})
    work = payload.open(describe_worker(worker))

    def stopped() -> bool:
        return run in _stopped

    if stopped():  # it waited when the others were asked to stop
        return Finished(item, None, "StoppedError")
    with working(1, stopped):
        return attempt(work, item)
