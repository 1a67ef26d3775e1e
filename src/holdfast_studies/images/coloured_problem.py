"""Coloured MNIST as a problem: rows of two training environments, some of them held out, and of a test environment."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from holdfast.datasets.coloured_digits import DigitImages, coloured_digits, read_mnist
from holdfast_studies.images.image_methods import ImageProblem, ImageRows, train_method

TEST_AGREEMENT = 0.1
TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
HELD_OUT = 0.2
# Ten thousand held-out and as many test rows are scored half as often as by default.
train_on_mnist = partial(train_method, scored_every=20)


def read_small_mnist(folder: str | Path, images: int) -> DigitImages:
    """The first images of MNIST, every second pixel, as in the code of IRM."""
    digits = read_mnist(folder)
    return DigitImages(digits.images[:images, ::2, ::2], digits.digits[:images])


def make_problem(source: DigitImages, agreements: Sequence[float], seeds: Sequence[int], device: str) -> ImageProblem:
    """The rows of all seeds, those of the first environment first."""
    training = min(TRAINING_IMAGES, len(source.digits) * 5 // 6) // 2 * 2  # two environments of equal size
    test = min(TEST_IMAGES, len(source.digits) - training) // 2 * 2
    parts: list[list[ImageRows]] = [[], [], []]
    for seed in seeds:
        seen = DigitImages(source.images[:training], source.digits[:training])
        rows = coloured_digits(agreements, seed=seed, source=seen)
        unseen = DigitImages(source.images[training : training + test], source.digits[training : training + test])
        # a seed of its own, so that the noise of the test rows does not repeat that of the training rows
        other = coloured_digits([TEST_AGREEMENT], seed=1_000_000 + seed, source=unseen)
        aside = np.arange(training) < 2 * int(HELD_OUT * training / 2)
        for found, part, chosen in zip(parts, (rows, rows, other), (~aside, aside, None), strict=True):
            order = np.arange(len(part.labels)) if chosen is None else np.flatnonzero(chosen)
            order = order[np.argsort(part.environments[order], kind="stable")]
            flat = part.images[order].reshape(len(order), -1)
            found.append(
                ImageRows(*(torch.from_numpy(np.asarray(a)) for a in (flat, part.labels[order], part.attribute[order])))
            )
    train, held_out, tested = (
        ImageRows(*(torch.stack(column).to(device, torch.float32) for column in zip(*part, strict=True)))
        for part in parts
    )
    return ImageProblem(train, held_out, tested, tuple(seeds))


def joined(first: ImageRows, second: ImageRows) -> ImageRows:
    """Rows of both, those of the first environment first."""
    return ImageRows(*(interleaved(one, other) for one, other in zip(first, second, strict=True)))


def interleaved(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(S, rows, ...) of both, those of the first environment first."""
    halves = (each.unflatten(1, (2, -1)) for each in (one, other))
    return torch.cat(tuple(halves), 2).flatten(1, 2)


def without_colour(problem: ImageProblem) -> ImageProblem:
    """The same rows on grey images: both channels hold the sum of the colours."""

    def grey(rows: ImageRows) -> ImageRows:
        total = rows.inputs.unflatten(-1, (2, -1)).sum(-2)
        return rows._replace(inputs=torch.cat([total, total], -1))

    return problem._replace(train=grey(problem.train), held_out=grey(problem.held_out), test=grey(problem.test))
