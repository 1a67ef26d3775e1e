"""Rules that choose steps and settings by held-out rows of the training environments, and what they choose."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from holdfast_studies.images.image_methods import ImageMethod, TrainedImages


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


def candidates(method: ImageMethod, trained: TrainedImages, **more: Any) -> Candidates:
    """The settings of one training, with `more` that they have in common."""
    return Candidates(
        tuple(more | each for each in setting_list(method)),
        *(trained.score, trained.step, trained.test, trained.last_score, trained.last_test),
    )


def setting_list(method: ImageMethod) -> list[dict[str, float]]:
    """The settings of a method one by one, name -> value."""
    return [dict(zip(method.grid, values, strict=True)) for values in zip(*method.grid.values(), strict=True)]


def together(parts: Sequence[Candidates]) -> Candidates:
    """Candidates of several trainings with the same seeds."""
    settings = tuple(setting for part in parts for setting in part.settings)
    arrays = zip(*(part[1:] for part in parts), strict=True)
    return Candidates(settings, *(np.concatenate(each, axis=1) for each in arrays))


def only(found: Candidates, wanted: Sequence[bool]) -> Candidates:
    """Some of the candidates: those whose settings are wanted."""
    chosen = np.array(wanted, bool)
    settings = tuple(setting for setting, take in zip(found.settings, wanted, strict=True) if take)
    return Candidates(settings, *(each[:, chosen] for each in found[1:]))


def chosen_results(found: Candidates) -> dict[str, Any]:
    """For each seed the setting of the best score, and what it does on test rows.

    Beside it, for methods that were published otherwise: the last step instead of the chosen one, with the setting of
    its best score, and with the setting that is best on test rows.
    """
    best, last = found.best, np.argmax(found.last_score, axis=1)
    return {
        "test": found.at(best, found.test).round(5).tolist(),
        "score": found.at(best, found.score).round(5).tolist(),
        "step": found.at(best, found.step).astype(int).tolist(),
        "settings": [found.settings[number] for number in best],
        "last_step": {
            "test": found.at(last, found.last_test).round(5).tolist(),
            "best_on_test": found.last_test.max(1).astype(float).round(5).tolist(),
        },
    }
