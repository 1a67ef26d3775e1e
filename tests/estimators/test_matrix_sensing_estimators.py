import numpy as np
import pytest

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.estimators import HeteroMatrixSensing, HeteroQuadraticRegressor

DIMENSION, RANK, ROWS = 6, 2, 3000
NOISE = 0.5


def _problem(quadratic, bias=0.5, heterogeneity=1.5, seed=0):
    """y = <X, A* + s(e) V V^T> + noise in four environments, s(e) = bias -+ heterogeneity in turn."""
    random = np.random.default_rng(seed)
    frame = orthonormal_frame(DIMENSION, 2 * RANK, seed)
    invariant, spurious = (part @ part.T for part in (frame[:, :RANK], frame[:, RANK:]))
    codes = np.repeat(np.arange(4), ROWS)
    x = random.standard_normal((4 * ROWS, DIMENSION) if quadratic else (4 * ROWS, DIMENSION, DIMENSION))
    measured = x[:, :, None] * x[:, None, :] if quadratic else x
    strength = bias + heterogeneity * np.where(codes % 2, 1, -1)
    signal = np.tensordot(measured, invariant, 2) + strength * np.tensordot(measured, spurious, 2)
    return x, signal + NOISE * random.standard_normal(len(codes)), codes, invariant, spurious


@pytest.mark.parametrize("estimator", [HeteroMatrixSensing, HeteroQuadraticRegressor])
def test_the_invariant_matrix_is_found_and_the_other_is_not(estimator):
    """Pooled least squares has 0.5 of the spurious signal; the invariant one is 1."""
    x, y, codes, invariant, spurious = _problem(estimator is HeteroQuadraticRegressor)
    model = estimator(n_runs=2).fit(x, y, environments=codes)
    assert model.invariant_.tolist() == [True] * RANK + [False] * (DIMENSION - RANK)
    assert np.linalg.norm(model.matrix_ - invariant) < 0.2 * np.linalg.norm(invariant)
    assert abs(np.sum(model.matrix_ * spurious)) / RANK < 0.05
    # the directions that were washed out are the spurious ones, and their effects vary
    found = model.directions_[:, RANK : 2 * RANK]
    assert np.linalg.svd(found.T @ np.linalg.svd(spurious)[0][:, :RANK])[1].min() > 0.95
    assert (
        model.stability_["effect_range"].iloc[RANK : 2 * RANK].min()
        > 5 * model.stability_["effect_range"].iloc[:RANK].max()
    )


def test_flat_and_square_measurements_are_the_same():
    x, y, codes, *_ = _problem(False)
    square = HeteroMatrixSensing(n_runs=2).fit(x, y, environments=codes)
    flat = HeteroMatrixSensing(n_runs=2).fit(x.reshape(len(x), -1), y, environments=codes)
    np.testing.assert_allclose(square.matrix_, flat.matrix_)
    np.testing.assert_allclose(square.predict(x), np.tensordot(x, square.matrix_, 2) + square.intercept_)


def test_negative_matrices_can_be_fitted():
    x, y, codes, invariant, _ = _problem(False)
    model = HeteroMatrixSensing(n_runs=2).fit(x, -y, environments=codes)
    assert np.linalg.norm(model.matrix_ + invariant) < 0.2 * np.linalg.norm(invariant)


def test_one_environment_is_low_rank_regression_and_says_so():
    x, y, codes, invariant, spurious = _problem(False)
    first = codes == 0
    model = HeteroMatrixSensing(n_runs=2).fit(x[first], y[first])
    assert np.linalg.norm(model.matrix_ - invariant + spurious) < 0.5
    assert "only one environment" in model.advice_[0]
