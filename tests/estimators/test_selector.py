"""The columns whose relation to the response holds, before any model."""

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from holdfast.datasets import curved_table
from holdfast.estimators import HeteroSelector

CAUSES = [True, True, False, False]


@pytest.mark.parametrize("shape", ["line", "wave", "product"])
def test_causes_are_selected(shape):
    x, y, environments = curved_table(shape, 6)
    selector = HeteroSelector().fit(x, y, environments=environments)
    assert selector.get_support().tolist() == selector.invariant_.tolist() == CAUSES
    np.testing.assert_array_equal(selector.transform(x), x[:, :2])
    assert selector.task_ == "regression"


def test_a_smooth_effect_needs_a_curve():
    x, y, environments = curved_table("square", 7)
    straight = HeteroSelector(effects="linear", interactions=False, pooling=0).fit(x, y, environments=environments)
    smooth = HeteroSelector(effects="smooth", interactions=False, pooling=0).fit(x, y, environments=environments)
    assert straight.invariant_.tolist() != CAUSES
    assert smooth.invariant_.tolist() == CAUSES


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([0, 1]), np.array([0.0, 7.0])])
def test_classes(labels):
    """A cause with a curve in the log-odds, and a consequence that varies."""
    random = np.random.default_rng(8)
    codes = np.repeat(np.arange(3), 1500)
    cause = np.array([-1.0, 0.0, 1.0])[codes] + random.standard_normal(4500)
    positive = cause**2 - 1 + random.logistic(size=4500) > 0
    consequence = np.array([0.2, 1.0, 2.0])[codes] * positive + random.standard_normal(4500)
    x = np.column_stack([cause, consequence])
    selector = HeteroSelector().fit(x, labels[positive.astype(int)], environments=codes)
    assert selector.task_ == "classification"
    assert selector.get_support().tolist() == [True, False]
    pipeline = make_pipeline(HeteroSelector(), LogisticRegression())
    pipeline.fit(x, labels[positive.astype(int)], heteroselector__environments=codes)
    assert pipeline[0].get_support().tolist() == [True, False]


def test_environments_arrive_in_both_ways():
    x, y, environments = curved_table("product", 9, rows=250)
    boosting = HistGradientBoostingRegressor(max_iter=5)
    named = make_pipeline(HeteroSelector(), boosting).fit(x, y, heteroselector__environments=environments)
    with sklearn.config_context(enable_metadata_routing=True):
        selector = HeteroSelector().set_fit_request(environments=True)
        routed = make_pipeline(selector, boosting).fit(x, y, environments=environments)
    assert named[0].get_support().tolist() == routed[0].get_support().tolist() == CAUSES
    np.testing.assert_array_equal(named.predict(x), routed.predict(x))


def test_one_environment_passes_all_columns():
    x, y, _ = curved_table("line", 10)
    selector = HeteroSelector().fit(x, y)
    assert selector.get_support().all()
    assert "a single environment cannot tell" in selector.notes_[0]


def test_where_nothing_is_invariant_all_columns_pass():
    """With any setting: no model can be fitted to no columns."""
    random = np.random.default_rng(11)
    codes = np.repeat(np.arange(4), 500)
    x = random.standard_normal((2000, 2))
    y = x[:, 0] * np.array([3.0, -1.0, 1.0, 2.0])[codes] + random.standard_normal(2000)
    for pooling in ("auto", 0):
        selector = HeteroSelector(pooling=pooling).fit(x, y, environments=codes)
        assert not selector.invariant_.any()
        assert selector.get_support().all()
        assert "none of them has the same relation" in selector.notes_[0]


def test_too_little_is_passed_on_only_if_asked_for():
    """The invariant column explains a hundredth of the response, and the other one nearly all of it."""
    random = np.random.default_rng(12)
    codes = np.repeat(np.arange(4), 2000)
    x = random.standard_normal((8000, 2))
    y = 0.3 * x[:, 0] + np.array([2.8, 3.0, 3.2, 3.4])[codes] * x[:, 1] + random.standard_normal(8000) / 2
    automatic = HeteroSelector().fit(x, y, environments=codes)
    strict = HeteroSelector(pooling=0).fit(x, y, environments=codes)
    assert automatic.invariant_.tolist() == strict.invariant_.tolist() == [True, False]
    assert automatic.get_support().tolist() == [True, True]
    assert strict.get_support().tolist() == [True, False]
    assert "pooling=0 passes on these alone" in automatic.notes_[0]


def test_settings_are_checked():
    x, y, environments = curved_table("line", 0, rows=20)
    with pytest.raises(ValueError, match="task must be 'auto', 'regression' or 'classification', got 'ranking'"):
        HeteroSelector(task="ranking").fit(x, y, environments=environments)
    with pytest.raises(ValueError, match="interactions must be 'auto', True or False, got 'some'"):
        HeteroSelector(interactions="some").fit(x, y, environments=environments)


def test_classes_whose_shares_shift_are_compared_by_effects():
    """Class means would hold here, and say nothing about curves and products."""
    random = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 1000)
    y = (random.random(3000) < np.array([0.2, 0.5, 0.8])[codes]).astype(int)
    x = random.standard_normal((3000, 3))
    x[:, 0] += 2 * y
    x[:, 1] += y * np.array([3.0, 0.2, 1.0])[codes]
    assert not HeteroSelector().fit(x, y, environments=codes).invariant_[1]
