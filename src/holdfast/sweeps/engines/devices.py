"""The devices that jax sees, such as several GPUs: one thread for each, whose programs run there."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.sweeps.engines.base import Finished
from holdfast.sweeps.engines.threads import run_in_threads


@dataclass(frozen=True)
class DeviceEngine:
    """One thread for each device of jax; what it computes runs on that device.

    Results on devices of one kind are equal to the bit. Those of a GPU and of a CPU are not: sums are added up in
    another order, and a run of SGD amplifies the rounding, so that the two are equal in distribution.

    Example:
        >>> import jax.numpy as jnp
        >>> [finished] = DeviceEngine().run(lambda item: float(jnp.sum(jnp.arange(item))), [4])
        >>> finished.value
        6.0
    """

    @property
    def count(self) -> int:
        """Of devices."""
        import jax

        return len(jax.local_devices())

    @property
    def name(self) -> str:
        """Human-readable."""
        import jax

        devices = jax.local_devices()
        return f"{len(devices)} {devices[0].device_kind} device{'s' if len(devices) > 1 else ''}"

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Finished, None, None]:
        """Yield every item with its result, in any order; see `Engine`."""
        import jax

        return run_in_threads(work, items, [partial(jax.default_device, device) for device in jax.local_devices()])
