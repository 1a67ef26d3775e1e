"""What an engine is: something that runs a function over items, somewhere, and hands back what finishes.

All engines have the same loop, `drive`. They differ in their pool: the workers, how they get an item, and how an
answer comes back.
"""

import contextlib
import queue
from collections.abc import Callable, Generator, Iterable
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from holdfast.core.validation import describe, require

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
