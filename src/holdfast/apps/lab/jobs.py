"""Computations for the page: a bounded pool and queue, the newest of a tab wins, each has a time limit."""

import asyncio
import logging
import math
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from holdfast.core.worker import StoppedError, working

# Computations at once, those that may wait, and the seconds that one may take once it has begun.
WORKERS, LONGEST_QUEUE, SECONDS = 2, 128, 120.0
# Seconds between two reports of progress of a computation, and between signs of life while nothing is reported.
REPORTED_EVERY, SIGN_OF_LIFE = 0.1, 1.0

logger = logging.getLogger("holdfast.apps.lab")

Event = dict[str, Any]
Work = Callable[[Callable[[Event], None]], Any]
"""(a function that sends an event) -> the result."""


class BusyError(Exception):
    """Raised when too many computations are waiting."""


class _Computation:
    """A computation of an owner: a thread computes it, the event loop passes on what it sends."""

    def __init__(self, owner: Any, work: Work, seconds: float) -> None:
        self.owner, self._work, self._seconds = owner, work, seconds
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[Event]()
        self._reported, self._begun = 0.0, math.inf
        self.stop = threading.Event()

    def _is_overdue(self) -> bool:
        return time.monotonic() > self._begun + self._seconds

    def _should_stop(self) -> bool:
        return self.stop.is_set() or self._is_overdue()

    def _send(self, event: Event) -> None:
        """Pass an event to the page, from any thread; reports of progress at most every `REPORTED_EVERY` seconds.

        Raises:
            StoppedError: at a report of progress, if the computation should stop: much work asks at no other moment.
        """
        if event["event"] == "progress":
            if self._should_stop():
                raise StoppedError
            now = time.monotonic()
            if now < self._reported + REPORTED_EVERY:
                return
            self._reported = now
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def run(self) -> None:
        """Compute, in a thread of the pool."""
        self._begun = time.monotonic()
        try:
            with working(threads=1, stopped=self._should_stop):
                if self.stop.is_set():
                    raise StoppedError
                self._send({"event": "done", "data": self._work(self._send)})
        except StoppedError:
            self._send(self._too_long() if self._is_overdue() else {"event": "stopped"})
        except ValueError as error:  # the library explains what it cannot do in a sentence
            self._send(_failed(str(error)))
        except BaseException:  # otherwise the page would wait for ever
            self._send(_failed(unexpected("The computation failed")))

    async def follow(self, future: Future) -> AsyncGenerator[Event, None]:
        """Its events to the end; closing the generator stops it."""
        try:
            event: Event = {"event": ""}
            while event["event"] not in ("done", "stopped", "failed"):
                try:
                    event = await asyncio.wait_for(self._events.get(), SIGN_OF_LIFE)
                except TimeoutError:
                    event = {"event": "running" if math.isfinite(self._begun) else "waiting"}
                    if self._is_overdue():  # it does not ask whether it should stop, perhaps because it compiles
                        event = self._too_long()
                yield event
        finally:
            self.stop.set()
            future.cancel()

    def _too_long(self) -> Event:
        return _failed(f"This took longer than {self._seconds:g} seconds, the limit for a view")


class Jobs:
    """All computations of a server.

    Args:
        workers: computations at once.
        longest_queue: computations that may wait.
        seconds: that one may take.
    """

    def __init__(self, workers: int = WORKERS, longest_queue: int = LONGEST_QUEUE, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="lab")
        self._limit, self._seconds = workers + longest_queue, seconds
        self._unfinished: set[_Computation] = set()

    def events(self, owner: Any, work: Work) -> AsyncGenerator[Event, None]:
        """Compute, and return the events to the end; closing the generator stops the computation.

        Args:
            owner: of the computation; an older one of the same owner is stopped.
            work: what is computed.
        """
        for older in list(self._unfinished):
            if older.owner == owner:
                older.stop.set()
        if len(self._unfinished) >= self._limit:
            raise BusyError
        job = _Computation(owner, work, self._seconds)
        self._unfinished.add(job)
        future = self._pool.submit(job.run)
        future.add_done_callback(lambda _: self._unfinished.discard(job))
        return job.follow(future)

    def close(self) -> None:
        """Stop everything; called when the server ends."""
        for job in list(self._unfinished):
            job.stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _failed(sentence: str) -> Event:
    return {"event": "failed", "sentence": sentence}


def unexpected(what: str) -> str:
    """Log the current exception, and return a sentence for the page with the number under which it was logged."""
    number = secrets.token_hex(4)
    logger.exception("error %s", number)
    return f"{what}; the terminal of `holdfast lab` has the details under error {number}"
