"""Standard normal numbers, the raw material of every oracle.

Three things set them apart from `jax.random.normal`. They do not depend on the precision: a float64 run sees the
random numbers of the float32 run, rounded less. They do not depend on the version of jax. And they cost half as much
on a CPU, because both words of a Threefry block are used, the rounds are unrolled into one loop, and the transform
needs one logarithm for two numbers.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry(key: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The Threefry-2x32 block cipher with 20 rounds (Salmon et al., SC 2011), the generator behind `jax.random`.

    Args:
        key: a typed key of `jax.random.key`.
        first: the first uint32 word of each counter.
        second: the second one.
    """
    words = jax.random.key_data(key)
    schedule = (words[0], words[1], words[0] ^ words[1] ^ _PARITY)
    first, second = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            first = first + second
            second = (second << np.uint32(rotation)) | (second >> np.uint32(32 - rotation))
            second = second ^ first
        first = first + schedule[(group + 1) % 3]
        second = second + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return first, second


def fold_in(key: jax.Array, number: jax.Array) -> jax.Array:
    """The same key as `jax.random.fold_in`, to the bit, with the rounds unrolled: a loop of short steps feels it."""
    words = threefry(key, jnp.zeros((), jnp.uint32), number.astype(jnp.uint32))
    return jax.random.wrap_key_data(jnp.stack(words), impl="threefry2x32")


def standard_normals(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    """Independent N(0, 1) numbers by the method of Box and Muller (1958).

        r = sqrt(-2 log u),    (r cos(2 pi v), r sin(2 pi v))

    u has 24 bits, so no number is larger than 5.9 in size; the probability of one is 4e-9.
    """
    size = math.prod(shape)
    counters = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    first, second = threefry(key, counters, jnp.zeros_like(counters))
    uniform = ((first >> np.uint32(8)).astype(jnp.int32).astype(dtype) + 0.5) * 2.0**-24
    radius = jnp.sqrt(-2 * jnp.log(uniform))
    cosine, sine = _circle(second, dtype)
    # On the CPU XLA computes a random draw again in each of its consumers. A concatenation behind a barrier is
    # computed once, which makes a step of the exact law up to four times faster.
    normals = jax.lax.optimization_barrier(jnp.concatenate([radius * cosine, radius * sine]))
    return normals[:size].reshape(shape)


def _circle(angle: jax.Array, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of 2 pi angle / 2^32, to 2e-8: the polynomials vectorise, the library functions do not."""
    quadrant = angle >> np.uint32(30)
    # The lower 30 bits as a signed number: an angle in [-pi/4, pi/4) around the middle of the quadrant.
    t = jax.lax.bitcast_convert_type(angle << np.uint32(2), jnp.int32).astype(dtype) * (math.pi / 2 * 2.0**-32)
    square = t * t
    cosine, sine = jnp.ones_like(t), jnp.ones_like(t)
    for n in (4, 3, 2, 1):
        cosine = 1 - square / (2 * n * (2 * n - 1)) * cosine
        sine = 1 - square / (2 * n * (2 * n + 1)) * sine
    sine = t * sine
    odd = (quadrant & 1) == 1
    cosine, sine = jnp.where(odd, sine, cosine), jnp.where(odd, cosine, sine)
    return jnp.where(((quadrant + 1) & 2) != 0, -cosine, cosine), jnp.where((quadrant & 2) != 0, -sine, sine)
