"""Tables with more features than rows: which are searched, and what few rows are said to explain."""

import time

import numpy as np
import pytest

from holdfast.estimators import HeteroClassifier, HeteroRegressor
from holdfast.estimators.wide_tables import FEW


def _table(rows, features, environments=4, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, features))
    return x, x[:, 0] + x[:, 1] + random.standard_normal(rows) / 2, np.arange(rows) % environments


def test_wide_tables_are_searched_among_the_strongest_features():
    x, y, environments = _table(120, 2000)
    begin = time.process_time()
    model = HeteroRegressor(pooling=0).fit(x, y, environments=environments)
    assert time.process_time() - begin < 10
    assert model.coef_.shape == model.invariant_.shape == (2000,)
    assert model.relations_.shape[0] == model.effects_.shape[1] == 2000
    used = np.flatnonzero(model.coef_)
    assert {0, 1} <= {*used.tolist()}
    strength = np.abs(np.corrcoef(x.T, y)[-1, :-1])
    assert set(used) <= set(np.argsort(-strength)[:80])  # by gradients, not correlations: nearly the same ranking
    assert "2,000 features are more than 120 rows can tell apart: the 60 with" in " ".join(model.notes_)


def test_what_is_searched_is_what_a_fit_to_these_features_finds():
    """A wide fit is the fit to the features that it keeps, with zeros for the others."""
    x, y, environments = _table(400, 600)
    wide = HeteroRegressor(pooling=1).fit(x, y, environments=environments)
    kept = np.flatnonzero(wide.coef_)
    assert len(kept) == 200
    narrow = HeteroRegressor(pooling=1).fit(x[:, kept], y, environments=environments)
    np.testing.assert_allclose(wide.coef_[kept], narrow.coef_, rtol=1e-8, atol=1e-10)
    assert wide.intercept_ == pytest.approx(narrow.intercept_)
    columns = ["coefficient", "effect", "low", "high"]
    np.testing.assert_allclose(wide.relations_.iloc[kept][columns], narrow.relations_[columns], rtol=1e-6, atol=1e-8)


def test_groups_stay_together_and_declared_features_are_kept():
    x, y, environments = _table(100, 300)
    groups = np.repeat(np.arange(100), 3).tolist()
    model = HeteroRegressor(pooling=1, groups=groups, before=[299]).fit(x, y, environments=environments)
    used = np.array(groups)[model.coef_ != 0]
    assert np.unique(used, return_counts=True)[1].tolist() == [3] * 16
    assert {0, 99} <= {*used.tolist()}


@pytest.mark.parametrize("environments", [1, 3])
def test_noise_explains_nothing(environments):
    random = np.random.default_rng(1)
    x, y = random.standard_normal((60, 200)), random.standard_normal(60)
    for model in (HeteroRegressor(), HeteroClassifier(invariance="effects")):
        response = y if isinstance(model, HeteroRegressor) else y > 0
        findings = model.fit(x, response, environments=np.arange(60) % environments).findings_
        assert max(findings.explained, findings.explained_by_all, findings.explained_by_fit) < 0.1
        assert "60 rows are few for 200 features" in " ".join(model.notes_)


def test_explained_shares_of_few_rows_are_those_of_held_out_environments():
    """Independent: least squares on all other environments, with an intercept; means of logarithms of errors."""
    x, y, environments = _table(60, 25, environments=3)
    assert len(x) < FEW * x.shape[1]
    found = HeteroRegressor().fit(x, y, environments=environments).findings_
    logs = []
    for one in range(3):
        own, others = environments == one, environments != one
        design = np.column_stack([np.ones(len(x)), x])
        w = np.linalg.lstsq(design[others], y[others], rcond=None)[0]
        error, constant = np.mean((y[own] - design[own] @ w) ** 2), np.mean((y[own] - y[others].mean()) ** 2)
        logs.append(np.log(error / constant))
    assert found.explained_by_all == pytest.approx(max(0.0, 1 - np.exp(np.mean(logs))), abs=1e-9)
