import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from holdfast.algorithms.losses import LogisticRows
from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators.search.evidence import LinearModel, LogisticEvidence, SquaredEvidence, equality


def _squared(x, y, codes, tolerance=0.0):
    return SquaredEvidence(standardized(collect_moments(x, y, group_rows(codes, len(x)))), tolerance)


def _logistic(x, y, codes, tolerance=0.0):
    z = (x - x.mean(0)) / x.std(0)
    parts = group_rows(codes, len(x)).rows()
    return LogisticEvidence([LogisticRows(z[own].T, y[own], np.ones(len(own))) for own in parts], tolerance)


def _draw(seed, logistic, differ=0.0, rows=900):
    """Three environments of unequal noise and unequal variances of the features, one effect that may differ."""
    random = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [rows // 2, rows // 3, rows // 6])
    x = random.standard_normal((rows, 3)) * np.array([0.5, 1.0, 2.0])[codes, None]
    score = x @ [1.0, -0.5, 0.0] + differ * (codes - 1) * x[:, 0]
    if logistic:
        return x, (score + random.logistic(size=rows) > 0).astype(float), codes
    return x, score + np.array([0.2, 1.0, 2.0])[codes] * random.standard_normal(rows), codes


@pytest.mark.parametrize("make", [_squared, _logistic])
def test_gradients_are_derivatives_of_the_deviance(make):
    evidence = make(*_draw(0, make is _logistic))
    w = np.array([0.3, -0.2, 0.1])
    slopes = evidence.slopes(LinearModel(w, 0.0))
    total = evidence.weights @ slopes.gradient
    rows = evidence.counts.sum()
    for number in range(3):
        up, down = (evidence.deviance(LinearModel(w + sign * 1e-5 * np.eye(3)[number], 0.0)) for sign in (1, -1))
        # deviance is 2 n loss for logistic loss and n log(2 loss) for squared loss
        slope = (up - down) / 2e-5 / (2 * rows)
        if make is _squared:
            slope *= np.exp(evidence.deviance(LinearModel(w, 0.0)) / rows)
        assert slope == pytest.approx(total[number], abs=1e-6)


@pytest.mark.parametrize("make", [_squared, _logistic])
def test_equal_effects_pass_and_different_ones_do_not(make):
    """Under equality the probabilities are uniform: 200 draws, their share below 0.2 within 4 standard errors."""
    logistic = make is _logistic
    levels = []
    for seed in range(200):
        evidence = make(*_draw(seed, logistic))
        levels.append(equality(evidence, evidence.solve(np.arange(3)), np.arange(3)).significance)
    assert abs(np.mean(np.array(levels) < 0.2) - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 200)
    evidence = make(*_draw(0, logistic, differ=0.8))
    assert equality(evidence, evidence.solve(np.arange(3)), np.arange(3)).significance < 1e-4


def test_tolerated_differences_pass():
    draw = _draw(0, False, differ=0.1, rows=9000)  # 0.9, 1.0 and 1.1
    strict, lenient = _squared(*draw), _squared(*draw, tolerance=0.2)
    assert equality(strict, strict.solve(np.arange(3)), np.arange(3)).significance < 1e-4
    assert equality(lenient, lenient.solve(np.arange(3)), np.arange(3)).significance > 0.1


def test_pooled_fits_are_those_of_scikit_learn():
    x, y, codes = _draw(3, True)
    evidence = _logistic(x, y, codes)
    reference = LogisticRegression(C=1.0, tol=1e-8).fit((x - x.mean(0)) / x.std(0), y)
    found = evidence.solve(np.arange(3))
    np.testing.assert_allclose(found.coefficients, reference.coef_[0], atol=1e-4)
    assert found.intercept == pytest.approx(reference.intercept_[0], abs=1e-4)
    x, y, codes = _draw(3, False)
    z, t = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    np.testing.assert_allclose(
        _squared(x, y, codes).solve(np.array([0, 2])).coefficients[[0, 2]],
        np.linalg.lstsq(z[:, [0, 2]], t)[0],
        atol=1e-8,
    )


def test_a_feature_that_is_constant_in_an_environment_says_nothing():
    x, y, codes = _draw(4, False)
    x[codes == 2, 1] = 0.0
    evidence = _squared(x, y, codes)
    test = equality(evidence, evidence.solve(np.arange(3)), np.arange(3))
    assert np.isfinite(test.statistic)
    assert test.degrees >= 5
