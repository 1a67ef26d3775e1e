import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.sensing.ensembles import symmetric_gaussian


@pytest.mark.parametrize("dimension", [1, 2, 3, 6, 7])
def test_unpack_is_an_isometry_with_inverse_pack(ensemble, dimension):
    random = np.random.default_rng(0)
    size = ensemble.size(dimension)
    units = np.stack([np.asarray(ensemble.unpack(jnp.asarray(unit), dimension)).ravel() for unit in np.eye(size)])
    np.testing.assert_allclose(units @ units.T, np.eye(size), atol=1e-6)
    coordinates = random.standard_normal(size).astype(np.float32)
    np.testing.assert_allclose(ensemble.pack(ensemble.unpack(coordinates, dimension)), coordinates, rtol=1e-6)


def test_inner_product_with_a_symmetric_matrix(ensemble):
    random = np.random.default_rng(1)
    x = random.standard_normal(ensemble.size(6)).astype(np.float32)
    residual = random.standard_normal((6, 6)).astype(np.float32)
    residual += residual.T
    inner = np.sum(np.asarray(ensemble.unpack(x, 6)) * residual)
    assert inner == pytest.approx(float(x @ ensemble.pack(residual)), rel=1e-5)


def test_symmetric_entries_have_the_stated_variances():
    # Each entry is linear in the coordinates, so its variance is the sum of its squared coefficients: exact.
    dimension = 5
    size = symmetric_gaussian.size(dimension)
    basis = np.stack([np.asarray(symmetric_gaussian.unpack(jnp.asarray(u), dimension)) for u in np.eye(size)])
    expected = np.where(np.eye(dimension), 1.0, 0.5)
    np.testing.assert_allclose((basis**2).sum(0), expected, rtol=1e-6)
    np.testing.assert_array_equal(basis, np.swapaxes(basis, 1, 2))
