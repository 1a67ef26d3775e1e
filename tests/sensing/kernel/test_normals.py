import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.core.randomness import CHI_SQUARE_NORMALS, chi_squares, standard_normals, threefry
from holdfast.sensing.kernel.law_kernel import box_muller, chi_square, threefry_words

COUNT = 5000


def words(seed):
    key = jax.random.key(seed, impl="threefry2x32")
    found = np.empty(COUNT, np.uint32), np.empty(COUNT, np.uint32)
    threefry_words(*np.asarray(jax.random.key_data(jax.random.fold_in(key, 5))), *found)
    return jax.random.fold_in(key, 5), found


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_words_are_those_of_the_cipher_to_the_bit(seed):
    key, found = words(seed)
    counters = jnp.arange(COUNT, dtype=jnp.uint32)
    for ours, theirs in zip(found, jax.jit(threefry)(key, counters, jnp.zeros_like(counters)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_normal_numbers_are_those_of_xla_up_to_rounding():
    key, found = words(3)
    numbers = np.empty(2 * COUNT, np.float32)
    box_muller(*found, numbers[:COUNT], numbers[COUNT:])
    theirs = jax.jit(lambda key: standard_normals(key, (2 * COUNT,), jnp.dtype("float32")))(key)
    # The radius and the angle have errors of a few units in the last place each, in both.
    np.testing.assert_allclose(numbers, theirs, rtol=0, atol=4 * np.finfo(np.float32).eps * np.abs(theirs).max())


def test_the_smallest_and_the_largest_radius():
    """Of the smallest uniform numbers, and of those next to 1, whose logarithm is hardest."""
    first = np.array([0, 255, 256, 2**31, 2**32 - 2**12, 2**32 - 1], np.uint32)
    x, y = np.empty(6, np.float32), np.empty(6, np.float32)
    box_muller(first, np.full(6, 2**29, np.uint32), x, y)
    uniform = ((first >> 8).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-24)
    radius = np.sqrt(-2 * np.log(uniform.astype(np.float64)))
    np.testing.assert_allclose(np.hypot(x, y), radius, rtol=4 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 8000])
def test_chi_squares_are_those_of_the_vectorised_function(freedom):
    normals = np.random.default_rng(freedom).standard_normal((2000, CHI_SQUARE_NORMALS)).astype(np.float32)
    ours = [chi_square(row, np.float32(freedom)) for row in normals]
    theirs = jax.jit(chi_squares)(normals, jnp.full(2000, freedom, jnp.float32))
    np.testing.assert_allclose(ours, theirs, rtol=2e-6)


def test_rejected_proposals_are_passed_over():
    """Proposals at -4, where 1 + t is negative or the density far below the bound, and one that is accepted."""
    normals = np.ones(CHI_SQUARE_NORMALS, np.float32)
    normals[:5] = -4
    normals[5] = 0.5
    ours = chi_square(normals, np.float32(2))
    theirs = float(chi_squares(jnp.asarray(normals)[None], jnp.full(1, 2.0))[0])
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours > 1


def test_no_degrees_of_freedom():
    assert chi_square(np.ones(CHI_SQUARE_NORMALS, np.float32), np.float32(0)) == 0
