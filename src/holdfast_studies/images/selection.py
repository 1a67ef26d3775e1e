"""Rules that choose steps and settings by held-out rows of the training environments, and what they choose."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch


def mean_accuracy(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.mean(-1)


def worst_environment(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.unflatten(-1, (2, -1)).mean(-1).amin(-1)


def weighted_by(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The accuracy by weights of the rows of each seed."""
    return lambda right: (right * weights[:, None]).sum(-1) / weights.sum(-1)[:, None]


class Candidates(NamedTuple):
    """Trained networks to choose from: S seeds, K settings.

    Attributes:
        settings: K, name -> value.
        score: (S, K), on held-out rows at the chosen step.
        step: (S, K), that step.
        test: (S, K), accuracy on test rows at that step.
        last_score: (S, K), on held-out rows at the last step.
        last_test: (S, K), accuracy on test rows at the last step.
    """

    settings: tuple[dict[str, Any], ...]
    score: np.ndarray
    step: np.ndarray
    test: np.ndarray
    last_score: np.ndarray
    last_test: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """(S,), the number of the setting with the best score, for each seed."""
        return np.argmax(self.score, axis=1)

    def at(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(S,), of values (S, K), that of the setting with the given number."""
        return np.take_along_axis(values, numbers[:, None], 1)[:, 0].astype(float)
