"""Computations for the page: a bounded pool and queue, the newest of a tab wins, each has a time limit."""

import asyncio
import logging
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
    """A computation: a thread computes it, the event loop passes on what it sends."""

    def __init__(self, work: Work, seconds: float) -> None:
        self._work, self._seconds = work, seconds
        self._loop = asyncio.get_running_loop()
        self.stop = threading.Event()
        self._reported = 0.0
        self.begun: float | None = None
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    @property
    def overdue(self) -> bool:
        return self.begun is not None and time.monotonic() > self.begun + self._seconds

    def send(self, event: Event) -> None:
        """Pass an event to the page, from any thread; reports of progress at most every `REPORTED_EVERY` seconds.

        Raises:
            StoppedError: at a report of progress, if the computation should stop: much work asks at no other moment.
        """
        if event["event"] == "progress":
            if self.stop.is_set() or self.overdue:
                raise StoppedError
            now = time.monotonic()
            if now < self._reported + REPORTED_EVERY:
                return
            self._reported = now
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.events.put_nowait, event)

    def run(self) -> None:
        """Compute, in a thread of the pool."""
        self.begun = time.monotonic()
        try:
            with working(threads=1, stopped=lambda: self.stop.is_set() or self.overdue):
                if self.stop.is_set():
                    raise StoppedError
                self.send({"event": "done", "data": self._work(self.send)})
        except StoppedError:
            self.send(self.too_long() if self.overdue else {"event": "stopped"})
        except ValueError as error:  # the library explains what it cannot do in a sentence
            self.send(_failed(str(error)))
        except BaseException:  # otherwise the page would wait for ever
            self.send(_failed(unexpected("The computation failed")))

    def too_long(self) -> Event:
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
        self._newest: dict[Any, _Computation] = {}
        self._unfinished = 0

    def events(self, owner: Any, work: Work) -> AsyncGenerator[Event, None]:
        """Compute, and return the events to the end; closing the generator stops the computation.

        Args:
            owner: of the computation; an older one of the same owner is stopped.
            work: what is computed.
        """
        if owner in self._newest:
            self._newest[owner].stop.set()
        if self._unfinished >= self._limit:
            raise BusyError
        job = self._newest[owner] = _Computation(work, self._seconds)
        loop = asyncio.get_running_loop()
        self._unfinished += 1
        future = self._pool.submit(job.run)
        future.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._finish, owner, job))
        return _follow(job, future)

    def _finish(self, owner: Any, job: _Computation) -> None:
        self._unfinished -= 1
        if self._newest.get(owner) is job:
            del self._newest[owner]

    def close(self) -> None:
        """Stop everything; called when the server ends."""
        for job in self._newest.values():
            job.stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


async def _follow(job: _Computation, future: Future) -> AsyncGenerator[Event, None]:
    try:
        while True:
            try:
                event = await asyncio.wait_for(job.events.get(), SIGN_OF_LIFE)
            except TimeoutError:
                event = {"event": "waiting" if job.begun is None else "running"}
                if job.overdue:  # it does not ask whether it should stop, perhaps because it compiles
                    event = job.too_long()
            yield event
            if event["event"] in ("done", "stopped", "failed"):
                return
    finally:
        job.stop.set()
        future.cancel()


def _failed(sentence: str) -> Event:
    return {"event": "failed", "sentence": sentence}


def unexpected(what: str) -> str:
    """Log the current exception, and return a sentence for the page with the number under which it was logged."""
    number = secrets.token_hex(4)
    logger.exception("error %s", number)
    return f"{what}; the terminal of `holdfast lab` has the details under error {number}"
