"""What batches of one environment cost: against a small training step, and for many rows."""

import importlib.util
import time
import tracemalloc
from collections.abc import Callable
from itertools import islice

import numpy as np

from holdfast_studies.benchmarks.timing import best

# A small training step: coloured digits of 14 x 14 x 2 pixels and one hidden layer, as usual for coloured MNIST.
PIXELS, WIDTH, BATCH_SIZE, ROWS, STEPS = 14 * 14 * 2, 256, 16, 50_000, 2000
MANY_ROWS, MANY_ENVIRONMENTS = 10_000_000, 5


def against_training(quick: bool) -> dict[str, dict[str, float]]:
    """Microseconds of the processor that a batch takes in the sampler, and that a step takes without any loader."""
    if importlib.util.find_spec("torch") is None:
        return {"torch is not installed": {"rows": 0.0}}
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    from holdfast.torch import EnvironmentBatchSampler
    from holdfast.torch.batches import ORDERS

    steps = STEPS // 10 if quick else STEPS
    labels = np.random.default_rng(0).integers(0, 3, ROWS)
    step = _microseconds(_training(torch, steps), steps)
    found = {}
    plain = BatchSampler(RandomSampler(range(ROWS)), BATCH_SIZE, drop_last=False)
    for name in (*ORDERS, "torch's BatchSampler(RandomSampler)"):
        sampler = EnvironmentBatchSampler(labels, BATCH_SIZE, order=name) if name in ORDERS else plain

        def hand_out(sampler: object = sampler) -> None:
            for _ in islice(sampler, steps):  # type: ignore[call-overload]
                pass

        batch = _microseconds(hand_out, steps)
        found[name] = {"batch_us": batch, "training_step_us": step, "share_of_the_step": batch / step}
    return found


def many_rows(quick: bool) -> dict[str, float]:
    """Seconds and memory for ten million rows."""
    if importlib.util.find_spec("torch") is None:
        return {"rows": 0.0}
    from holdfast.torch import EnvironmentBatchSampler

    rows = MANY_ROWS // 10 if quick else MANY_ROWS
    labels = np.random.default_rng(0).integers(0, MANY_ENVIRONMENTS, rows)
    construct = best(lambda: EnvironmentBatchSampler(labels, BATCH_SIZE), 2, time.process_time)

    def begin() -> None:
        # A cycle of each environment draws all of their first permutations.
        list(islice(EnvironmentBatchSampler(labels, BATCH_SIZE), 10 * MANY_ENVIRONMENTS))

    both = best(begin, 2, time.process_time)
    tracemalloc.start()
    begin()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "rows": rows,
        "construction_s": construct,
        "first_batches_s": both - construct,
        "bytes_per_row": peak / rows,
    }


def _microseconds(work: Callable[[], None], count: int) -> float:
    return 1e6 * best(work, 3, time.process_time) / count


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
