"""Rules that choose steps and settings by held-out rows of the training environments, and what they choose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from holdfast.comparison.images.image_methods import ImageMethod, TrainedImages


def mean_accuracy(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.mean(-1)


def worst_environment(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.unflatten(-1, (2, -1)).mean(-1).amin(-1)


def weighted_by(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The accuracy by weights of the rows of each seed."""
    return lambda right: (right * weights[:, None]).sum(-1) / weights.sum(-1)[:, None]


def chosen_results(method: ImageMethod, trained: TrainedImages) -> dict[str, Any]:
    """For each seed the setting of the best score, and what it does on test rows.

    Beside it, for methods that were published otherwise: the last step instead of the chosen one, with the setting of
    its best score, and with the setting that is best on test rows.
    """
    names = list(method.grid)
    best, last = (np.argmax(scores, axis=1) for scores in (trained.score, trained.last_score))

    def at(numbers: np.ndarray, values: np.ndarray) -> list[float]:
        return np.take_along_axis(values, numbers[:, None], 1)[:, 0].round(5).tolist()

    def settings(numbers: np.ndarray) -> list[list[float]]:
        return [[method.grid[name][number] for name in names] for number in numbers]

    return {
        "test": at(best, trained.test),
        "score": at(best, trained.score),
        "step": at(best, trained.step),
        "names": names,
        "settings": settings(best),
        "last_step": {
            "test": at(last, trained.last_test),
            "settings": settings(last),
            "best_on_test": trained.last_test.max(1).round(5).tolist(),
        },
    }
