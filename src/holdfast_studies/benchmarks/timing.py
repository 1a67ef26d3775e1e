"""Timing on a shared machine, and the limits of the machine that times are compared with."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.run import PRECISION, available_workers


def best_of_each(
    works: Mapping[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the fastest of several calls of each work, after one to compile: other users only ever add time.

    The works take turns, so that a slow moment of the machine does not fall on one of them.

    Args:
        works: what is timed, by name.
        repeats: calls of each.
        clock: `time.process_time` counts the processor time of all threads instead.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            seconds = once(work, clock)
            if turn:
                times[name].append(seconds)
    return {name: min(each) for name, each in times.items()}


def once(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call."""
    begin = clock()
    work()
    return clock() - begin


def best(work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """`best_of_each` of a single work."""
    return best_of_each({"": work}, repeats, clock)[""]


def best_on_all_cores(work: Callable[[], object]) -> float:
    """Seconds for each piece of work where every core does its own at the same time."""
    cores = available_workers()

    def together() -> None:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(lambda _: work(), range(cores)))

    return best(together) / cores


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

    return products * slab * 2 * dimension**3 / best_on_all_cores(work)


def read_rate(megabytes: int = 256) -> float:
    """Bytes per second that all cores together read from memory."""
    arrays = [np.ones(megabytes * 2**18, np.float32) for _ in range(available_workers())]

    def read() -> None:
        with ThreadPoolExecutor(available_workers()) as pool:
            list(pool.map(np.sum, arrays))

    return sum(array.nbytes for array in arrays) / best(read)
