"""Recorded results on coloured MNIST: the file is whole and small, and documents show its numbers and no others."""

import re
from pathlib import Path

import numpy as np
import pytest

from holdfast_studies.images import coloured_mnist, gain_map
from holdfast_studies.images.public_scripts import FILE as PUBLIC_SCRIPTS
from holdfast_studies.images.public_scripts import public_script_file, public_script_runs
from holdfast_studies.images.published import published_accuracies
from holdfast_studies.images.recorded_gains import recorded_gain_map
from holdfast_studies.images.recorded_images import (
    PUBLISHED_OTHERWISE,
    RESULTS,
    about_recorded_images,
    accuracies,
    not_run,
    recorded_results,
    table_rows,
)
from holdfast_studies.images.recorded_report import (
    GAINS,
    SCRIPTS,
    TABLE,
    TRIALS,
    gains_markdown,
    results_markdown,
    script_rows,
    scripts_markdown,
    trials_markdown,
)
from holdfast_studies.images.recording import PROBLEMS

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
    assert list(problems) == list(PROBLEMS)
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


def test_rules_of_others_choose_no_worse_on_test_than_ours():
    """At the last step, the setting that is best on test is at least as good there as any other."""
    for results in recorded_results()["problems"].values():
        for name in PUBLISHED_OTHERWISE:
            last = results[name]["last_step"]
            assert np.greater_equal(last["best_on_test"], last["test"]).all()


@pytest.mark.parametrize(
    ("name", "content"),
    [(TABLE, results_markdown), (SCRIPTS, scripts_markdown), (GAINS, gains_markdown), (TRIALS, trials_markdown)],
)
def test_the_documentation_shows_what_is_recorded(name, content):
    assert (DOCS / name).read_text(encoding="utf-8") == content()
    assert f"{{include}} {name}" in (DOCS / "coloured_mnist.md").read_text(encoding="utf-8")


def test_the_map_is_that_of_its_protocol():
    measured = recorded_gain_map()
    assert [tuple(cell) for cell in measured["cells"]] == gain_map.map_cells()
    assert tuple(measured["step_sizes"]) == gain_map.STEP_SIZES
    for accuracy in measured["accuracy"].values():
        assert np.shape(accuracy["chosen"]) == (len(measured["cells"]), 10, len(gain_map.STEP_SIZES))
    assert set(measured["accuracy"]) == {"pooled", *gain_map.ORDERS}


def test_public_scripts_are_recorded_with_what_was_run():
    assert PUBLIC_SCRIPTS.stat().st_size < 20_000
    content = public_script_file()
    assert {each["rule"] for each in content["runs"]} == set(content["rules"])
    for each in public_script_runs():
        assert len(each.test) == 10
        assert re.fullmatch(r"[0-9a-f]{40}", each.script.commit)
    with pytest.raises(ValueError, match=r"rule must be among authors; .*, got 'best'"):
        public_script_runs(rule="best")


def test_reruns_are_what_was_published():
    """The difference of two means of ten restarts, within four of its standard errors."""
    compared = 0
    for run in public_script_runs(rule="authors"):
        for paper in published_accuracies(run.method):
            if paper.source.arxiv == run.script.arxiv:
                error = np.hypot(paper.spread / 100, np.std(run.test)) / np.sqrt(10)
                assert abs(np.mean(run.test) - paper.test / 100) < 4 * error
                compared += 1
    assert compared == 7
    assert len(script_rows()) == 1 + 8
