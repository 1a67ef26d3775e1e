"""The recorded map of the gain, one environment a step against pooled SGD: computed once on an accelerator."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval

GAINS = Path(__file__).with_name("gain_map.json")
# With a mean agreement of 0.5 pooled SGD has little to lose, and from 0.8 on agreements far apart would exceed 1.
COMPARED_MEANS = (0.6, 0.7)


@cache
def recorded_gain_map() -> dict[str, Any]:
    """The map, as `python -m holdfast_studies.images.gain_map` wrote it.

    Example:
        >>> list(recorded_gain_map())
        ['settings', 'step_sizes', 'cells', 'mean_image_norm', 'accuracy', 'sessions']
    """
    return json.loads(GAINS.read_text(encoding="utf-8"))


def seed_gains(measured: Mapping[str, Any], order: str, *, step: str = "chosen") -> np.ndarray:
    """(cells, seeds, step sizes): accuracy at the test, one environment a step minus pooled SGD with the same seed.

    Args:
        measured: what `python -m holdfast_studies.images.gain_map` wrote.
        order: reshuffled, cyclic or independent.
        step: chosen, on held-out rows, or last.

    Example, one cell, two seeds, one step size:
        >>> accuracy = {"pooled": {"chosen": [[[0.5], [0.6]]]}, "cyclic": {"chosen": [[[0.7], [0.6]]]}}
        >>> seed_gains({"accuracy": accuracy}, "cyclic").round(2).tolist()
        [[[0.2], [0.0]]]
    """
    accuracy = measured["accuracy"]
    return np.array(accuracy[order][step]) - np.array(accuracy["pooled"][step])


def gains_by_difference(order: str) -> dict[float, list[Estimate]]:
    """Difference of the agreements -> gain at each step size, over the mean agreements 0.6 and 0.7.

    The interval of 95 % is over the seeds.

    Example, environments that do not differ, and environments that do:
        >>> found = gains_by_difference("cyclic")
        >>> found[0.0][0].low < 0 < found[0.0][0].high, found[0.6][0].low > 0
        (True, True)
    """
    cells, gains = recorded_gain_map()["cells"], seed_gains(recorded_gain_map(), order)
    found = {}
    for difference in sorted({each for _, each in cells}):
        chosen = [cells.index([mean, difference]) for mean in COMPARED_MEANS if [mean, difference] in cells]
        if len(chosen) == len(COMPARED_MEANS):
            found[difference] = [mean_interval(column) for column in gains[chosen].mean(0).T]
    return found
