"""Results on coloured MNIST that come with the package: computed once on an accelerator, not where they are read."""

import json
import platform
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.core.statistics import Estimate, mean_interval

RESULTS = Path(__file__).with_name("coloured_mnist.json")
GAINS = Path(__file__).with_name("gain_map.json")
# Published for other rules: the last step, with the setting that is best on test rows.
AS_PUBLISHED = ("IRM", "V-REx", "Group DRO")


def about_run(seeds: Sequence[int], began: float, **settings: Any) -> dict[str, Any]:
    """Where and how a run was computed: seeds, settings, device, versions and seconds since `began`."""
    import numpy as np
    import torch

    return {
        "seeds": list(seeds),
        **settings,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seconds": round(time.monotonic() - began, 1),
    }


@cache
def recorded_results() -> dict[str, Any]:
    """The results of all methods, as `python -m holdfast.comparison.images.coloured_mnist` wrote them.

    Example:
        >>> sorted(recorded_results())
        ['about', 'problems']
    """
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@cache
def recorded_gains() -> dict[str, Any]:
    """The map of the gain, as `python -m holdfast.comparison.images.gain_map` wrote it.

    Example:
        >>> sorted(recorded_gains()["accuracy"])
        ['cyclic', 'independent', 'pooled', 'reshuffled']
    """
    return json.loads(GAINS.read_text(encoding="utf-8"))


def accuracies() -> dict[str, dict[str, Estimate]]:
    """Method -> problem -> accuracy on test rows, mean over the seeds with its interval of 95 %.

    Example:
        >>> list(accuracies()["pooled"])
        ['0.8 and 0.9', '0.9 and 0.3']
    """
    found: dict[str, dict[str, Estimate]] = {}
    for problem, results in recorded_results()["problems"].items():
        for name, result in results.items():
            found.setdefault(name, {})[problem] = mean_interval(result["test"])
            if name in AS_PUBLISHED:
                best = f"{name}, last step, best setting on test"
                found.setdefault(best, {})[problem] = mean_interval(result["last_step"]["best_on_test"])
    return found


def about_recorded_images() -> str:
    """Where the results come from, in two sentences.

    Example:
        >>> about_recorded_images().startswith("Recorded, not computed here")
        True
    """
    about = recorded_results()["about"]
    seeds = about["seeds"]
    return (
        f"Recorded, not computed here: {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), {about['images']:,} images, on "
        f"{about['device']} with torch {about['versions']['torch']} in {about['seconds']:.0f} seconds. Mean accuracy "
        "at the test with its interval of 95 %; the best possible is 0.75."
    )


def table_rows() -> list[tuple[str, ...]]:
    """The table: its head, then a row for each method, those with the best accuracy on the first problem last.

    Example:
        >>> table_rows()[0]
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    problems = list(recorded_results()["problems"])
    rows: list[tuple[str, ...]] = [("method", *problems)]
    for method, found in sorted(accuracies().items(), key=lambda each: each[1][problems[0]].value):
        rows.append((method, *(_cell(found[problem]) for problem in problems)))
    return rows


def _cell(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
