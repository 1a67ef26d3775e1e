"""What straight lines miss within environments."""

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from holdfast.datasets import curved_table
from holdfast.estimators import HeteroRegressor, diagnose_curvature
from holdfast.estimators.screening import logistic_errors, needed_terms, squared_errors


def _interaction_fit(x, y, codes, terms):
    """The residual sum of squares with lines for each environment and common terms, by a single regression."""
    inside = np.eye(codes.max() + 1)[codes]
    lines = np.column_stack([inside, *(inside * column[:, None] for column in x.T), *terms])
    left = y - LinearRegression(fit_intercept=False).fit(lines, y).predict(lines)
    return left @ left


def test_terms_are_tested_as_in_one_large_regression():
    """Around the threshold of the likelihood ratio, computed by least squares with all interactions by environment."""
    random = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 200)
    x = random.standard_normal((600, 2)) + codes[:, None]
    term = x[:, :1] ** 2
    y = x @ [1.0, -1.0] * codes + 0.1 * term[:, 0] + random.standard_normal(600)
    own = [np.flatnonzero(codes == number) for number in range(3)]
    # equal variances of the errors in all environments, as in one regression
    errors = squared_errors(x, y, own)
    errors = errors._replace(errors=errors.errors / errors.scale, scale=np.ones(600))
    ratio = 600 * np.log(_interaction_fit(x, y, codes, []) / _interaction_fit(x, y, codes, [term]))
    significance = chi2.sf(ratio, 1)
    assert 1e-8 < significance < 0.1
    assert needed_terms([term], errors, 1.001 * significance) == [0]
    assert needed_terms([term], errors, 0.999 * significance) == []


def test_differences_between_environments_are_no_curves():
    """Slopes and levels that change from one environment to the next look like a curve only where they are pooled."""
    random = np.random.default_rng(1)
    codes = np.repeat(np.arange(5), 400)
    x = 2 * codes[:, None] + random.standard_normal((2000, 2))
    y = codes * x[:, 0] - codes**2 + random.standard_normal(2000)
    assert diagnose_curvature(x, y, codes) == ([], [])
    assert diagnose_curvature(x, y) != ([], [])


def test_wrong_alarms_are_as_rare_as_the_level_says():
    """Of 200 tables at a level of 5 %, 10 have a wrong alarm, with a standard error of 3."""
    alarms = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        x, y = random.standard_normal((300, 3)), random.standard_normal(300)
        terms = [*(x[:, [number]] ** [2, 3] for number in range(3)), x[:, [0]] * x[:, [1]]]
        errors = squared_errors(x, y, [np.arange(150), np.arange(150, 300)])
        alarms += bool(needed_terms(terms, errors, 0.05))
    assert 1 <= alarms <= 20


def test_a_curve_of_the_log_odds_is_found_and_a_line_is_not():
    random = np.random.default_rng(2)
    x = random.standard_normal((4000, 2))
    positive = (2 * x[:, 0] + x[:, 1] ** 2 + random.logistic(size=4000) > 1).astype(float)
    errors = logistic_errors(x, positive, [np.arange(2000), np.arange(2000, 4000)])
    assert needed_terms([x[:, :1] ** 2, x[:, 1:] ** 2, x[:, :1] * x[:, 1:]], errors, 0.001) == [1]


def test_a_term_that_repeats_another_adds_nothing():
    random = np.random.default_rng(3)
    x = random.standard_normal((500, 1))
    y = x[:, 0] ** 2 + random.standard_normal(500)
    assert len(needed_terms([x**2, 2 * x**2 + x, x**2 + 1], squared_errors(x, y, [np.arange(500)]), 0.001)) == 1


@pytest.mark.parametrize(("shape", "words"), [("square", "x0 bends"), ("product", "x0 and x1 interact")])
def test_the_notes_of_straight_lines_says_that_they_do_not_fit(shape, words):
    x, y, environments = curved_table(shape, 0)
    assert any(words in sentence for sentence in HeteroRegressor().fit(x, y, environments=environments).notes_)


def test_the_notes_is_silent_where_lines_fit():
    x, y, environments = curved_table("line", 0)
    model = HeteroRegressor().fit(x, y, environments=environments)
    assert model.findings_.varies.any()
    assert not any("HeteroSplineRegressor" in sentence for sentence in model.notes_)


def test_units_do_not_matter():
    x, y, environments = curved_table("product and square", 1)
    found = diagnose_curvature(x, y, environments)
    assert found == ([1], [(0, 1)])
    for unit in (1e-150, 1e150):
        assert diagnose_curvature(x, unit * y, environments) == found
        assert diagnose_curvature(unit * x, y, environments) == found


@pytest.mark.parametrize("size", [700, 3000, 12_000])
def test_chunks_give_the_hint_that_the_whole_table_gives(size):
    random = np.random.default_rng(5)
    sites = np.tile(["low", "high"], 6000)
    x = np.where(sites == "low", -1.0, 1.0)[:, None] + random.standard_normal((12_000, 2))
    y = x[:, 0] ** 2 + x[:, 1] + random.standard_normal(12_000)
    whole = HeteroRegressor().fit(x, y, environments=sites)
    parts = [slice(begin, begin + size) for begin in range(0, 12_000, size)]
    chunked = HeteroRegressor().fit_chunks((x[part], y[part], sites[part]) for part in parts)
    assert any("the effect of x0 bends" in sentence for sentence in whole.notes_)
    assert chunked.notes_ == whole.notes_
