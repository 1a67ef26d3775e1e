"""Deep linear networks: SGD steps per second in this library, against three programs in PyTorch.

The first is what one would write for a single run: a network of parameters, a loss at one entry, backward, a step.
The second does the same for all seeds at once, with batched products, and the third with gradients written by hand.
They draw their entries before the clock starts, which this library does not.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.completion.problem import two_by_two
from holdfast.completion.training import starts, train
from holdfast.core.run import available_workers
from holdfast_studies.benchmarks.timing import best

EPSILON, STEP_SIZE, RIDGE, DEPTH, SEEDS = 0.25, 0.1, 0.02, 3, 64
WIDTHS = (2, 6)


def against_torch(quick: bool) -> dict[str, dict[str, float]]:
    """Steps per second, summed over 64 seeds, of the 2 x 2 case with narrow and wide layers; PyTorch if installed."""
    results = {}
    for width in WIDTHS:
        steps = 5_000 if quick else 100_000
        ours = _ours(width, steps)
        row = {"holdfast": SEEDS * steps / best(ours, 3)}
        if importlib.util.find_spec("torch") is not None:
            rates = _torch_rates(width, quick)
            row |= rates | {f"holdfast_over_{name}": row["holdfast"] / rate for name, rate in rates.items()}
        row["seconds_for_64_million_steps"] = 64e6 / row["holdfast"]
        results[f"width {width}"] = row
    return results


def _widths(width: int) -> tuple[int, ...]:
    return (2, *(width,) * (DEPTH - 1), 2)


def _ours(width: int, steps: int) -> Callable[[], object]:
    seeds = np.arange(SEEDS)
    layers = starts(_widths(width), 1.0, seeds)
    # Every core gets a slab; the default would leave one of two without work at so few seeds.
    slab = -(-SEEDS // available_workers())
    options: dict[str, Any] = {"step_size": STEP_SIZE, "ridge": RIDGE, "steps": steps, "every": steps}
    return lambda: train(two_by_two(EPSILON), layers, seeds, slab=min(slab, 64), **options)


def _torch_rates(width: int, quick: bool) -> dict[str, float]:
    """Steps per second of the three programs, with one thread or all, whichever is faster."""
    import torch

    steps = 100 if quick else 1000
    found = {}
    before = torch.get_num_threads()
    for program, runs in ((plain_torch, 1), (batched_torch, SEEDS), (batched_torch_by_hand, SEEDS)):
        rates = []
        for threads in (1, available_workers()):
            torch.set_num_threads(threads)
            layers = starts(_widths(width), 1.0, np.arange(runs))
            entries = np.random.default_rng(0).integers(0, 3, (steps, runs))
            rates.append(runs * steps / best(lambda: program(layers, entries), 2))  # noqa: B023
        found[program.__name__] = max(rates)
    torch.set_num_threads(before)
    return found


def _problem():
    import torch

    problem = two_by_two(EPSILON)
    return tuple(torch.from_numpy(np.array(part)) for part in (problem.rows, problem.columns, problem.values))


def plain_torch(layers: tuple[np.ndarray, ...], entries: np.ndarray) -> list[np.ndarray]:
    """One run, automatic differentiation, an optimiser with weight decay: the loop as one would write it.

    Args:
        layers: the start, with a leading axis of one run.
        entries: (steps, 1), which observed entry each step sees.
    """
    import torch

    rows, columns, values = (part.tolist() for part in _problem())
    weights = [torch.tensor(layer[0], dtype=torch.float32, requires_grad=True) for layer in layers]
    optimiser = torch.optim.SGD(weights, lr=STEP_SIZE, weight_decay=2 * RIDGE)
    for entry in entries[:, 0].tolist():
        product = weights[0]
        for weight in weights[1:]:
            product = weight @ product
        loss = 0.5 * (product[rows[entry], columns[entry]] - values[entry]) ** 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [weight.detach().numpy()[None] for weight in weights]


def batched_torch(layers: tuple[np.ndarray, ...], entries: np.ndarray) -> list[np.ndarray]:
    """All runs in one program, automatic differentiation of the sum of their losses.

    Args:
        layers: the starts, with a leading axis of runs.
        entries: (steps, runs), which observed entry each step of each run sees.
    """
    import torch

    rows, columns, values = _problem()
    weights = [torch.tensor(layer, dtype=torch.float32, requires_grad=True) for layer in layers]
    optimiser = torch.optim.SGD(weights, lr=STEP_SIZE, weight_decay=2 * RIDGE)
    runs = torch.arange(entries.shape[1])
    for entry in torch.from_numpy(entries):
        product = weights[0]
        for weight in weights[1:]:
            product = torch.bmm(weight, product)
        loss = 0.5 * (product[runs, rows[entry], columns[entry]] - values[entry]).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [weight.detach().numpy() for weight in weights]


def batched_torch_by_hand(layers: tuple[np.ndarray, ...], entries: np.ndarray) -> list[np.ndarray]:
    """All runs in one program, with the rank-one gradients of this library written in PyTorch: the strongest baseline.

    Args:
        layers: the starts, with a leading axis of runs.
        entries: (steps, runs), which observed entry each step of each run sees.
    """
    import torch

    rows, columns, values = _problem()
    weights = [torch.tensor(layer, dtype=torch.float32) for layer in layers]
    units = torch.eye(2)
    with torch.no_grad():
        for entry in torch.from_numpy(entries):
            left = [units[rows[entry]][:, None, :]]
            right = [units[columns[entry]][:, :, None]]
            for weight in weights:
                right.append(torch.bmm(weight, right[-1]))
            for weight in reversed(weights[1:]):
                left.insert(0, torch.bmm(left[0], weight))
            residual = torch.bmm(left[-1], right[-1]) - values[entry][:, None, None]
            for weight, row, column in zip(weights, left, right, strict=False):
                step = torch.bmm((residual * row).transpose(1, 2), column.transpose(1, 2))
                weight.mul_(1 - 2 * STEP_SIZE * RIDGE).sub_(step, alpha=STEP_SIZE)
    return [weight.numpy() for weight in weights]
