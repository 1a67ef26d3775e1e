"""A Dask cluster: any number of machines, whose workers come and go.

Dask itself gives the items of a lost worker to another one. A scheduler that is restarted has forgotten everything, so
everything in flight is submitted again.
"""

import contextlib
import queue
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.core.errors import describe
from holdfast.core.worker import working
from holdfast.sweeps.engines.base import DEPTH, Finished, attempt, drained, drive
from holdfast.sweeps.engines.clusters import check_scheduler, connect, describe_worker, disconnect
from holdfast.sweeps.engines.remote import Payload, RefusedWorkerError

if TYPE_CHECKING:
    from distributed import Future

# Seconds between two looks at the number of workers.
COUNTING = 1.0
# So many threads are assumed at least: clusters that start workers on demand must see a demand.
LEAST_THREADS = 4
# Seconds within which a worker hands over an answer, which is small; otherwise it is asked again later.
FETCHING = 10.0


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a Dask cluster that runs already, with the package of the same version on all of them.

    Workers that join later are used; a worker that is lost, and a scheduler that is restarted, cost no item. Workers
    end with their scheduler, so they have to be started again, too. After Ctrl-C a worker finishes the item that it is
    at. A worker should have one thread, and tell XLA about it:
    `PJRT_NPROC=1 dask worker tcp://head:8786 --nthreads 1`.

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
        return drive(partial(_Cluster, self, work), items)


class _Cluster:
    def __init__(self, engine: DaskEngine, work: Callable[[Any], Any]):
        self._engine, self._payload = engine, Payload.of(work)
        self._items: dict[Future, Any] = {}
        self._unsent: list[Any] = []
        self._results: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._client = connect(engine.address)
        self._most, self._counted = 0, 0.0

    def has_room(self) -> bool:
        if time.monotonic() > self._counted + COUNTING and self._client.status == "running":
            with contextlib.suppress(OSError):  # `finished` notices if the scheduler is lost
                self._most = DEPTH * max(LEAST_THREADS, sum(self._client.nthreads().values()))
            self._counted = time.monotonic()
        return len(self._items) + len(self._unsent) < self._most

    def submit(self, item: Any) -> None:
        self._send(item, self._payload.announced())

    def _send(self, item: Any, payload: Payload, worker: str | None = None) -> None:
        """Give an item to the scheduler, for a certain worker if it is still there when the item comes up."""
        try:
            future = self._client.submit(
                _perform, payload, item, pure=False, workers=worker, allow_other_workers=worker is not None
            )
        except Exception:
            if self._client.status == "running":
                raise
            self._unsent.append(item)  # the scheduler was lost a moment ago, and `finished` connects again
            return
        self._items[future] = item
        future.add_done_callback(self._results.put)

    def finished(self, timeout: float) -> list[Finished]:
        if self._client.status != "running":
            self._reconnect()
        # What is not known any more is of a scheduler that was lost, and was submitted again.
        futures = [future for future in drained(self._results, timeout) if future in self._items]
        try:
            answers = self._client.gather(futures)  # one request for all
        except Exception:  # one of them failed or is lost: which one?
            return [finished for future in futures for finished in self._answer(future)]
        return [finished for pair in zip(futures, answers, strict=True) for finished in self._settled(*pair)]

    def close(self) -> None:
        """What waits is forgotten by the scheduler; what is running ends by itself."""
        disconnect(self._client)

    def _answer(self, future: "Future") -> list[Finished]:
        from distributed import CancelledError, KilledWorker

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
            raise RefusedWorkerError(f"a worker of {self._engine.address} cannot load the work: {error}") from error
        except Exception as error:
            on_the_way = isinstance(error, OSError) and future.status != "error"  # and not on the worker
            if on_the_way or isinstance(error, CancelledError) or self._client.status != "running":
                self._reconnect()
                return []
            name = "LostWorkerError: its worker ended several times" if isinstance(error, KilledWorker) else ""
            answer = Finished(self._items[future], None, name or describe(error))
        return self._settled(future, answer)

    def _settled(self, future: "Future", answer: "Finished | _Lacking") -> list[Finished]:
        item = self._items.pop(future)
        if isinstance(answer, Finished):
            return [answer]
        self._send(item, self._payload, answer.worker)
        return []

    def _reconnect(self) -> None:
        """To the scheduler that took the place of the one that was lost."""
        items = [*self._items.values(), *self._unsent]
        self._items.clear()
        self._unsent.clear()
        disconnect(self._client, timeout=1)
        self._client = connect(self._engine.address, self._engine.patience)
        for item in items:
            self.submit(item)


class _Lacking(NamedTuple):
    """The answer of a worker that is at its first items: it needs the work, which does not travel with every item."""

    worker: str


def _perform(payload: Payload, item: Any) -> Finished | _Lacking:
    """What runs on a worker."""
    from distributed import get_worker

    worker = get_worker()
    work = payload.open(describe_worker(worker))
    if work is None:
        return _Lacking(worker.address)
    with working(1):
        return attempt(work, item)
