"""Published accuracies come with a table that can be looked up and a rule that says what decided on the settings."""

import json
import re

import pytest

from holdfast_studies.images.published import FILE, published_accuracies


def test_every_number_can_be_traced():
    content = json.loads(FILE.read_text(encoding="utf-8"))
    assert {each["source"] for each in content["results"]} == set(content["sources"])
    assert {each["rule"] for each in content["results"]} == set(content["rules"])
    for each in published_accuracies():
        assert 0 < each.test < 100
        assert 0 < each.spread < 10
        assert re.fullmatch(r"\d{4}\.\d{5}", each.source.arxiv)
        assert re.fullmatch(r"Table \d", each.source.table)
        assert each.source.verified


def test_a_method_has_one_number_in_each_paper():
    named = [(each.method, each.source.arxiv) for each in published_accuracies()]
    assert len(set(named)) == len(named)


def test_no_published_method_beats_the_network_without_colour():
    """It sees all that stays the same, and the best possible accuracy with 25 % label noise is 75 %."""
    oracle = published_accuracies("grey oracle")[0]
    assert all(each.test <= oracle.test < 75 for each in published_accuracies())


def test_a_method_that_is_not_in_the_file_is_refused():
    with pytest.raises(ValueError, match=r"method must be among ERM, IRM, .*, got 'SAND-mask'"):
        published_accuracies("SAND-mask")
