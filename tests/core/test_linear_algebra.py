import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.core.linear_algebra import (
    gather_symmetric,
    joint_diagonalisation,
    pack_symmetric,
    symmetric_size,
    symmetrised,
    unpack_symmetric,
)


@pytest.mark.parametrize(("size", "count"), [(3, 5), (6, 3)])
def test_common_eigenvectors_are_found(size, count):
    random = np.random.default_rng(size)
    axes = np.linalg.qr(random.standard_normal((size, size)))[0]
    found = joint_diagonalisation(
        np.stack([axes @ np.diag(row) @ axes.T for row in random.standard_normal((count, size))])
    )
    np.testing.assert_allclose(found.T @ found, np.eye(size), atol=1e-10)
    # the same axes, in some order and direction
    np.testing.assert_allclose(np.sort(np.abs(found.T @ axes), axis=0)[-1], 1, atol=1e-8)


def test_axes_with_equal_entries_are_turned_by_half_a_right_angle():
    """There the given axes are the worst ones, a stationary point."""
    matrices = np.array([[[2.0, -1.0], [-1.0, 2.0]], [[1.5, 0.5], [0.5, 1.5]]])
    basis = joint_diagonalisation(matrices)
    np.testing.assert_allclose((basis.T @ matrices @ basis)[:, 0, 1], 0, atol=1e-12)


def test_axes_that_no_matrix_tells_apart_stay():
    random = np.random.default_rng(0)
    noise = 1e-16 * random.standard_normal((3, 4, 4))
    np.testing.assert_array_equal(joint_diagonalisation(np.eye(4) + noise + noise.swapaxes(1, 2)), np.eye(4))


def test_without_common_eigenvectors_no_small_turn_does_better():
    random = np.random.default_rng(0)
    matrices = random.standard_normal((4, 3, 3))
    matrices = matrices + matrices.swapaxes(1, 2)

    def rest(basis):
        return np.sum((basis.T @ matrices @ basis * (1 - np.eye(3))) ** 2)

    best = joint_diagonalisation(matrices)
    assert rest(best) < rest(np.eye(3))
    for _ in range(50):
        skew = 1e-3 * random.standard_normal((3, 3))
        assert rest(best) <= rest(np.linalg.qr(best @ (np.eye(3) + skew - skew.T))[0])


def test_no_axes_at_all_are_their_own_basis():
    assert joint_diagonalisation(np.zeros((2, 0, 0))).shape == (0, 0)


@pytest.mark.parametrize("dimension", [0, 1, 2, 5, 6])
def test_packing_preserves_inner_products_in_numpy_and_jax(dimension):
    random = np.random.default_rng(0)
    matrices = symmetrised(random.standard_normal((3, 2, dimension, dimension)))
    packed = pack_symmetric(matrices)
    assert packed.shape == (3, 2, symmetric_size(dimension))
    np.testing.assert_allclose(packed[:, 0] @ packed[:, 1].T, np.einsum("aij,bij->ab", *matrices.swapaxes(0, 1)))
    np.testing.assert_allclose(unpack_symmetric(packed), matrices)
    np.testing.assert_allclose(gather_symmetric(packed), matrices)
    np.testing.assert_allclose(jax.vmap(jax.vmap(pack_symmetric))(jnp.asarray(matrices)), packed, rtol=1e-6)
