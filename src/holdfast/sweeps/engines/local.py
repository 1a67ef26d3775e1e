"""What an engine is: something that runs a function over items, somewhere, and hands back what finishes.

All engines have the same loop, `drive`. They differ in their pool: the workers, how they get an item, and how an
answer comes back.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

from holdfast.core.progress import counted
from holdfast.core.validation import COUNT, check_fields, describe, require
from holdfast.core.worker import available_cores, working

# An idle engine asks at this interval, in seconds, whether new items have come up.
POLL = 0.2
# Items in flight for each worker: one that is computed and one that waits, so that no worker is idle between two.
DEPTH = 2


class Finished(NamedTuple):
    """An item that was worked on.

    Attributes:
        item: what was given to the engine.
        value: what the work returned, None if it failed.
        error: "TypeName: message" if it failed, else None.

    Example:
        >>> attempt(lambda item: 1 / item, 0)
        Finished(item=0, value=None, error='ZeroDivisionError: division by zero')
    """

    item: Any
    value: Any
    error: str | None


class Feed(Enum):
    """What an iterator of items yields besides items.

    Attributes:
        WAIT: there is nothing to do now, but there may be later.

    Example:
        >>> Feed.WAIT
        <Feed.WAIT: 'wait'>
    """

    WAIT = "wait"


@runtime_checkable
class Engine(Protocol):
    """Runs a function over items with the workers it has.

    Attributes:
        name: for people, such as "2 threads".

    Example:
        >>> from holdfast.sweeps.engines import ThreadEngine
        >>> engine: Engine = ThreadEngine(2)
        >>> sorted(finished.value for finished in engine.run(abs, [-3, 2, -1]))
        [1, 2, 3]
    """

    @property
    def name(self) -> str:
        """Human-readable, such as "2 threads"."""
        ...

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result as soon as there is one, in any order.

        An error inside `work` is part of the result. Items are pulled as workers become free, so their number costs
        nothing; an iterator may yield `Feed.WAIT` while it has none. Items of a worker that is lost go to another. When
        the iterator that this returns is closed, or an interrupt ends it, nothing new starts, and what is running is
        asked to stop (`current_worker().stopped()`).

        Args:
            work: a function; picklable, where workers are other processes.
            items: anything; picklable, where workers are other processes.
        """
        ...


@runtime_checkable
class CountedEngine(Engine, Protocol):
    """An engine that knows the number of its workers before it runs.

    Attributes:
        count: of workers.

    Example:
        >>> from holdfast.sweeps.engines import DaskEngine, ThreadEngine
        >>> isinstance(ThreadEngine(2), CountedEngine), isinstance(DaskEngine("tcp://head:8786"), CountedEngine)
        (True, False)
    """

    @property
    def count(self) -> int:
        """Of workers."""
        ...


def check_engine(engine: Any) -> None:
    """Raise a ValueError unless this is an engine or None, before anything is written.

    Example:
        >>> check_engine("threads")
        Traceback (most recent call last):
        ValueError: engine must be None or an engine such as ThreadEngine(4), ... got 'threads'
    """
    engines = "ThreadEngine(4), ProcessEngine(4), DeviceEngine() or DaskEngine(address) of holdfast.sweeps.engines"
    require(
        engine is None or (isinstance(engine, Engine) and not isinstance(engine, type)),
        f"engine must be None or an engine such as {engines}",
        repr(engine),
    )


class Pool(Protocol):
    """The workers of an engine while it runs."""

    @property
    def capacity(self) -> int:
        """The most items that should be in flight now."""
        ...

    def submit(self, item: Any) -> None:
        """Give an item to a worker."""
        ...

    def finished(self, timeout: float) -> list[Finished]:
        """What finished since the last call; waits for the first at most this many seconds."""
        ...

    def close(self) -> None:
        """Start nothing any more, ask what is running to stop, and wait for it where it listens."""
        ...


def drive(start: Callable[[], Pool], items: Iterable[Any]) -> Generator[Finished, None, None]:
    """The loop of all engines: keep the workers of a pool busy, and yield what they finish.

    Args:
        start: makes the pool, which is closed when all items are finished, or when the caller has enough.
        items: as of `Engine.run`.
    """
    waiting = iter(items)
    exhausted, in_flight = False, 0
    with contextlib.closing(start()) as workers:
        while True:
            while not exhausted and in_flight < workers.capacity:
                item = next(waiting, Feed)  # the class stands for the end, because None may be an item
                if item is Feed.WAIT:
                    break
                if item is Feed:
                    exhausted = True
                else:
                    workers.submit(item)
                    in_flight += 1
            if exhausted and not in_flight:
                return
            for finished in workers.finished(POLL):
                in_flight -= 1
                yield finished


