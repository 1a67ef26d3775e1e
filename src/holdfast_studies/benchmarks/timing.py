"""Timing on a shared machine, and the limits of the machine that times are compared with."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.run import PRECISION, available_workers


def best(work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of several calls, after one to compile: other users only ever add time.

    Args:
        work: what is timed.
        repeats: calls.
        clock: `time.process_time` counts the processor time of all threads instead.
    """
    work()
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def on_all_cores(work: Callable[[], object]) -> Callable[[], object]:
    """The same work, once on every core at the same time."""

    def together() -> None:
        with ThreadPoolExecutor(available_workers()) as pool:
            for future in [pool.submit(work) for _ in range(available_workers())]:
                future.result()

    return together


# Floating-point operations of a chain of products on each core: some tenths of a second, beside which the start of the
# threads and of the program do not count.
OPERATIONS_OF_A_CHAIN = 2e10


def product_rate(dimension: int, slab: int, products: int | None = None) -> float:
    """Floating-point operations per second in products of d x d float32 matrices, a slab at a time on every core."""
    products = products or max(1, int(OPERATIONS_OF_A_CHAIN / (slab * 2 * dimension**3)))
    matrices = jnp.asarray(np.random.default_rng(0).standard_normal((slab, dimension, dimension), np.float32))
    # Dividing by the norm keeps the powers finite and the numbers random.
    matrices /= jnp.linalg.norm(matrices, 2, axis=(1, 2), keepdims=True)

    @jax.jit
    def chain(factor: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, products, lambda _, power: power @ factor, factor)

    def work() -> None:
        with jax.default_matmul_precision(PRECISION):
            jax.block_until_ready(chain(matrices))

    seconds = best(on_all_cores(work))
    return available_workers() * products * slab * 2 * dimension**3 / seconds


def read_rate(megabytes: int = 256) -> float:
    """Bytes per second that all cores together read from memory."""
    arrays = [np.ones(megabytes * 2**18, np.float32) for _ in range(available_workers())]

    def read() -> None:
        with ThreadPoolExecutor(available_workers()) as pool:
            list(pool.map(np.sum, arrays))

    return sum(array.nbytes for array in arrays) / best(read)
