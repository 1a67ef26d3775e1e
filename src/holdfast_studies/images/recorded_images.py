"""Results on coloured MNIST that come with the package: computed once on an accelerator, not where they are read."""

import json
import platform
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval

RESULTS = Path(__file__).with_name("coloured_mnist.json")
# Methods of which papers report the last step, with the setting that is best on test rows.
PUBLISHED_OTHERWISE = ("IRM", "V-REx", "Group DRO", "IRM, dropout", "V-REx, dropout")


def about_session(began: float) -> dict[str, Any]:
    """Where a session computes: device, versions, and seconds since `began`.

    Example:
        >>> sorted(about_session(time.monotonic()))
        ['device', 'seconds', 'versions']
    """
    import torch

    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seconds": round(time.monotonic() - began, 1),
    }


@cache
def recorded_results() -> dict[str, Any]:
    """The results of all methods, as `python -m holdfast_studies.images.coloured_mnist` wrote them.

    Example:
        >>> list(recorded_results())
        ['settings', 'protocol', 'sessions', 'problems']
    """
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@cache
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
    return found


def paired_gain(method: str, other: str, problem: str) -> Estimate:
    """Accuracy on test rows of a method minus that of another one, seed by seed, with its interval of 95 %.

    Example:
        >>> paired_gain("pooled", "pooled", "0.8 and 0.9")
        Estimate(value=0.0, low=0.0, high=0.0)
    """
    results = recorded_results()["problems"][problem]
    return mean_interval(np.subtract(results[method]["test"], results[other]["test"]))


def not_run() -> list[str]:
    """The methods of the protocol that are not recorded on every problem.

    Example:
        >>> set(not_run()) <= set(recorded_results()["protocol"])
        True
    """
    problems = recorded_results()["problems"].values()
    return [name for name in recorded_results()["protocol"] if not all(name in results for results in problems)]


def about_recorded_images() -> str:
    """Where the results come from, in a few sentences.

    Example:
        >>> about_recorded_images().startswith("Recorded, not computed here")
        True
    """
    settings, sessions = recorded_results()["settings"], recorded_results()["sessions"]
    seeds = settings["seeds"]
    machines = sorted({f"{each['device']} with torch {each['versions']['torch']}" for each in sessions})
    sentences = [
        f"Recorded, not computed here: {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), {settings['images']:,} images, "
        f"on {' and '.join(machines)}.",
        "Mean accuracy at the test with its interval of 95 %; the best possible is 0.75.",
    ]
    if not_run():
        sentences.append(f"Not run yet: {'; '.join(not_run())}.")
    return " ".join(sentences)


def table_rows() -> list[tuple[str, ...]]:
    """The table: its head, then a row for each method, those with the best accuracy on the first problem last.

    Example:
        >>> table_rows()[0]
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    problems = list(recorded_results()["problems"])
    complete = {name: found for name, found in accuracies().items() if len(found) == len(problems)}
    rows: list[tuple[str, ...]] = [("method", *problems)]
    for method, found in sorted(complete.items(), key=lambda each: each[1][problems[0]].value):
        rows.append((method, *(estimate_text(found[problem]) for problem in problems)))
    return rows


def rule_rows(problem: str) -> list[tuple[str, ...]]:
    """The methods whose papers choose otherwise, by three rules: a head, then a row for each method.

    Args:
        problem: a name in the file.

    Example:
        >>> rule_rows("0.8 and 0.9")[0][1]
        'step and setting by the worst environment'
    """
    rules = ("step and setting by the worst environment", "last step, setting by the worst environment")
    rows: list[tuple[str, ...]] = [("method", *rules, "last step, best setting on test")]
    for name in PUBLISHED_OTHERWISE:
        result = recorded_results()["problems"][problem][name]
        last = result["last_step"]
        values = (result["test"], last["test"], last["best_on_test"])
        rows.append((name, *(estimate_text(mean_interval(each)) for each in values)))
    return rows


def estimate_text(estimate: Estimate) -> str:
    """An accuracy with its interval, for a table.

    Example:
        >>> estimate_text(Estimate(0.1, -0.05, 0.25))
        '0.100 (−0.050 to 0.250)'
    """
    value, low, high = (f"{each:.3f}".replace("-", "\N{MINUS SIGN}") for each in estimate)
    return f"{value} ({low} to {high})"