def drained(results: "queue.SimpleQueue[Any]", timeout: float) -> list[Any]:
    """All that is in a queue; waits for the first at most this many seconds."""
    found = []
    with contextlib.suppress(queue.Empty):
        found.append(results.get(timeout=timeout))
        while True:
            found.append(results.get_nowait())
    return found


def attempt(work: Callable[[Any], Any], item: Any) -> Finished:
    """The result of one item, whatever happens: `SystemExit`, too, must not take an item away."""
    try:
        return Finished(item, work(item), None)
    except BaseException as error:
        return Finished(item, None, describe(error))


Context = Callable[[], AbstractContextManager[Any]]
"""Makes the context in which a thread works, such as one that sets a device."""


@dataclass(frozen=True)
class ThreadEngine:
    """Threads of this process.

    Attributes:
        count: number of threads; by default one for each core.

    Example:
        >>> engine = ThreadEngine(2)
        >>> engine.name
        '2 threads'
        >>> sorted(engine.run(lambda item: 12 // item, [3, 4]))
        [Finished(item=3, value=4, error=None), Finished(item=4, value=3, error=None)]
    """

    count: int = field(default_factory=lambda: len(available_cores()))

    def __post_init__(self) -> None:
        COUNT.check("count", self.count)

    @property
    def name(self) -> str:
        """Human-readable."""
        return counted(self.count, "thread")

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result, in any order; see `Engine`."""
        return drive(partial(_Threads, work, [nullcontext] * self.count), items)


@dataclass(frozen=True)
class DeviceEngine:
    """Threads of this process, one for each device of jax, such as several GPUs; each computes on its device.

    Results on devices of one kind are equal to the bit. Those of a GPU and of a CPU are not: they add up sums in
    different orders, and SGD amplifies the rounding, so that the two are equal in distribution only.

    Example:
        >>> import jax.numpy as jnp
        >>> [finished] = DeviceEngine().run(lambda item: float(jnp.sum(jnp.arange(item))), [4])
        >>> finished.value
        6.0
    """

    @property
    def count(self) -> int:
        """Number of devices."""
        import jax

        return len(jax.local_devices())

    @property
    def name(self) -> str:
        """Human-readable."""
        import jax

        return counted(self.count, f"{jax.local_devices()[0].device_kind} device")

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result, in any order; see `Engine`."""
        import jax

        contexts = [partial(jax.default_device, device) for device in jax.local_devices()]
        return drive(partial(_Threads, work, contexts), items)


class _Threads:
    def __init__(self, work: Callable[[Any], Any], contexts: Sequence[Context]):
        self._work, self.capacity = work, DEPTH * len(contexts)
        self._stop = threading.Event()
        self._results: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._free: queue.SimpleQueue[Context] = queue.SimpleQueue()
        for each in contexts:
            self._free.put(each)
        self._executor = ThreadPoolExecutor(len(contexts), "holdfast")
        self._limits = ExitStack()
        self._limits.enter_context(_single_threaded_products())

    def submit(self, item: Any) -> None:
        self._executor.submit(self._perform, item)

    def finished(self, timeout: float) -> list[Finished]:
        return drained(self._results, timeout)

    def close(self) -> None:
        self._stop.set()
        self._executor.shutdown(cancel_futures=True)
        self._limits.close()

    def _perform(self, item: Any) -> None:
        if not self._stop.is_set():
            context = self._free.get()
            with working(1, self._stop.is_set), context():
                self._results.put(attempt(self._work, item))
            self._free.put(context)


def _single_threaded_products() -> AbstractContextManager[Any]:
    """One thread in each product: the cores are busy with one item each."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # some machines with accelerators have nothing but jax, numpy and scipy
        return nullcontext()
    return threadpool_limits(1)


def default_engine() -> Engine:
    """The default for cells of a sweep: one thread for each core, or for each accelerator, which one cell fills.

    A comparison always has one thread for each core, because most of its methods compute on the CPU.

    Example:
        >>> default_engine().name.endswith(("thread", "threads"))
        True
    """
    import jax

    return ThreadEngine() if jax.default_backend() == "cpu" else DeviceEngine()


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
