"""Tests of equal differences between class means: their statistics, their laws and what they depend on."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core.class_moments import class_statistics, collect_class_moments
from holdfast.core.grouping import Grouping
from holdfast.estimators.search.class_evidence import LogisticEvidence
from holdfast.estimators.search.class_fits import (
    LinearModel,
    expected_log_loss,
    held_out_discriminant_losses,
    linear_discriminant,
    needed_features,
    softmax_regression,
)
from holdfast.estimators.search.class_means import class_differences, difference_tests, varying_directions

# A statistic that follows its law lies within this many standard errors of the mean, here and below.
ERRORS = 4.0


def _statistics(x, y, codes):
    return class_statistics(collect_class_moments(x, y, Grouping(codes, list(range(codes.max() + 1)))))


def _draw(random, environments=4, rows=200, classes=2, features=3, mean=None, spread=None):
    """Normal features whose class means are `mean[environment, class]` and whose deviations are `spread[...]`."""
    codes = np.repeat(np.arange(environments), rows * classes)
    y = np.tile(np.arange(classes), environments * rows)
    x = random.standard_normal((len(y), features))
    x = x if spread is None else x * spread[codes, y]
    return (x if mean is None else x + mean[codes, y]), y, codes


def test_two_classes_by_hand():
    random = np.random.default_rng(0)
    mean = random.standard_normal((4, 2, 3))
    x, y, codes = _draw(random, mean=mean, spread=random.uniform(0.5, 2, (4, 2, 3)))
    difference, error = np.zeros((2, 4, 3))
    # with few rows variances are drawn to the pooled one: ten rows of it
    own = np.array([[x[(codes == e) & (y == c)].var(0, ddof=1) for c in range(2)] for e in range(4)])
    pooled = (199 * own.sum((0, 1)) + x.var(0)) / (8 * 199 + 1)
    for e in range(4):
        groups = [x[(codes == e) & (y == c)] for c in range(2)]
        difference[e] = groups[1].mean(0) - groups[0].mean(0)
        error[e] = sum((199 * own[e, c] + 10 * pooled) / 209 / 200 / (1 - 398 / 209**2) for c in range(2))
    centre = (difference / error).sum(0) / (1 / error).sum(0)
    found = difference_tests(_statistics(x, y, codes))
    assert found.degrees == 3
    np.testing.assert_allclose(found.statistic, ((difference - centre) ** 2 / error).sum(0), rtol=1e-8)


def test_statistic_of_features_follows_its_law():
    """Three classes, unequal variances, levels that differ between environments, and one class that one of them lacks:
    11 means less 4 levels and 2 differences leave 5 degrees of freedom."""
    random = np.random.default_rng(1)
    spread = random.uniform(0.5, 2, (4, 3, 8))
    mean = 3 * random.standard_normal((4, 1, 8)) + random.standard_normal((1, 3, 8))
    found = []
    for _ in range(60):
        x, y, codes = _draw(random, rows=150, classes=3, features=8, mean=mean, spread=spread)
        present = ~((codes == 2) & (y == 1))
        tests = difference_tests(_statistics(x[present], y[present], codes[present]))
        assert tests.degrees == 5
        found.append(tests.statistic)
    # 480 values: a Kolmogorov test at 0.001 fails if the mean is off by a tenth
    assert kstest(np.ravel(found), chi2(5).cdf).pvalue > 0.001


def test_many_small_environments_do_not_look_different():
    """150 environments of 2 x 12 rows: variances that are estimated from 12 rows must not inflate the statistic."""
    random = np.random.default_rng(11)
    found = difference_tests(_statistics(*_draw(random, environments=150, rows=12, features=200)))
    error = np.sqrt(2 * 149 / 200)
    assert found.statistic.mean() == pytest.approx(149, abs=ERRORS * error)


@pytest.mark.parametrize("unequal", [False, True])
def test_rank_of_the_interactions_follows_its_law(unequal):
    """One direction varies: the test of one direction has uniform p-values, that of none is rejected."""
    random = np.random.default_rng(2)
    spread = random.uniform(0.5, 2, (5, 2, 1)) * np.ones(6) if unequal else None
    mean = np.zeros((5, 2, 6))
    mean[:, 1] = np.array([0.0, 2, 4, 1, 3])[:, None] * np.array([1.0, 1, 0, -1, 0, 0]) + np.array([0, 0, 1, 0, 0, 1])
    found = []
    for _ in range(150):
        x, y, codes = _draw(random, environments=5, rows=150, features=6, mean=mean, spread=spread)
        tests = varying_directions(_statistics(x, y, codes), significance=1e-9)
        assert tests.most == 4
        assert tests.varying == 1
        found.append(tests.p_values[1])
    assert kstest(found, "uniform").pvalue > 0.001


def test_without_variation_the_level_is_that_of_the_test():
    random = np.random.default_rng(3)
    wrong = [varying_directions(_statistics(*_draw(random, rows=50)), significance=0.1).varying for _ in range(300)]
    assert np.mean(np.array(wrong) > 0) == pytest.approx(0.1, abs=ERRORS * np.sqrt(0.09 / 300))


def test_directions_do_not_depend_on_coordinates():
    random = np.random.default_rng(4)
    mean = np.zeros((4, 2, 5))
    mean[:, 1, 0], mean[:, 1, 1] = [0, 3, 6, 9], 1.0
    x, y, codes = _draw(random, mean=mean, features=5)
    mixing = random.standard_normal((5, 5)) + 2 * np.eye(5)
    scores, p_values = [], []
    for table in (x, x @ mixing):
        known = _statistics(table, y, codes)
        found = varying_directions(known)
        assert found.varying == 1
        p_values.append(found.p_values)
        fit = linear_discriminant(known, found.directions[:, 1:])
        scores.append((table - known.location) / known.scale @ fit.coefficients.T + fit.intercept)
    np.testing.assert_allclose(np.diff(scores[0]), np.diff(scores[1]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(p_values[0], p_values[1], rtol=1e-6, atol=1e-12)


def test_effects_of_environments_are_no_differences_between_classes():
    """Class 1 is frequent where x is high: pooled means would differ, means within environments do not."""
    random = np.random.default_rng(5)
    codes = np.repeat([0, 1], 4000)
    y = (random.random(8000) < np.array([0.2, 0.8])[codes]).astype(int)
    x = random.standard_normal((8000, 1)) + 3 * codes[:, None]
    fit = class_differences(_statistics(x, y, codes))
    assert abs(fit.differences[1] - fit.differences[0]) < ERRORS * np.sqrt(2 / 2560)


def test_discriminant_is_that_of_scikit_learn():
    random = np.random.default_rng(6)
    x, y, codes = _draw(random, 1, 5000, 3, 4, mean=random.standard_normal((1, 3, 4)))
    x = x @ random.standard_normal((4, 4))
    known = _statistics(x, y, codes)
    fit = linear_discriminant(known)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y)
    ours = (x - known.location) / known.scale @ fit.coefficients.T + fit.intercept
    expected = theirs.decision_function(x)
    # they divide by rows, we by degrees of freedom, with one observation more, of 15,000
    np.testing.assert_allclose(ours - ours[:, :1], expected - expected[:, :1], rtol=0.002, atol=0.002)


def test_suppressors_are_needed_and_noise_is_not():
    random = np.random.default_rng(7)
    y = np.arange(4000) % 2
    noise = random.standard_normal((4000, 2))
    x = np.column_stack([y + noise[:, 0], noise[:, 0] + 0.5 * noise[:, 1], random.standard_normal(4000)])
    needed = needed_features(_statistics(x, y, np.zeros(4000, int)), np.ones(3, bool))
    assert needed.tolist() == [True, True, False]


@pytest.mark.parametrize("classes", [2, 4])
def test_expected_loss_is_that_of_normal_rows(classes):
    random = np.random.default_rng(8)
    x, y, codes = _draw(random, 2, 20_000 // classes, classes, 3, mean=2 * random.standard_normal((2, classes, 3)))
    known = _statistics(x, y, codes)
    fit = LinearModel(random.standard_normal((classes, 3)), random.standard_normal(classes))
    scores = (x - known.location) / known.scale @ fit.coefficients.T + fit.intercept
    losses = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(y)), y]
    for environment, expected in enumerate(expected_log_loss(known, fit)):
        own = losses[codes == environment]
        # points of the normal law are not exact either: half a per cent
        assert own.mean() == pytest.approx(expected, abs=ERRORS * own.std() / np.sqrt(len(own)) + 0.005 * expected)


def test_losses_in_environments_left_out_are_those_of_separate_fits():
    random = np.random.default_rng(9)
    x, _, codes = _draw(random, 3, 300, 2, 3)
    y = (x @ [1.0, -1.0, 0.5] * np.array([1.0, 0.2, 3.0])[codes] + random.logistic(size=len(x)) > 0).astype(int)
    parts = [LogisticRows(x[codes == e].T, y[codes == e].astype(float), np.ones(600)) for e in range(3)]
    expected, by_means = [], []
    for e in range(3):
        fit = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(x[codes != e][:, :2], y[codes != e])
        chance = fit.predict_proba(x[codes == e][:, :2])[np.arange(600), y[codes == e]]
        expected.append(-np.log(chance).mean())
        others = _statistics(x[codes != e], y[codes != e], np.unique(codes[codes != e], return_inverse=True)[1])
        fit = linear_discriminant(others)
        scores = (x[codes == e] - others.location) / others.scale @ fit.coefficients.T + fit.intercept
        by_means.append(np.mean(np.logaddexp(0, (scores[:, 0] - scores[:, 1]) * (2 * y[codes == e] - 1))))
    np.testing.assert_allclose(
        LogisticEvidence(parts).held_out(np.arange(2)), expected, rtol=1e-5
    )  # steps end when they gain less than 1e-10, the square of that
    # features are not normal within classes here, so that the law of the scores is an approximation
    np.testing.assert_allclose(held_out_discriminant_losses(_statistics(x, y, codes)), by_means, rtol=0.05)


def test_softmax_regression_is_that_of_scikit_learn():
    random = np.random.default_rng(10)
    x, y, _ = _draw(random, 1, 200, 3, 2, mean=random.standard_normal((1, 3, 2)))
    ours = softmax_regression(x.T, y, 3, np.ones(len(y)))
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(np.diff(ours.intercept), np.diff(theirs.intercept_), atol=1e-4)
