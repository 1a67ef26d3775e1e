import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from holdfast.algorithms.losses import LogisticRows
from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators.search.class_evidence import LogisticEvidence
from holdfast.estimators.search.evidence import LinearModel, SquaredEvidence, equality


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


def _stressed_by_rows(z, t, codes, columns, within):
    """The mean squared error within environments, and ten times as far from these environments as these are."""
    size, counts = len(columns), np.bincount(codes)
    design = np.column_stack([z[:, columns], np.ones(len(t))])
    if within:
        for code in range(len(counts)):
            own = codes == code
            design[own, :-1], t[own] = design[own, :-1] - design[own, :-1].mean(0), t[own] - t[own].mean()
    w = np.linalg.lstsq(design, t)[0]
    parts = []
    for code, count in enumerate(counts):
        own = codes == code
        least = np.mean((t[own] - design[own] @ np.linalg.lstsq(design[own], t[own])[0]) ** 2)
        errors = t[own] - design[own] @ w
        variance = least * count / (count - size - 1)
        apart = errors.var() - least - variance * size / count
        parts.append((variance, apart, 0.0 if within else errors.mean() ** 2 - variance / count))
    variance, apart, level = np.average(parts, axis=0, weights=counts)
    return variance + 100 * (max(apart, 0) + max(level, 0))


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("columns", [[], [1], [0, 2], [0, 1, 2]])
def test_the_loss_far_from_these_environments_is_that_of_the_rows(within, columns):
    x, y, codes = _draw(5, False, differ=0.5)
    x, y = x + codes[:, None], y + 2 * codes
    known = standardized(collect_moments(x, y, group_rows(codes, len(y))), within=within)
    z, t = (x - known.location[:-1]) / known.scale[:-1], (y - known.location[-1]) / known.scale[-1]
    columns = np.array(columns, int)
    found = SquaredEvidence(known).stressed(columns)
    assert found == pytest.approx(_stressed_by_rows(z, t.copy(), codes, columns, within), rel=1e-8)


def test_sampling_error_is_no_distance():
    """300 equal environments with 40 rows: their own fits look nearer by 3 / 40 of the error, 7.5 at ten times that."""
    random = np.random.default_rng(0)
    codes, x = np.arange(12_000) % 300, random.standard_normal((12_000, 2))
    y = x @ [1.0, 1.0] + random.standard_normal(12_000)
    # the distance of an environment is half a chi-square variable with 3 degrees of freedom, over 20
    chance = 100 * 4 * np.sqrt(2 * 3) / 40 / np.sqrt(300)
    assert 0.9 < _squared(x, y, codes).stressed(np.arange(2)) * y.var() < 1.1 + chance


def test_environments_without_rows_enough_say_nothing_about_the_distance():
    x, y, codes = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60.0), np.arange(60) // 6
    assert _squared(x, y, codes).stressed(np.arange(3)) == np.inf
    assert _logistic(x, (y > 20).astype(float), codes).stressed(np.arange(3)) == np.inf


def test_the_logistic_loss_far_away_is_that_of_own_fits_to_second_order():
    """Large environments that differ a little: the fits of each by scikit-learn, without a ridge."""
    x, y, codes = _draw(6, True, differ=0.3, rows=18_000)
    evidence = _logistic(x, y, codes)
    z = (x - x.mean(0)) / x.std(0)
    pooled = evidence.solve(np.arange(3))
    weights, losses, owns = evidence.weights, [], []
    for code in range(3):
        own = codes == code
        fitted = LogisticRegression(C=np.inf, tol=1e-10).fit(z[own], y[own])
        for scores, out in (
            (z[own] @ pooled.coefficients + pooled.intercept, losses),
            (fitted.decision_function(z[own]), owns),
        ):
            out.append(np.mean(np.logaddexp(0, scores) - y[own] * scores))
    # 4 coefficients fit an environment with n rows better by 4 / 2n than its own truth does, and as much is added to
    # the distance to any other coefficients
    apart = weights @ (np.array(losses) - owns - 4 / (2 * evidence.counts))
    assert apart > 0.001
    loss = weights @ losses - apart
    assert evidence.stressed(np.arange(3)) == pytest.approx(loss + 100 * apart, rel=0.03)


def test_barred_features_are_constant():
    for make in (_squared, _logistic):
        x, y, codes = _draw(7, make is _logistic)
        barred = make(x, y, codes).barring(np.array([False, True, False]))
        left = make(x[:, [0, 2]], y, codes)
        found, expected = (one.solve(np.arange(one.dimension)) for one in (barred, left))
        np.testing.assert_allclose(found.coefficients[[0, 2]], expected.coefficients, rtol=1e-6)
        assert found.coefficients[1] == 0
        np.testing.assert_allclose(barred.held_out(np.arange(3)), left.held_out(np.arange(2)), rtol=1e-6)
        assert barred.stressed(np.arange(3)) == pytest.approx(left.stressed(np.arange(2)), rel=0.02)
