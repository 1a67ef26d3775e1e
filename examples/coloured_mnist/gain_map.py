"""The map of the gain: one environment a step against pooled SGD, over agreement, its difference, step size and order.

    python examples/coloured_mnist/gain_map.py --data FOLDER --out gain_map.json

FOLDER holds the IDX files of MNIST. Colours agree with the label in `mean` +- `difference` / 2 of the images of the two
environments, and in 0.1 at the test. Weights are averaged over 200 steps, a whole number of cycles. The step is the one
of the best accuracy in the worst environment, on held-out rows of the training environments; the last one is recorded
beside it.
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from recording import DEVICE, about_session, recording_parser

from holdfast.core.writing import write_text
from holdfast.datasets.coloured_digits import DigitImages
from holdfast_studies.images.coloured_problem import make_problem, read_small_mnist
from holdfast_studies.images.image_methods import (
    ImageMethod,
    ImageProblem,
    ImageRows,
    environment_visits,
    mean_risk,
    train_method,
    visiting,
    worst_environment,
)

MEANS = (0.5, 0.6, 0.7, 0.8, 0.9)
DIFFERENCES = (0.0, 0.2, 0.4, 0.6, 0.8)
STEP_SIZES = (0.3, 1.0, 2.0)
ORDERS = ("reshuffled", "cyclic", "independent")
# A quarter of the images of the table: the map asks for signs and sizes, not for the last percent.
IMAGES, STEPS = 15_000, 1_000


def map_cells() -> list[tuple[float, float]]:
    """(mean, difference) of all cells whose agreements are shares.

    Example:
        >>> len(map_cells()), (0.9, 0.4) in map_cells()
        (19, False)
    """
    return [(mean, difference) for mean in MEANS for difference in DIFFERENCES if mean + difference / 2 <= 1]


def map_problem(source: DigitImages, seeds: Sequence[int], device: str) -> ImageProblem:
    """The problems of all cells as one: the seeds of the first cell, of the second, and so on."""
    parts = [
        make_problem(source, (mean + difference / 2, mean - difference / 2), seeds, device)
        for mean, difference in map_cells()
    ]
    train, held_out, test = (
        ImageRows(*(torch.cat(columns) for columns in zip(*each, strict=True)))
        for each in zip(*(part[:3] for part in parts), strict=True)
    )
    return ImageProblem(train, held_out, test, tuple(seed for part in parts for seed in part.seeds))


def measure_gains(problem: ImageProblem, steps: int) -> Iterator[tuple[str, dict[str, list]]]:
    """For pooled SGD and each order the accuracy on test rows, [cell][seed][step size], of the chosen and last step."""
    grid = {"step_size": STEP_SIZES, "weight_decay": (0.0,) * len(STEP_SIZES)}
    device = problem.train.inputs.device
    for name in ("pooled", *ORDERS):
        objective = mean_risk
        if name != "pooled":
            objective = visiting(environment_visits(name, problem.seeds, steps).to(device))
        trained = train_method(ImageMethod(objective, grid, sgd=True), problem, worst_environment, steps=steps)
        shape = (len(map_cells()), -1, len(STEP_SIZES))
        results = {"chosen": trained.tried.test, "last": trained.tried.last_test}
        yield name, {step: test.astype(float).reshape(shape).round(4).tolist() for step, test in results.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the map and write it as JSON."""
    about = "Coloured MNIST: one environment a step against pooled SGD."
    options = recording_parser(about, seeds=range(10), steps=STEPS, images=IMAGES).parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    source = read_small_mnist(options.data, options.images)
    began = time.monotonic()
    written: dict[str, Any] = {
        "settings": {"seeds": list(seeds), "images": len(source.digits), "steps": options.steps},
        "step_sizes": STEP_SIZES,
        "cells": map_cells(),
        # of the image of a mean digit, which sets the pace of the colour: see `pages.colour_strength`
        "mean_image_norm": float(np.linalg.norm(source.images.mean(0))),
        "accuracy": {},
    }
    for name, accuracy in measure_gains(map_problem(source, seeds, DEVICE), options.steps):
        written["accuracy"][name] = accuracy
        written["sessions"] = [about_session(began)]
        print(f"{time.monotonic() - began:4.0f} s  {name}", flush=True)
        write_text(options.out, json.dumps(written) + "\n")


if __name__ == "__main__":
    main()
