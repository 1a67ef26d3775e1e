"""Recorded results on coloured MNIST: the file is whole and small, and documents show its numbers and no others."""

from pathlib import Path

import numpy as np
import pytest

from holdfast.comparison.images import recorded_images
from holdfast.comparison.images.gain_figure import mean_gains
from holdfast.comparison.images.recorded_images import accuracies, recorded_gains, recorded_results, table_rows
from holdfast.comparison.images.recorded_report import TABLE, to_markdown

DOCS = Path(__file__).parents[2] / "docs"
LARGEST = 60_000  # bytes


def test_files_are_small_and_say_where_they_come_from():
    for path, found in ((recorded_images.RESULTS, recorded_results()), (recorded_images.GAINS, recorded_gains())):
        assert path.stat().st_size < LARGEST
        about = found["about"]
        assert about["device"]
        assert {"torch", "numpy"} <= set(about["versions"])
        assert len(set(about["seeds"])) == len(about["seeds"])


def test_every_method_has_all_seeds_on_both_problems():
    seeds = recorded_results()["about"]["seeds"]
    first, second = recorded_results()["problems"].values()
    assert list(first) == list(second)
    for results in (first, second):
        for result in results.values():
            assert len(result["test"]) == len(seeds) == 10
            # on 10,000 rows with a quarter of the labels wrong: within four standard errors of the best possible
            assert max(result["test"]) < 0.75 + 4 * np.sqrt(0.25 * 0.75 / 10_000)


def test_the_table_is_the_mean_of_the_seeds():
    results = recorded_results()["problems"]["0.8 and 0.9"]["discover and balance"]
    mean = np.mean(results["test"])
    assert accuracies()["discover and balance"]["0.8 and 0.9"].value == pytest.approx(mean)
    (row,) = (row for row in table_rows() if row[0] == "discover and balance")
    assert row[1].startswith(f"{mean:.3f} (")


def test_the_map_has_all_cells_and_gains_are_differences():
    recorded = recorded_gains()
    shape = (len(recorded["cells"]), len(recorded["about"]["seeds"]), len(recorded["step_sizes"]))
    for results in recorded["accuracy"].values():
        assert np.shape(results["chosen"]) == np.shape(results["last"]) == shape
    one, pooled = (recorded["accuracy"][name]["last"][3] for name in ("independent", "pooled"))
    assert np.allclose(mean_gains("independent", step="last")[3], np.mean(one, axis=0) - np.mean(pooled, axis=0))


def test_the_documentation_shows_what_is_recorded():
    assert (DOCS / TABLE).read_text(encoding="utf-8") == to_markdown()
