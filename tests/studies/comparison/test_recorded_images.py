"""Recorded results on coloured MNIST: the file is whole and small, and documents show its numbers and no others."""

import re
from pathlib import Path

import gain_map
import numpy as np
import pytest
import table
from pages import PAGES, PUBLISHED_OTHERWISE, script_rows
from recording import PROBLEMS

from holdfast_studies.images.recorded import FOLDER, accuracy, recorded, table_rows

DOCS = Path(__file__).parents[3] / "docs"
LARGEST = 60_000  # bytes


def test_the_file_is_small_and_says_where_it_comes_from():
    assert (FOLDER / "coloured_mnist.json").stat().st_size < LARGEST
    found = recorded("coloured_mnist")
    assert found["settings"] == {"seeds": list(range(10)), "images": 60_000, "steps": 600}
    assert tuple(found["protocol"]) == table.PROTOCOL
    for session in found["sessions"]:
        assert session["device"]
        assert {"torch", "numpy"} <= set(session["versions"])


def test_every_method_has_all_seeds():
    problems = recorded("coloured_mnist")["problems"]
    assert list(problems) == list(PROBLEMS)
    for results in problems.values():
        assert set(results) == set(table.PROTOCOL)
        for result in results.values():
            assert len(result["test"]) == 10
            # on 10,000 rows with a quarter of the labels wrong: within four standard errors of the best possible
            assert max(result["test"]) < 0.75 + 4 * np.sqrt(0.25 * 0.75 / 10_000)


def test_the_table_is_the_mean_of_the_seeds():
    found = recorded("coloured_mnist")
    mean = np.mean(found["problems"]["0.8 and 0.9"]["discover and balance"]["test"])
    assert accuracy(found, "discover and balance", "0.8 and 0.9").value == pytest.approx(mean)
    (row,) = (row for row in table_rows() if row[0] == "discover and balance")
    assert row[1].startswith(f"{mean:.3f} (")


def test_rules_of_others_choose_no_worse_on_test_than_ours():
    """At the last step, the setting that is best on test is at least as good there as any other."""
    for results in recorded("coloured_mnist")["problems"].values():
        for name in PUBLISHED_OTHERWISE:
            last = results[name]["last_step"]
            assert np.greater_equal(last["best_on_test"], last["test"]).all()


@pytest.mark.parametrize("name", PAGES)
def test_the_documentation_shows_what_is_recorded(name):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name]()
    assert f"{{include}} {name}" in (DOCS / "coloured_mnist.md").read_text(encoding="utf-8")


def test_the_map_is_that_of_its_protocol():
    measured = recorded("gain_map")
    assert [tuple(cell) for cell in measured["cells"]] == gain_map.map_cells()
    assert tuple(measured["step_sizes"]) == gain_map.STEP_SIZES
    for values in measured["accuracy"].values():
        assert np.shape(values["chosen"]) == (len(measured["cells"]), 10, len(gain_map.STEP_SIZES))
    assert set(measured["accuracy"]) == {"pooled", *gain_map.ORDERS}


def test_public_scripts_are_recorded_with_what_was_run():
    assert (FOLDER / "public_scripts.json").stat().st_size < 20_000
    content = recorded("public_scripts")
    assert {each["rule"] for each in content["runs"]} == set(content["rules"])
    assert {each["script"] for each in content["runs"]} == set(content["scripts"])
    assert all(len(each["test"]) == 10 for each in content["runs"])
    for script in content["scripts"].values():
        assert re.fullmatch(r"[0-9a-f]{40}", script["commit"])


def test_reruns_are_what_was_published():
    """The difference of two means of ten restarts, within four of its standard errors."""
    scripts, papers, compared = recorded("public_scripts"), recorded("published"), 0
    for run in (each for each in scripts["runs"] if each["rule"] == "authors"):
        for paper in (each for each in papers["results"] if each["method"] == run["method"]):
            if papers["sources"][paper["source"]]["arxiv"] == scripts["scripts"][run["script"]]["arxiv"]:
                error = np.hypot(paper["spread"] / 100, np.std(run["test"])) / np.sqrt(10)
                assert abs(np.mean(run["test"]) - paper["test"] / 100) < 4 * error
                compared += 1
    assert compared == 7
    assert len(script_rows()) == 1 + 8


def test_every_published_number_can_be_traced():
    content = recorded("published")
    results, sources = content["results"], content["sources"]
    assert {each["source"] for each in results} == set(sources)
    assert {each["rule"] for each in results} == set(content["rules"])
    assert all(0 < each["test"] < 100 and 0 < each["spread"] < 10 for each in results)
    for source in sources.values():
        assert re.fullmatch(r"\d{4}\.\d{5}", source["arxiv"])
        assert re.fullmatch(r"Table \d", source["table"])
        assert source["verified"]
    named = [(each["method"], each["source"]) for each in results]
    assert len(set(named)) == len(named)


def test_no_published_method_beats_the_network_without_colour():
    """It sees all that stays the same, and the best possible accuracy with 25 % label noise is 75 %."""
    found = {each["method"]: each["test"] for each in reversed(recorded("published")["results"])}
    assert all(test <= found["grey oracle"] < 75 for test in found.values())
