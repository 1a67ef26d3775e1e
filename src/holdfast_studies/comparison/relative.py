"""Many tables as one test: every table counts once, by its error relative to a plain regression on the same rows."""

from dataclasses import replace
from functools import partial

import numpy as np

from holdfast.datasets.real_tables import Half
from holdfast.datasets.splits import Dataset, Kind
from holdfast_studies.comparison.measures import Values
from holdfast_studies.comparison.public_tests import Group, PublicTest
from holdfast_studies.comparison.results import Comparison

# What the error of a method is divided by.
REFERENCE: dict[Kind, str] = {"regression": "least_squares", "classification": "regularized"}
KIND_TITLES: dict[Kind, str] = {"regression": "numbers", "classification": "labels"}
HALF_TITLES: dict[Half, str] = {"choice": "to choose on", "confirmation": "put aside"}
# A table counts as worse than the reference if the error is larger by more than this share.
NOTICEABLE = 0.02
# An error of 0, of labels, is one wrong label in this many rows.
FEWEST_ROWS = 1e4


def relative_comparison(comparison: Comparison, group: Group) -> Comparison:
    """The tests of a group of many as up to four, numbers or labels, to choose on or put aside; a seed is a table.

    Args:
        comparison: with the reference among its methods; a table on which it was not run is left out.
        group: whose tests are meant.

    Example, an error of twice that of least squares on one table:
        >>> from holdfast_studies.comparison import METHODS, PUBLIC_TESTS
        >>> tips, methods = PUBLIC_TESTS["tips"], (METHODS["least_squares"], METHODS["drig"])
        >>> cells = {("tips", "least_squares"): {0: {"error": 0.5}}, ("tips", "drig"): {0: {"error": 1.0}}}
        >>> found = relative_comparison(Comparison((tips,), methods, cells, {}), tips.group)
        >>> found.tests[0].name, found.values("numbers, to choose on", "drig", "log_ratio")
        ('numbers, to choose on', {0: 0.6931471805599453})
    """
    own = replace(group, measures=("log_ratio", "beyond_2_percent"), many=False)
    tests: list[PublicTest] = []
    cells: dict[tuple[str, str], dict[int, Values]] = {}
    for kind, reference in REFERENCE.items():
        for half, title in HALF_TITLES.items():
            tables = [each for each in comparison.tests if (each.group, each.kind, each.half) == (group, kind, half)]
            name = f"{KIND_TITLES[kind]}, {title}"
            for method in comparison.methods:
                ratios = {
                    number: ratio
                    for number, table in enumerate(tables)
                    if (ratio := _log_ratio(comparison, table.name, method.name, reference)) is not None
                }
                if ratios:
                    cells[name, method.name] = {number: _values(ratio) for number, ratio in ratios.items()}
            if tables:
                about = f"{len(tables)} tables, relative to {reference}"
                tests.append(PublicTest(name, about, kind, len(tables), partial(_no_data, name), own, half=half))
    return Comparison(tuple(tests), comparison.methods, cells, {})


def _log_ratio(comparison: Comparison, table: str, method: str, reference: str) -> float | None:
    """Mean over the folds that both have."""
    ours, theirs = (comparison.values(table, name, "error") for name in (method, reference))
    common = sorted(set(ours) & set(theirs))
    if not common:
        return None
    errors = np.maximum([[ours[fold], theirs[fold]] for fold in common], 1 / FEWEST_ROWS)
    return float(np.diff(np.log(errors[:, ::-1]), axis=1).mean())


def _values(ratio: float) -> Values:
    return {"log_ratio": ratio, "beyond_2_percent": float(ratio > np.log1p(NOTICEABLE))}


def _no_data(name: str, seed: int) -> Dataset:
    raise ValueError(f"{name} sums up other tests and has no data of its own")
