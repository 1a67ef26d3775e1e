"""Standard normal numbers, the raw material of every oracle.

They differ from those of `jax.random.normal` in three ways. They do not depend on the precision: a float64 run sees the
random numbers of the float32 run, rounded less. They do not depend on the version of jax. And they take half the time
on a CPU, because both words of a Threefry block are used, the unrolled rounds are computed only once, and the transform
needs one logarithm for two numbers.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise, starmap

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)

# (key, parts of equal length) -> the parts one after the other.
ComputedOnce = Callable[[jax.Array, Sequence[jax.Array]], jax.Array]

# A CPU computes this many blocks at a time, and those left over one by one: it is given none of these.
VECTOR = 32

# What a seed is used for besides the steps of a run. Step t of a run has the key fold_in(key(seed), t), and so these
# count down from the largest number, which no step reaches.
START = np.uint32(2**32 - 1)
ORDER = np.uint32(2**32 - 2)
PANEL = np.uint32(2**32 - 3)
OFFSHOOT = np.uint32(2**32 - 4)


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


def fold_in(key: jax.Array, number: jax.Array | np.uint32) -> jax.Array:
    """The same key as `jax.random.fold_in`, to the bit, with the rounds unrolled: faster in a loop of short steps."""
    words = threefry(key, jnp.zeros((), jnp.uint32), number.astype(jnp.uint32))
    return jax.random.wrap_key_data(jnp.stack(words), impl="threefry2x32")


def split(key: jax.Array, count: int = 2) -> list[jax.Array]:
    """The same keys as `jax.random.split`, to the bit, with the rounds unrolled: faster in a loop of short steps."""
    return [fold_in(key, np.uint32(number)) for number in range(count)]


def uniform_number(key: jax.Array) -> jax.Array:
    """The same number in [0, 1) as `jax.random.uniform` of float32, to the bit, with the rounds unrolled."""
    first, second = threefry(key, jnp.zeros((), jnp.uint32), jnp.zeros((), jnp.uint32))
    # The upper 23 bits are the fraction of a number in [1, 2).
    fraction = ((first ^ second) >> np.uint32(9)) | np.uint32(0x3F800000)
    return jax.lax.bitcast_convert_type(fraction, jnp.float32) - 1


def purpose_key(seed: ArrayLike, purpose: np.uint32) -> jax.Array:
    """The key of a seed for one purpose, such as `START`: it shares no random number with the steps of a run.

    Args:
        seed: of the run, or of what many runs share.
        purpose: one of the constants of this module.
    """
    return fold_in(jax.random.key(jnp.asarray(seed, jnp.uint32), impl="threefry2x32"), jnp.asarray(purpose))


def derived_seeds(seeds: ArrayLike, purpose: np.uint32) -> np.ndarray:
    """A further seed for each seed, for runs that must not repeat the random numbers of the first ones.

    Args:
        seeds: (runs,).
        purpose: one of the constants of this module.
    """
    keys = jax.jit(jax.vmap(partial(purpose_key, purpose=purpose)))(np.asarray(seeds, np.uint32))
    return np.asarray(jax.random.key_data(keys))[:, 0]


def standard_normals(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    """Independent N(0, 1) numbers by the method of Box and Muller (1958).

        r = sqrt(-2 log u),    (r cos(2 pi v), r sin(2 pi v))

    u has 24 bits, so no number is larger than 5.9 in size; the probability of one is 4e-9.
    """
    return _drawn(key, (shape,), dtype, _joined)[0]


def several_normals(key: jax.Array, shapes: Sequence[tuple[int, ...]], dtype: jnp.dtype) -> list[jax.Array]:
    """Arrays of independent N(0, 1) numbers from one key, for the short steps of the exact law.

    One draw is faster to run and to compile than one for each array. The numbers are those of `standard_normals`, up to
    rounding.
    """
    return _drawn(key, shapes, dtype, _overwritten)


def _drawn(key: jax.Array, shapes: Sequence[tuple[int, ...]], dtype: jnp.dtype, once: ComputedOnce) -> list[jax.Array]:
    sizes = tuple(math.prod(shape) for shape in shapes)
    drawn = jax.lax.platform_dependent(
        key,
        cpu=partial(_normals_on_cpu, sizes=sizes, dtype=dtype, once=once),
        default=partial(_normals, sizes=sizes, dtype=dtype),
    )
    return [numbers.reshape(shape) for numbers, shape in zip(drawn, shapes, strict=True)]


def _normals(key: jax.Array, sizes: Sequence[int], dtype: jnp.dtype) -> list[jax.Array]:
    """Each array holds the first numbers of some Threefry blocks, and then their second numbers."""
    blocks = _blocks(sizes)
    counters = jnp.arange(blocks[-1].stop, dtype=jnp.uint32)
    x, y = _box_muller(*threefry(key, counters, jnp.zeros_like(counters)), dtype)
    # Without a barrier each consumer of an array would draw it again.
    join = lambda part: jax.lax.optimization_barrier(jnp.concatenate([x[part], y[part]]))  # noqa: E731
    return [join(part)[:size] for size, part in zip(sizes, blocks, strict=True)]


def _normals_on_cpu(key: jax.Array, sizes: Sequence[int], dtype: jnp.dtype, once: ComputedOnce) -> list[jax.Array]:
    """The same numbers, behind something that XLA's CPU compiler does not look through.

    It looks through barriers and recomputes a value in each of its consumers.
    """
    blocks = _blocks(sizes)
    count = blocks[-1].stop
    if count > VECTOR:
        count = -(-count // VECTOR) * VECTOR
    both = once(key, _box_muller(*_words(key, count, once), dtype))
    x, y = both[:count], both[count:]
    return [jnp.concatenate([x[part], y[part]])[:size] for size, part in zip(sizes, blocks, strict=True)]


def _joined(key: jax.Array, parts: Sequence[jax.Array]) -> jax.Array:
    """Computed once and, where there are many numbers, by all threads: for long draws of a single run."""
    return jax.lax.optimization_barrier(jnp.concatenate(parts))


def _overwritten(key: jax.Array, parts: Sequence[jax.Array]) -> jax.Array:
    """Computed once and in one thread: for short draws, where `run` has given each core a slab of runs of its own.

    XLA would divide the computation among threads and spend most of a step on waiting. It does not where a part of an
    array is overwritten, as long as that is not all of it, nor an array of constants: so one row at a time is, of an
    array that is filled from the key. A step of the exact law at d = 25 is 1.57 times as fast in
    processor time, together with the loop of `run`.
    """
    filling = jax.random.key_data(key)[0].astype(parts[0].dtype)
    array = jnp.full((len(parts), len(parts[0])), filling)
    for row, part in enumerate(parts):
        array = jax.lax.dynamic_update_slice(array, part[None], (row, 0))
    return array.reshape(-1)


def _blocks(sizes: Sequence[int]) -> list[slice]:
    """The Threefry blocks of each array: one for two numbers."""
    return list(starmap(slice, pairwise(accumulate(((size + 1) // 2 for size in sizes), initial=0))))


def _box_muller(first: jax.Array, second: jax.Array, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    uniform = ((first >> np.uint32(8)).astype(jnp.int32).astype(dtype) + 0.5) * 2.0**-24
    radius = jnp.sqrt(-2 * jnp.log(uniform))
    cosine, sine = _circle(second, dtype)
    return radius * cosine, radius * sine


# Normal numbers that one chi-square number is made from: three for each of twelve proposals.
CHI_SQUARE_PROPOSALS = 12
CHI_SQUARE_NORMALS = 3 * CHI_SQUARE_PROPOSALS


def chi_squares(normals: jax.Array, freedom: jax.Array) -> jax.Array:
    """Chi-square numbers with whole degrees of freedom, by the method of Marsaglia and Tsang (2000).

        a = k/2 - 1/3,    2 a (1 + t)^3  with  t = x / (3 sqrt(a)),    k >= 2

    accepted if log u < 3 a (log(1 + t) - t + t^2/2 - t^3/3), and x^2 for k = 1. Minus log u is half the squared length
    of two more normals. A proposal is rejected with probability 0.05 at k = 2 and less above, so all twelve are with
    probability 1e-15 at most. A loop until one is accepted would take half of the compile time of the exact law.

    Args:
        normals: (..., CHI_SQUARE_NORMALS), independent.
        freedom: (...), k.
    """
    x, first, second = jnp.split(normals, 3, -1)
    scale = (jnp.maximum(freedom, 2) / 2 - 1 / 3)[..., None]
    t = x / (3 * jnp.sqrt(scale))
    bound = 3 * scale * (jnp.log1p(t) - t * (1 - t / 2 + t * t / 3))  # nan where 1 + t is negative: rejected
    logarithm = -(first * first + second * second) / 2
    # The bound is above -3 a t^4 / 2 for these t; computed as above it is lost in rounding for large k.
    certain = (jnp.abs(t) < 0.5) & (-1.5 * scale * t**4 > logarithm)
    accepted = certain | (bound > logarithm)
    values = 2 * scale * (1 + t) ** 3
    chosen = values[..., 0]
    for proposal in reversed(range(CHI_SQUARE_PROPOSALS)):
        chosen = jnp.where(accepted[..., proposal], values[..., proposal], chosen)
    return jnp.where(freedom < 2, x[..., 0] ** 2, chosen)


def _words(key: jax.Array, count: int, once: ComputedOnce) -> tuple[jax.Array, jax.Array]:
    """The two words of the Threefry blocks 0 ... count - 1, for a CPU."""
    counters = jnp.arange(count, dtype=jnp.uint32)
    if count < 2:
        return threefry(key, counters, jnp.zeros_like(counters))
    halves = jnp.split(jnp.arange(count + count % 2, dtype=jnp.uint32), 2)
    # The cipher would run three times, for the radius, the cosine and the sine. Both words are packed into the bits of
    # one complex number, which are only copied, so that no arithmetic changes them.
    as_float = partial(jax.lax.bitcast_convert_type, new_dtype=jnp.float32)
    words = (threefry(key, half, jnp.zeros_like(half)) for half in halves)
    pairs = once(key, [jax.lax.complex(as_float(first), as_float(second)) for first, second in words])[:count]
    as_word = partial(jax.lax.bitcast_convert_type, new_dtype=jnp.uint32)
    return as_word(jnp.real(pairs)), as_word(jnp.imag(pairs))


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
