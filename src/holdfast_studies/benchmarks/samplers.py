"""What batches of one environment cost: against a small training step, and for many rows."""

import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from holdfast_studies.benchmarks.timing import best_of_each

# A small training step: coloured digits of 14 x 14 x 2 pixels and one hidden layer, as usual for coloured MNIST.
PIXELS, WIDTH, BATCH_SIZE, ROWS, STEPS = 14 * 14 * 2, 256, 16, 50_000, 2000
MANY_ROWS, MANY_ENVIRONMENTS = 10_000_000, 5


def against_training(quick: bool) -> dict[str, dict[str, float]]:
    """Microseconds of the processor that a batch takes in the sampler, and that a step takes without any loader."""
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    from holdfast.torch import EnvironmentBatchSampler
    from holdfast.torch.batches import ORDERS

    steps = STEPS // 10 if quick else STEPS
    labels = np.random.default_rng(0).integers(0, 3, ROWS)
    samplers: dict[str, Any] = {order: EnvironmentBatchSampler(labels, BATCH_SIZE, order=order) for order in ORDERS}
    plain = BatchSampler(RandomSampler(range(ROWS)), BATCH_SIZE, drop_last=False)
    samplers["torch's BatchSampler(RandomSampler)"] = plain
    works = {name: partial(_hand_out, sampler, steps) for name, sampler in samplers.items()}
    seconds = best_of_each({"": _training(torch, steps), **works}, 3, time.process_time)
    step, *batches = (1e6 * each / steps for each in seconds.values())
    return {
        name: {"batch_us": batch, "training_step_us": step, "share_of_the_step": batch / step}
        for name, batch in zip(samplers, batches, strict=True)
    }


def many_rows(quick: bool) -> dict[str, float]:
    """Seconds and memory for ten million rows."""
    from holdfast.torch import EnvironmentBatchSampler

    rows = MANY_ROWS // 10 if quick else MANY_ROWS
    labels = np.random.default_rng(0).integers(0, MANY_ENVIRONMENTS, rows)

    def construct() -> EnvironmentBatchSampler:
        return EnvironmentBatchSampler(labels, BATCH_SIZE)

    def begin() -> None:
        # A cycle of each environment draws all of their first permutations.
        _hand_out(construct(), 10 * MANY_ENVIRONMENTS)

    seconds = best_of_each({"construction": construct, "both": begin}, 2, time.process_time)
    tracemalloc.start()
    begin()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "rows": rows,
        "construction_s": seconds["construction"],
        "first_batches_s": seconds["both"] - seconds["construction"],
        "bytes_per_row": peak / rows,
    }


def _hand_out(sampler: Iterable[list[int]], batches: int) -> None:
    for _ in islice(sampler, batches):
        pass


def _training(torch, steps: int) -> Callable[[], None]:
    """Steps of SGD on one batch, in one thread: forward, backward, update."""
    model = torch.nn.Sequential(torch.nn.Linear(PIXELS, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(BATCH_SIZE, PIXELS), torch.rand(BATCH_SIZE, 1)

    def train() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), targets).backward()
            optimizer.step()
        torch.set_num_threads(threads)

    return train
