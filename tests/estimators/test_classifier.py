import numpy as np
import pytest

from holdfast.datasets import linear_unit_test
from holdfast.estimators import HeteroClassifier


def _error(name, seed, **settings):
    task = linear_unit_test(name, seed)
    model = HeteroClassifier(**settings).fit(
        task.train.inputs, task.train.targets, environments=task.train.environments
    )
    return np.mean(model.predict(task.test.inputs) != task.test.targets), model


def test_unit_test_of_backgrounds():
    """Example2: the published methods are wrong in 42 to 45 % of rows."""
    error, model = _error("Example2", 0)
    assert error < 0.001
    assert not model.invariant_[5:].any()


def test_unit_test_of_margins():
    """Example3: the oracle is wrong in 1.3 % of rows, the best published method in 34 %."""
    error, model = _error("Example3", 0)
    assert error < 0.02
    assert model.invariant_.tolist() == [True] * 5 + [False] * 5


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), [("Example2", 0.001), ("Example3", 0.06)])
def test_unit_tests_over_ten_seeds(name, limit):
    assert np.mean([_error(name, seed)[0] for seed in range(10)]) < limit


def _draw(strengths, rows=1800, seed=0):
    random = np.random.default_rng(seed)
    codes = np.arange(rows) % 3
    cause = random.standard_normal(rows)
    y = np.where(cause + random.logistic(size=rows) > 0, "yes", "no")
    follower = np.array(strengths)[codes] * (y == "yes") + random.standard_normal(rows)
    return np.column_stack([cause, follower]), y, codes


def test_labels_probabilities_and_log_odds_agree():
    x, y, codes = _draw((2.0, 0.0, 1.0))
    model = HeteroClassifier().fit(x, y, environments=codes)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_[0, 1] == 0
    assert model.coef_[0, 0] == pytest.approx(1, abs=0.15)  # the log-odds of the draw
    chance = model.predict_proba(x)[:, 1]
    np.testing.assert_array_equal(model.predict(x) == "yes", chance > 0.5)
    np.testing.assert_allclose(np.log(chance / (1 - chance)), model.decision_function(x))


def test_levels_are_compared_in_standard_deviations():
    """30 % and 70 %: with half of all rows in a class the deviation is 0.5, and the difference of 0.4 is 0.8 of it."""
    random = np.random.default_rng(0)
    codes, y = np.repeat([0, 1], 1000), np.tile(np.arange(1000) < 300, 2)
    y[1000:] = ~y[1000:]
    model = HeteroClassifier().fit(random.standard_normal((2000, 1)), y, environments=codes)
    assert any("the mean errors are 0.8 standard deviations apart from 0 to 1" in each for each in model.advice_)


def test_without_features_the_prediction_is_the_share_of_each_class():
    x, codes = np.tile([1.0, -1.0], 200), np.repeat([0, 1], 200)
    model = HeteroClassifier().fit(x[:, None], np.where(codes == 0, x, -x) > 0, environments=codes)
    assert "everything was washed out, and the prediction is the share of each class" in model.advice_[0]
    np.testing.assert_allclose(model.predict_proba(x[:, None]), 0.5, atol=1e-6)


def test_environments_that_do_not_differ_are_called_so():
    x, y, codes = _draw((1.0, 1.0, 1.0))
    model = HeteroClassifier().fit(x, y, environments=codes)
    assert "do not differ between the 3 environments" in model.advice_[0]
    assert model.invariant_.all()


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="two classes, got one class only"):
        HeteroClassifier().fit(np.ones((4, 2)), np.zeros(4))
