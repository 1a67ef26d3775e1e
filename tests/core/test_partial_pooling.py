"""The restricted likelihood from second moments against the one written with the covariance matrix of all rows."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from holdfast.core.partial_pooling import _Likelihood, fit_mixed

FACTOR = np.array([[0.7, 0.0], [0.2, 0.5]])


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    environments = np.repeat(np.arange(9), [3, 5, 8, 2, 12, 7, 1, 6, 9])
    X = np.column_stack([np.ones(len(environments)), rng.standard_normal((len(environments), 2))])
    own = rng.standard_normal((9, 2)) @ np.array([[1.0, 0.3], [0.0, 0.6]])
    y = X @ [1.0, 2.0, -1.0] + (own[environments] * X[:, :2]).sum(1) + rng.standard_normal(len(environments))
    return X, y, environments


def products(X, y, environments):
    table = np.column_stack([X, y])
    return np.stack([table[environments == each].T @ table[environments == each] for each in np.unique(environments)])


def explicit_criterion(X, y, environments, factor):
    """-2 log REML by the law of contrasts: y projected on a basis of the complement of X has a normal law."""
    complement = np.linalg.svd(X)[0][:, X.shape[1] :]
    Z = X[:, : len(factor)]
    same = environments[:, None] == environments
    inverse = np.linalg.inv(np.eye(len(y)) + same * (Z @ factor @ factor.T @ Z.T))
    weighted = X.T @ inverse @ X
    residual = y - X @ np.linalg.solve(weighted, X.T @ inverse @ y)
    variance = residual @ inverse @ residual / (len(y) - X.shape[1])
    covariance = variance * complement.T @ (np.eye(len(y)) + same * (Z @ factor @ factor.T @ Z.T)) @ complement
    log_likelihood = multivariate_normal(cov=covariance).logpdf(complement.T @ y)
    # the contrasts of an orthonormal basis differ from REML's by the determinant of X^T X
    return -2 * log_likelihood + np.linalg.slogdet(X.T @ X)[1], variance


def test_criterion_is_that_of_contrasts(rows):
    found, _ = _Likelihood(products(*rows), np.array([0, 1])).criterion(FACTOR)
    assert found == pytest.approx(explicit_criterion(*rows, FACTOR)[0], rel=1e-12)


@pytest.mark.parametrize("random", [[0], [0, 1], [0, 2, 1]])
def test_gradient_is_that_of_differences(rows, random):
    likelihood, size = _Likelihood(products(*rows), np.array(random)), len(random)
    factor = np.tril(np.random.default_rng(0).standard_normal((size, size)))
    step = 1e-5
    for place in np.ndindex(size, size):
        moved = np.zeros((size, size))
        moved[place] = step
        slope = (likelihood.criterion(factor + moved)[0] - likelihood.criterion(factor - moved)[0]) / (2 * step)
        assert likelihood.criterion(factor)[1][place] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_best_predictions_are_conditional_means(rows):
    X, y, environments = rows
    model = fit_mixed(products(*rows), np.array([0, 1]))
    Z = X[:, :2]
    for number in range(9):
        own = environments == number
        covariance = Z[own] @ model.between @ Z[own].T + model.variance * np.eye(own.sum())
        expected = model.between @ Z[own].T @ np.linalg.solve(covariance, (y - X @ model.fixed)[own])
        np.testing.assert_allclose(model.best[number], expected, rtol=1e-9, atol=1e-12)


def test_errors_of_the_fixed_part_are_those_of_generalised_least_squares(rows):
    X, _, environments = rows
    model = fit_mixed(products(*rows), np.array([0]), diagonal=True)
    covariance = model.variance * np.eye(len(X)) + model.between[0, 0] * (environments[:, None] == environments)
    np.testing.assert_allclose(model.covariance, np.linalg.inv(X.T @ np.linalg.inv(covariance) @ X), rtol=1e-9)


def test_no_random_effects_are_least_squares(rows):
    X, y, _ = rows
    model = fit_mixed(products(*rows), np.array([], int))
    np.testing.assert_allclose(model.fixed, np.linalg.lstsq(X, y)[0], rtol=1e-9)
    assert model.variance == pytest.approx(((y - X @ model.fixed) ** 2).sum() / (len(y) - 3))


def test_parameters_are_recovered_within_their_errors():
    """1,000 environments: variances of intercept and slope have standard errors of about sqrt(2 / 1000) = 4.5 %."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1000, 30))
    between = np.array([[1.0, 0.3], [0.3, 0.5]])
    own = rng.multivariate_normal([0, 0], between, 1000)
    y = 2 + own[:, :1] + (3 + own[:, 1:]) * x + rng.standard_normal((1000, 30))
    table = np.stack([np.ones_like(x), x, y], axis=2)
    model = fit_mixed(np.einsum("eni,enj->eij", table, table), np.array([0, 1]))
    assert model.converged
    # four standard errors, with the share of sampling error that 30 rows leave
    np.testing.assert_allclose(np.diag(model.between), np.diag(between), rtol=4 * 0.05)
    assert model.between[0, 1] == pytest.approx(0.3, abs=4 * np.sqrt((0.5 + 0.09) / 1000) * 1.05)
    np.testing.assert_allclose(model.fixed, [2, 3], atol=4 * np.sqrt(1.05 / 1000))
    assert model.variance == pytest.approx(1, abs=4 * np.sqrt(2 / 28_000))


@pytest.mark.parametrize("y", [np.zeros(12), np.arange(12.0), np.repeat([0.0, 3.0, 5.0], 4)])
def test_a_perfect_fit_leaves_no_error(y):
    """Nothing, a line, and one level for each environment."""
    X = np.column_stack([np.ones(12), np.arange(12.0)])
    model = fit_mixed(products(X, y, np.repeat([0, 1, 2], 4)), np.array([0]))
    assert model.variance < 1e-12
    np.testing.assert_allclose(X @ model.fixed + np.repeat(model.best[:, 0], 4), y, atol=1e-5)
