"""Recorded results on coloured MNIST: the file is whole and small, and documents show its numbers and no others."""

from pathlib import Path

import numpy as np
import pytest

from holdfast.comparison.images import coloured_mnist
from holdfast.comparison.images.recorded_images import (
    RESULTS,
    about_recorded_images,
    accuracies,
    not_run,
    recorded_results,
    table_rows,
)
from holdfast.comparison.images.recorded_report import TABLE, to_markdown

DOCS = Path(__file__).parents[2] / "docs"
LARGEST = 60_000  # bytes


def test_the_file_is_small_and_says_where_it_comes_from():
    assert RESULTS.stat().st_size < LARGEST
    assert recorded_results()["settings"] == {"seeds": list(range(10)), "images": 60_000, "steps": 600}
    assert tuple(recorded_results()["protocol"]) == coloured_mnist.PROTOCOL
    for session in recorded_results()["sessions"]:
        assert session["device"]
        assert {"torch", "numpy"} <= set(session["versions"])


def test_every_method_has_all_seeds_or_is_named_as_not_run():
    problems = recorded_results()["problems"]
    assert list(problems) == list(coloured_mnist.PROBLEMS)
    for results in problems.values():
        assert set(results) == set(coloured_mnist.PROTOCOL) - set(not_run())
        for result in results.values():
            assert len(result["test"]) == 10
            # on 10,000 rows with a quarter of the labels wrong: within four standard errors of the best possible
            assert max(result["test"]) < 0.75 + 4 * np.sqrt(0.25 * 0.75 / 10_000)
    for name in not_run():
        assert name in about_recorded_images()


def test_the_table_is_the_mean_of_the_seeds():
    mean = np.mean(recorded_results()["problems"]["0.8 and 0.9"]["discover and balance"]["test"])
    assert accuracies()["discover and balance"]["0.8 and 0.9"].value == pytest.approx(mean)
    (row,) = (row for row in table_rows() if row[0] == "discover and balance")
    assert row[1].startswith(f"{mean:.3f} (")


def test_the_documentation_shows_what_is_recorded():
    assert (DOCS / TABLE).read_text(encoding="utf-8") == to_markdown()
