"""What comes with the package on coloured MNIST: results computed once on an accelerator, and what others published."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval
from holdfast_studies.page import RecordedSection

FOLDER = Path(__file__).parent
# Cells of the map of the gain that tables average: with a mean agreement of 0.5 pooled SGD has little to lose, and from
# 0.8 on agreements far apart would exceed 1.
COMPARED_MEANS = (0.6, 0.7)

Rows = list[tuple[str, ...]]
"""A table: its head, then its rows."""


@cache
def recorded(name: str) -> dict[str, Any]:
    """The content of a file of this folder.

    Args:
        name: coloured_mnist, further_trials and gain_map, as the commands wrote them; published, accuracies from
            papers; public_scripts, which were run on the same images.

    Example:
        >>> list(recorded("coloured_mnist"))
        ['settings', 'protocol', 'sessions', 'problems']
    """
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def accuracy(found: Mapping[str, Any], method: str, problem: str) -> Estimate:
    """Accuracy on test rows, mean over the seeds with its 95 % interval."""
    return mean_interval(found["problems"][problem][method]["test"])


def gain(
    found: Mapping[str, Any], method: str, other: str, problem: str, seeds: Sequence[int] | None = None
) -> Estimate:
    """Accuracy on test rows of a method minus that of another one, seed by seed, with its 95 % interval.

    Args:
        found: the content of a file.
        method: a name in the file.
        other: the method it is compared with.
        problem: a name in the file.
        seeds: those to compare; None: all of the file.

    Example:
        >>> gain(recorded("coloured_mnist"), "pooled", "pooled", "0.8 and 0.9")
        Estimate(value=0.0, low=0.0, high=0.0)
    """
    results, known = found["problems"][problem], found["settings"]["seeds"]
    differences = np.subtract(results[method]["test"], results[other]["test"])
    return mean_interval(differences[[known.index(seed) for seed in known if seeds is None or seed in seeds]])


def seed_gains(measured: Mapping[str, Any], order: str) -> np.ndarray:
    """(cells, seeds, step sizes): accuracy at the test, one environment a step minus pooled SGD with the same seed.

    Args:
        measured: the content of gain_map.
        order: reshuffled, cyclic or independent.

    Example, one cell, two seeds, one step size:
        >>> accuracy = {"pooled": {"chosen": [[[0.5], [0.6]]]}, "cyclic": {"chosen": [[[0.7], [0.6]]]}}
        >>> seed_gains({"accuracy": accuracy}, "cyclic").round(2).tolist()
        [[[0.2], [0.0]]]
    """
    chosen = {name: np.array(measured["accuracy"][name]["chosen"]) for name in (order, "pooled")}
    return chosen[order] - chosen["pooled"]


def gains_by_difference(order: str) -> dict[float, list[Estimate]]:
    """Difference of the agreements -> gain at each step size, over the mean agreements 0.6 and 0.7.

    The 95 % interval is over the seeds.

    Example, environments that do not differ, and environments that do:
        >>> found = gains_by_difference("cyclic")
        >>> found[0.0][0].low < 0 < found[0.0][0].high, found[0.6][0].low > 0
        (True, True)
    """
    cells, gains = recorded("gain_map")["cells"], seed_gains(recorded("gain_map"), order)
    found = {}
    for difference in sorted({each for _, each in cells}):
        chosen = [cells.index([mean, difference]) for mean in COMPARED_MEANS if [mean, difference] in cells]
        if len(chosen) == len(COMPARED_MEANS):
            found[difference] = [mean_interval(column) for column in gains[chosen].mean(0).T]
    return found


def about(found: Mapping[str, Any]) -> str:
    """Where recorded results come from, in a sentence.

    Example:
        >>> about(recorded("gain_map"))[:55]
        'Recorded, not computed here: 10 seeds (0 to 9), 15,000 '
    """
    settings, seeds = found["settings"], found["settings"]["seeds"]
    machines = {f"{each['device']} with torch {each['versions']['torch']}" for each in found["sessions"]}
    return (
        f"Recorded, not computed here: {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), {settings['images']:,} images, "
        f"on {' and '.join(sorted(machines))}."
    )


def estimate_text(estimate: Estimate) -> str:
    """An accuracy with its interval, for a table.

    Example:
        >>> estimate_text(Estimate(0.1, -0.05, 0.25))
        '0.100 (−0.050 to 0.250)'
    """
    value, low, high = (f"{each:.3f}".replace("-", "\N{MINUS SIGN}") for each in estimate)
    return f"{value} ({low} to {high})"


def table_rows() -> Rows:
    """A row for each method of the protocol, those with the best accuracy on the first problem last.

    Example:
        >>> table_rows()[0]
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    found = recorded("coloured_mnist")
    problems = list(found["problems"])
    methods = sorted(found["protocol"], key=lambda method: accuracy(found, method, problems[0]).value)
    cells = ((method, *(estimate_text(accuracy(found, method, each)) for each in problems)) for method in methods)
    return [("method", *problems), *cells]


def recorded_section() -> RecordedSection:
    """The table, as a section of the report of a reproduction.

    Example:
        >>> recorded_section().columns
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    head, *rows = table_rows()
    return RecordedSection("coloured-mnist", "Coloured MNIST", about_table(), head, tuple(rows))


def about_table() -> str:
    """Where the table comes from, and what its numbers are."""
    measured = "Mean accuracy at the test with its interval of 95 %; the best possible is 0.75."
    return f"{about(recorded('coloured_mnist'))} {measured}"
