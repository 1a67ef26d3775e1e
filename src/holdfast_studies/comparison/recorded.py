"""Results that come with the package: cells computed once on an accelerator, and means that others published."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast_studies.comparison.results import Comparison

FILE = Path(__file__).with_name("recorded.json")

SOURCE = "Aubin et al. (2021), arXiv:2102.10867: 50 data seeds, 20 draws of hyper-parameters, 10,000 steps"
_PUBLISHED_TESTS = ("Example1", "Example1s", "Example2", "Example2s", "Example3", "Example3s")
_PUBLISHED_ERRORS = {
    "oracle": (10.42, 10.45, 0.0, 0.0, 0.013, 0.013),
    "ERM": (13.36, 13.33, 0.421, 0.449, 0.480, 0.485),
    "IRMv1": (11.15, 11.07, 0.450, 0.449, 0.485, 0.485),
    "AND-mask": (10.59, 11.24, 0.443, 0.449, 0.344, 0.473),
    "IGA": (17.47, 17.68, 0.450, 0.449, 0.470, 0.485),
}
# Name of the published method -> test -> error, mean over environments and seeds.
PUBLISHED = {name: dict(zip(_PUBLISHED_TESTS, row, strict=True)) for name, row in _PUBLISHED_ERRORS.items()}


@cache
def _read() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


def recorded_error(test: str, method: str, seed: int) -> float | None:
    """The error of a cell that comes with the package because it takes hours on a small machine, or None.

    Example:
        >>> round(recorded_error("Example2", "average_risk", 0), 3), recorded_error("Example1", "average_risk", 0)
        (0.425, None)
    """
    errors = _read()["cells"].get(test, {}).get(method, [])
    return errors[seed] if seed < len(errors) else None


def about_recorded() -> str:
    """Where the recorded cells come from, in a sentence.

    Example:
        >>> about_recorded().endswith(".")
        True
    """
    return _read()["about"]


def recorded_file(comparison: "Comparison") -> str:
    """The text of the file that comes with the package, from a comparison that computed its cells.

    It holds the classification tests of Aubin et al. and the methods with many draws, which take the time.

    Example:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison
        >>> cells = {("Example2", "irm"): {0: {"error": 0.45}, 1: {"error": 0.44}}}
        >>> comparison = Comparison((PUBLIC_TESTS["Example2"],), (METHODS["irm"],), cells, {})
        >>> json.loads(recorded_file(comparison))["cells"]
        {'Example2': {'irm': [0.45, 0.44]}}
    """
    from holdfast.sensing.trajectory import versions

    found: dict[str, dict[str, list[float]]] = {}
    for test in comparison.tests:
        for method in comparison.methods:
            errors = comparison.values(test.name, method.name, "error")
            if test.name in _PUBLISHED_TESTS and test.kind == "classification" and method.fit_all and errors:
                if sorted(errors) != list(range(len(errors))):
                    raise ValueError(f"seeds must be 0 to {len(errors) - 1} to be recorded, got {sorted(errors)}")
                found.setdefault(test.name, {})[method.name] = [errors[seed] for seed in sorted(errors)]
    computed = versions()
    about = (
        "Errors on the unit tests of classification, by data seed from 0 on, 20 draws and 10,000 full-batch steps as "
        "published. Written by `holdfast compare --recompute --record` "
        f"with jax {computed['jax']} on a {computed['platform'].upper()}; on two CPU cores it takes hours."
    )
    return json.dumps({"about": about, "versions": computed, "cells": found}) + "\n"
