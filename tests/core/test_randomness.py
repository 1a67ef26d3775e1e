import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax.extend.random import threefry_2x32

from holdfast.core import randomness
from holdfast.core.randomness import CHI_SQUARE_NORMALS

# Compiled whole, as the library runs them: one at a time, each of their hundred operations is a program of its own.
threefry, chi_squares = jax.jit(randomness.threefry), jax.jit(randomness.chi_squares)
standard_normals = jax.jit(randomness.standard_normals, static_argnums=(1, 2))
ONCE = (randomness._joined, randomness._overwritten)
ON_CPU = [partial(randomness._normals_on_cpu, once=once) for once in ONCE]
several_normals = jax.jit(randomness.several_normals, static_argnums=(1, 2))


def test_threefry_is_the_generator_of_jax():
    key = jax.random.key(7)
    counters = jnp.arange(20, dtype=jnp.uint32)
    ours = np.concatenate(threefry(key, counters[:10], counters[10:]))
    assert (ours == threefry_2x32(jax.random.key_data(key), counters)).all()


def test_keys_and_uniform_numbers_are_those_of_jax():
    keys = jax.random.split(jax.random.key(7), 1000)
    ours = jax.jit(jax.vmap(lambda key: jnp.stack([jax.random.key_data(part) for part in randomness.split(key, 3)])))
    np.testing.assert_array_equal(ours(keys), jax.random.key_data(jax.vmap(lambda key: jax.random.split(key, 3))(keys)))
    theirs = jax.vmap(lambda key: jax.random.uniform(key, dtype=jnp.float32))(keys)
    np.testing.assert_array_equal(jax.jit(jax.vmap(randomness.uniform_number))(keys), theirs)


def test_words_are_those_of_the_cipher():
    """Also those that, read as floating-point numbers, are no numbers: one in 128."""
    for count, once in itertools.product((1, 2, 7, 100_000), ONCE):
        counters = jnp.arange(count, dtype=jnp.uint32)
        plain = threefry(jax.random.key(5), counters, jnp.zeros_like(counters))
        words = jax.jit(partial(randomness._words, count=count, once=once))(jax.random.key(5))
        for packed, word in zip(words, plain, strict=True):
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


def test_all_platforms_draw_the_same_numbers():
    """Those of a CPU are detours around its compiler; the numbers are equal up to the rounding of the transform."""
    sizes = (1, 6, 70, 325)
    ways = [jax.jit(partial(way, sizes=sizes, dtype=jnp.float32)) for way in (randomness._normals, *ON_CPU)]
    for plain, *detours in zip(*(way(jax.random.key(4)) for way in ways), strict=True):
        for detour in detours:
            np.testing.assert_allclose(plain, detour, atol=1e-6)


def test_a_batch_of_keys_draws_what_the_formula_gives_for_each():
    """In the shapes of the exact law at d = 100, against jax's words and the formula in NumPy's double precision."""
    sizes, runs = (5050, 38), 3
    keys = jax.random.split(jax.random.key(6), runs)
    drawn = jax.jit(jax.vmap(partial(ON_CPU[1], sizes=sizes, dtype=jnp.float32)))(keys)
    halves = [size // 2 for size in sizes]
    for run in range(runs):
        counters = jnp.concatenate([jnp.arange(sum(halves)), jnp.zeros(sum(halves))]).astype(jnp.uint32)
        first, second = np.split(np.asarray(threefry_2x32(jax.random.key_data(keys[run]), counters)), 2)
        radius = np.sqrt(-2 * np.log(((first >> 8) + 0.5) * 2.0**-24))
        # The upper two bits are the quadrant, the others an angle of -45 to 45 degrees added to it.
        angle = 2 * np.pi * ((second >> 30) / 4 + (np.left_shift(second, 2).view(np.int32) / 2.0**34))
        for array, begin, count in zip(drawn, (0, halves[0]), halves, strict=True):
            part = slice(begin, begin + count)
            expected = np.concatenate([(radius * np.cos(angle))[part], (radius * np.sin(angle))[part]])
            # As above: the rounding of u near 1 is amplified.
            np.testing.assert_allclose(array[run], expected, atol=2**-12)


def test_several_arrays_are_one_draw():
    shapes = ((3, 5), (4,), (1,))
    parts = several_normals(jax.random.key(2), shapes, jnp.float32)
    assert tuple(part.shape for part in parts) == shapes
    # The first array has the first pairs, as if it were drawn alone.
    np.testing.assert_array_equal(parts[0], standard_normals(jax.random.key(2), (3, 5), jnp.float32))
    assert len(np.unique(np.concatenate([np.ravel(part) for part in parts]))) == 20


def test_chi_squares_have_their_distribution():
    """Against the exact distribution function, from one degree of freedom to a batch of two million."""
    freedom = np.array([1, 2, 3, 4, 10, 100, 8_000, 2_000_000])
    draws = 20_000
    normals = standard_normals(jax.random.key(1), (draws, len(freedom), CHI_SQUARE_NORMALS), jnp.float32)
    sample = np.asarray(chi_squares(normals, jnp.broadcast_to(jnp.asarray(freedom, jnp.float32), normals.shape[:2])))
    for k, values in zip(freedom, sample.T, strict=True):
        assert scipy.stats.kstest(values.astype(float), scipy.stats.chi2(k).cdf).pvalue > 1e-3
        assert abs(values.mean(dtype=float) - k) < 5 * np.sqrt(2 * k / draws)


def test_a_chi_square_is_the_first_proposal_that_is_accepted():
    """Against the method as it is printed: the first x with log u < x^2/2 + a - a v + a log v, v = (1 + t)^3 > 0."""
    normals = np.random.default_rng(0).standard_normal((500, CHI_SQUARE_NORMALS))
    x, first, second = np.split(normals, 3, 1)
    refused = 0
    for k in (2, 3, 7):
        a = k / 2 - 1 / 3
        expected = []
        for row, exponential in zip(x, (first**2 + second**2) / 2, strict=True):
            for number, e in zip(row, exponential, strict=True):
                v = (1 + number / np.sqrt(9 * a)) ** 3
                if v > 0 and -e < number**2 / 2 + a - a * v + a * np.log(v):
                    break
                refused += 1
            expected.append(2 * a * v)
        got = chi_squares(jnp.asarray(normals, jnp.float32), jnp.full(500, k, jnp.float32))
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert refused > 30
