import numpy as np
import pytest

from holdfast.algorithms.losses import LogisticRows
from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators.inference import blended_covariance, pooled_covariance, standard_errors
from holdfast.estimators.search.class_fits import with_constant
from holdfast.estimators.search.evidence import LinearModel, LogisticEvidence, SquaredEvidence


def _known(x, y, codes):
    return standardized(collect_moments(x, y, group_rows(codes, len(x))))


def _rows(seed, between=0.0, environments=3, size=300):
    """Environments of unequal noise; the first effect may vary between them."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(environments), size)
    x = random.standard_normal((len(codes), 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.3, 0.0, 1.0]])
    noise = np.geomspace(0.3, 3, environments)[codes] * random.standard_normal(len(codes))
    effects = 1 + between * random.standard_normal(environments)
    return x, effects[codes] * x[:, 0] - 0.5 * x[:, 1] + noise, codes


def test_the_sandwich_is_that_of_the_rows():
    """Against the textbook: (X'X)^-1 (sum over environments of s_e^2 X_e'X_e) (X'X)^-1, and sums of X_e'r_e."""
    x, y, codes = _rows(0, size=20_000)
    known = _known(x, y, codes)
    evidence, columns = SquaredEvidence(known), np.array([0, 1])
    units = known.scale[-1] / known.scale[columns]
    design = x[:, columns] - x[:, columns].mean(0)
    inverse = np.linalg.inv(design.T @ design)
    left = y - y.mean() - design @ (inverse @ design.T @ y)
    middle, clustered = np.zeros((2, 2, 2))
    for code in range(3):
        rows = codes == code
        middle += np.mean(left[rows] ** 2) * design[rows].T @ design[rows]
        score = design[rows].T @ left[rows]
        clustered += 3 / 2 * np.outer(score, score)
    fitted = evidence.solve(columns)
    found = pooled_covariance(evidence, fitted, columns) * np.outer(units, units)
    np.testing.assert_allclose(found, inverse @ middle @ inverse, rtol=0.01)  # 10 borrowed rows of 20,000 are left
    found = pooled_covariance(evidence, fitted, columns, clustered=True) * np.outer(units, units)
    np.testing.assert_allclose(found, inverse @ clustered @ inverse, rtol=1e-6)


def test_blended_coefficients_spread_as_their_covariance_says():
    """400 tables: the variance of a coefficient has a relative standard error of sqrt(2 / 400) = 0.07."""
    selected, poolings = np.array([True, False, True]), (0.0, 0.3, 1.0)
    coefficients, variances = np.zeros((2, 400, 3, 3))
    for seed in range(400):
        x, y, codes = _rows(seed, size=100)
        known = _known(x, y, codes)
        evidence, units = SquaredEvidence(known), known.scale[-1] / known.scale[:-1]
        strict, pooled = evidence.solve(np.flatnonzero(selected)), evidence.solve(np.arange(3))
        for number, pooling in enumerate(poolings):
            blended = (1 - pooling) * strict.coefficients + pooling * pooled.coefficients
            covariance = blended_covariance(evidence, strict, selected, pooled, pooling)
            coefficients[seed, number] = blended * units
            variances[seed, number] = (standard_errors(covariance, 300, 4) * units) ** 2
    spread = coefficients.var(axis=0)
    assert (spread == 0).tolist() == [[False, True, False], [False] * 3, [False] * 3]
    np.testing.assert_allclose(variances.mean(0)[spread > 0] / spread[spread > 0], 1, atol=4 * np.sqrt(2 / 400))


def test_clusters_count_what_differs_between_environments():
    """30 environments whose first effect varies by 0.5: its standard error over new environments is 0.5 / sqrt(30)."""
    found = []
    for seed in range(40):
        x, y, codes = _rows(seed, between=0.5, environments=30, size=200)
        known = _known(x, y, codes)
        evidence, units = SquaredEvidence(known), known.scale[-1] / known.scale[:-1]
        fitted = evidence.solve(np.arange(3))
        both = (pooled_covariance(evidence, fitted, np.arange(3), clustered=each) for each in (False, True))
        found.append([np.sqrt(covariance[0, 0]) * units[0] for covariance in both])
    plain, clustered = np.mean(found, axis=0)
    assert plain < 0.6 * clustered
    expected = np.sqrt(0.5**2 / 30 + plain**2)
    assert clustered == pytest.approx(expected, rel=0.1)
    alone = SquaredEvidence(_known(x, y, np.zeros(len(x))))
    with pytest.raises(ValueError, match="clustered must be False for one environment"):
        pooled_covariance(alone, fitted, np.arange(3), clustered=True)


def test_the_intercept_counts_in_a_logistic_regression():
    """For rare classes, against the inverse of the information with the intercept in it."""
    random = np.random.default_rng(0)
    z = random.standard_normal((2, 40_000))
    y = (1.5 * z[0] - 3 + random.logistic(size=40_000) > 0).astype(float)
    rows = LogisticRows(z, y, np.ones(40_000))
    w, intercept = LogisticEvidence([rows]).solve(np.arange(2))
    evidence = LogisticEvidence([with_constant(rows)])
    found = pooled_covariance(evidence, LinearModel(np.append(w, 0.0), intercept), np.arange(3))
    design = np.vstack([z, np.ones(40_000)])
    p = 1 / (1 + np.exp(-w @ z - intercept))
    expected = np.linalg.inv((design * p * (1 - p)) @ design.T)
    np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=0.05)
