import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax.extend.random import threefry_2x32

from holdfast.randomness import _words, standard_normals, threefry


def test_threefry_is_the_generator_of_jax():
    key = jax.random.key(7)
    counters = jnp.arange(20, dtype=jnp.uint32)
    ours = jnp.concatenate(threefry(key, counters[:10], counters[10:]))
    assert (ours == threefry_2x32(jax.random.key_data(key), counters)).all()


def test_words_are_those_of_the_cipher():
    """Also those that, read as floating-point numbers, are no numbers: one in 128."""
    for count in (1, 2, 7, 100_000):
        counters = jnp.arange(count, dtype=jnp.uint32)
        plain = threefry(jax.random.key(5), counters, jnp.zeros_like(counters))
        for packed, word in zip(jax.jit(_words, static_argnums=1)(jax.random.key(5), count), plain, strict=True):
            np.testing.assert_array_equal(packed, word)


def test_normals_are_standard_normal():
    count = 1_000_000
    z = np.asarray(standard_normals(jax.random.key(0), (count,), jnp.float32), float)
    # Moments 1 to 4 within five standard errors (variances of z, z^2, z^3, z^4 are 1, 2, 15, 96).
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) < 5 * np.sqrt(variance / count)
    assert scipy.stats.kstest(z, "norm").pvalue > 1e-3
    # Both halves come from the same blocks: they must not know of each other.
    first, second = z[: count // 2], z[count // 2 :]
    for a, b in ((first, second), (first**2 - 1, second**2 - 1), (z[:-1], z[1:])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(len(a))


def test_precision_changes_rounding_only():
    single = standard_normals(jax.random.key(3), (3, 333), jnp.float32)
    with jax.enable_x64(True):
        double = standard_normals(jax.random.key(3), (3, 333), jnp.float64)
    # Near the origin r = sqrt(-2 log u) amplifies the rounding of u = 1 - r^2 / 2 (2^-25) to sqrt(2^-24).
    assert single.dtype == jnp.float32
    assert double.dtype == jnp.float64
    np.testing.assert_allclose(single, double, atol=2**-12)


def test_batching_over_keys_changes_nothing():
    keys = jax.random.split(jax.random.key(0), 4)
    together = jax.vmap(lambda key: standard_normals(key, (7,), jnp.float32))(keys)
    np.testing.assert_allclose(together[2], standard_normals(keys[2], (7,), jnp.float32), rtol=1e-6)
