import json

import numpy as np
import pytest

from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison, summarize, to_html, to_json, to_markdown
from holdfast_studies.comparison.results import relative_comparison
from holdfast_studies.comparison.runner import applies

MANY = [test for test in PUBLIC_TESTS.values() if test.group.many and test.kind == "regression"]
CHOICE = [test for test in MANY if test.half == "choice"][:12]
ASIDE = [test for test in MANY if test.half == "confirmation"][:3]


def with_ratios(ratios, folds=3):
    """Least squares with errors of its own in each fold, and ridge with a ratio to it for each table."""
    random = np.random.default_rng(0)
    cells = {}
    for test in (*CHOICE, *ASIDE):
        errors = random.uniform(0.2, 2, folds)
        # Factors whose product is 1 leave the geometric mean as it is.
        factors = np.exp(random.standard_normal(folds))
        factors /= np.prod(factors) ** (1 / folds)
        cells[test.name, "least_squares"] = {fold: {"error": errors[fold]} for fold in range(folds)}
        cells[test.name, "regularized"] = {
            fold: {"error": errors[fold] * factors[fold] * ratios[test.name]} for fold in range(folds)
        }
    return Comparison((*CHOICE, *ASIDE), (METHODS["least_squares"], METHODS["regularized"]), cells, {})


@pytest.fixture(scope="module")
def ratios():
    values = np.exp(0.1 + 0.02 * np.random.default_rng(1).standard_normal(len(CHOICE) + len(ASIDE)))
    return {test.name: float(value) for test, value in zip((*CHOICE, *ASIDE), values, strict=True)}


def test_a_table_counts_once_by_the_geometric_mean_of_its_folds(ratios):
    found = relative_comparison(with_ratios(ratios), MANY[0].group)
    values = found.values("numbers, to choose on", "regularized", "log_ratio")
    assert np.allclose(list(values.values()), np.log([ratios[test.name] for test in CHOICE]))
    assert [test.name for test in found.tests] == ["numbers, to choose on", "numbers, put aside"]
    assert [test.seeds for test in found.tests] == [12, 3]


def test_who_leads_is_decided_over_tables(ratios):
    summary = summarize(with_ratios(ratios))
    (group,) = summary.groups
    # 12 tables, each about 10 % worse, tell the methods apart; three of them do not by Student's t on so few.
    assert group.findings[0] == "numbers, to choose on: least squares leads with 0."
    share = group.overall[0].scores["beyond_2_percent"]["regularized"].estimate.value
    assert share == np.mean([ratios[test.name] > 1.02 for test in CHOICE])
    text, page, plain = to_markdown(summary), to_html(summary), json.loads(to_json(summary))
    assert "(12 tables, 3 tables)" in text
    assert f"| {ASIDE[0].name} a |" in text
    assert f"{ASIDE[0].name} (put aside)" in page
    assert plain["overall"]["numbers, put aside"]["half"] == "confirmation"
    assert plain["tests"][CHOICE[0].name]["half"] == "choice"


def test_expensive_methods_stay_away_from_many_tables():
    assert not any(applies(METHODS["irm"], test) for test in MANY)
    assert applies(METHODS["irm"], PUBLIC_TESTS["Exam"])
    assert {test.features <= 12 for test in MANY if applies(METHODS["eills"], test)} == {True}
    assert {test.environments <= 10 for test in MANY if applies(METHODS["icp"], test)} == {True}
    for name in ("hetero", "least_squares", "regularized", "boosting", "anchor", "drig"):
        assert sum(applies(METHODS[name], test) for test in MANY) >= 25
