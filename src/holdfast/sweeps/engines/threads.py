"""This process: threads for its cores, or one for each device of jax. XLA, BLAS and files release Python's lock."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.core.progress import counted
from holdfast.core.validation import COUNT
from holdfast.core.worker import available_cores, working
from holdfast.sweeps.engines.base import DEPTH, Finished, attempt, drained, drive

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
