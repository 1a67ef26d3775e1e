"""Random numbers N of mean zero: how a continuum of environments varies around its mean."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit, ndtri

from holdfast.core.names import readable
from holdfast.core.randomness import standard_normals
from holdfast.core.validation import require

# Tanh-sinh quadrature on (0, 1), from -3.2 to 3.2: the last weights are below rounding error.
_NODES, _SPACING = np.linspace(-3.2, 3.2, 81, retstep=True)
SHARES = expit(np.pi * np.sinh(_NODES))
WEIGHTS = _SPACING * np.pi * np.cosh(_NODES) * SHARES * expit(-np.pi * np.sinh(_NODES))
# Probabilities closer to 0 or 1 than this are moved here, where quantiles of every law are finite.
TAIL = 2.0**-53

# Numbers that `check_deviation` draws, and the largest gap allowed between their distribution function and that of the
# quantiles. A law that is right exceeds it with a probability of 2 exp(-2 * 2.5^2) < 1e-5 (Kolmogorov, Smirnov).
DRAWN, DISTANCE = (64, 64), 2.5 / 64


class Deviation(NamedTuple):
    """The law of a random number N of mean zero: how a continuum of environments varies around its mean.

    A strength is bias + heterogeneity * N, so heterogeneity is its standard deviation if N has variance one.

    Attributes:
        draw: (key, shape) -> independent float32 numbers; a function of jax, whose randomness comes from the key.
        quantile: probability -> F^-1(probability), for the integrals of the theory; a function of NumPy arrays in
            double precision. Its values at 0 and 1 bound the law and may be infinite.

    Example, the triangular law of a sum of two uniform numbers, which is used as `two_point` is:
        >>> from holdfast.sensing.environments import continuum
        >>> def draw(key, shape):
        ...     return jax.random.uniform(key, (2, *shape), jnp.float32, minval=-1, maxval=1).sum(0)
        >>> def quantile(probability):
        ...     centred = np.asarray(probability) - 0.5
        ...     return 2 * np.sign(centred) * (1 - np.sqrt(1 - 2 * np.abs(centred)))
        >>> triangular = functools.partial(continuum, Deviation(draw, quantile))
        >>> triangular(bias=1.0, heterogeneity=4.0).mean.tolist()
        [[1.0]]
    """

    draw: Callable[[jax.Array, tuple[int, ...]], jax.Array]
    quantile: Callable[[np.ndarray], np.ndarray]

    def __repr__(self) -> str:
        return f"Deviation({readable(self.draw)}, {readable(self.quantile)})"

    def expectation(self, function: Callable[[np.ndarray], np.ndarray]) -> float:
        """E f(N) = int_0^1 f(F^-1(u)) du by tanh-sinh quadrature on both sides of the median.

        Example:
            >>> round(NORMAL.expectation(np.square), 9)
            1.0
        """
        probability = np.clip(np.stack([SHARES / 2, 1 - SHARES / 2]), TAIL, 1 - TAIL)
        return float(np.sum(function(self.quantile(probability)) @ WEIGHTS) / 2)


UNIFORM = Deviation(
    lambda key, shape: jax.random.uniform(key, shape, jnp.float32, minval=-1, maxval=1),
    lambda probability: 2 * np.asarray(probability) - 1,
)
"""Uniform on (-1, 1)."""
NORMAL = Deviation(lambda key, shape: standard_normals(key, shape, jnp.float32), ndtri)
"""Standard normal."""


@functools.cache
def check_deviation(deviation: Deviation) -> None:
    """Raise a ValueError for what would pass silently and make a simulation or its theory wrong; once for each law.

    Example:
        >>> check_deviation(Deviation(jax.random.exponential, lambda probability: -np.log1p(-probability)))
        Traceback (most recent call last):
        ValueError: quantile of the deviation must have mean zero, got a mean of 1
    """
    if deviation in (UNIFORM, NORMAL):  # they are right, and the check takes a tenth of a second
        return
    probability = (np.arange(1024) + 0.5) / 1024
    with np.errstate(divide="ignore"):
        quantiles, ends = deviation.quantile(probability), deviation.quantile(np.array([0.0, 1.0]))
    contract = "quantile of the deviation must map a NumPy array of float64 to one like it"
    like = isinstance(quantiles, np.ndarray) and quantiles.dtype == float and quantiles.shape == probability.shape
    require(like, contract, f"{readable(type(quantiles))}, {jnp.result_type(quantiles)}{list(np.shape(quantiles))}")
    increasing = bool((np.diff(np.concatenate([ends[:1], quantiles, ends[1:]])) >= 0).all())  # NaN is not
    require(increasing, "quantile of the deviation must increase with the probability", "numbers that do not")
    # u F^-1(u) tends to 0 at both ends of a law that has a mean.
    depths = 2.0 ** -np.array([25, 50])
    tails = depths * np.abs(deviation.quantile(np.stack([depths, 1 - depths])))
    light = bool((tails[:, 1] <= tails[:, 0] / 2).all())
    require(light, "quantile of the deviation must have a mean", "tails as heavy as those of a Cauchy law")
    mean, size = deviation.expectation(np.asarray), deviation.expectation(np.abs)
    require(abs(mean) <= 1e-3 * size, "quantile of the deviation must have mean zero", f"a mean of {mean:.4g}")
    with jax.ensure_compile_time_eval():  # numbers, even where a program that uses the law is being traced
        keys = jax.random.split(jax.random.key(0, impl="threefry2x32"))
        numbers, others = np.asarray(jax.jit(jax.vmap(lambda key: deviation.draw(key, DRAWN)))(keys))
    contract = f"draw of the deviation must return finite numbers of the shape {DRAWN} asked for"
    require(numbers.shape == DRAWN, contract, f"shape {numbers.shape}")
    require(bool(np.isfinite(numbers).all()), contract, "numbers that are not finite")
    keyed = bool((numbers != others).any())
    require(keyed, "draw of the deviation must take its randomness from the key", "the same numbers for two keys")
    ordered, levels = np.sort(numbers, axis=None), quantiles.astype(numbers.dtype)
    below, up_to = (np.searchsorted(ordered, levels, side) / ordered.size for side in ("left", "right"))
    distance = float(max(np.max(below - probability), np.max(probability - up_to)))
    gap = f"distribution functions {distance:.2g} apart"
    require(distance <= DISTANCE, "draw and quantile of the deviation must be of one law", gap)
