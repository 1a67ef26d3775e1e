"""Growth rates of a small signal: Lyapunov exponents of random products of I + eta S(e), and of the effects of a table.

An exponent is a mean logarithm E log|c + b N| of a random factor: closed forms, and quadrature for any other law.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from holdfast.algorithms.losses.slopes import FLOOR, LARGEST_FACTOR
from holdfast.core.statistics import NORMAL_QUANTILE, Estimate
from holdfast.sensing.deviations import NORMAL, SHARES, TAIL, UNIFORM, WEIGHTS, Deviation
from holdfast.sensing.environments import Environments, FiniteEnvironments
from holdfast.theory.strengths import commuting, diagonal_entries, diagonalised, possible, strength_atoms

# Beyond this ratio of centre to spread the asymptotic series of E log|c + b N| is exact to rounding, and fast.
FAR = 20.0
TINY = np.finfo(float).tiny


def mean_logarithm(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| for N of the law `deviation`, in closed form for the uniform and the normal law.

    Args:
        deviation: the law of N.
        centre: c.
        spread: b, not negative.

    Example, E log|N| of a standard normal N is -(log 2 + Euler's constant) / 2:
        >>> float(mean_logarithm(NORMAL, 0.0, 1.0).round(6))
        -0.635181
    """
    centre, spread = np.broadcast_arrays(np.asarray(centre, float), np.asarray(spread, float))
    with np.errstate(divide="ignore"):
        result = np.array(np.log(np.abs(centre)))
    random = spread > 0
    if deviation in CLOSED_FORMS:  # of symmetric laws, for which the sign of c does not matter
        result[random] = CLOSED_FORMS[deviation](np.abs(centre[random]), spread[random])
    else:
        result[random] = quadrature(deviation, centre[random], spread[random])
    return result


def quadrature(deviation: Deviation, centre: ArrayLike, spread: ArrayLike) -> np.ndarray:
    """E log|c + b N| = int_0^1 log|c + b F^-1(u)| du by tanh-sinh quadrature, for all c and b at once.

        u = a + (b - a) / (1 + exp(-pi sinh t)) on each piece [a, b],    trapezoidal rule in t

    The nodes crowd at the ends of a piece, where singularities therefore do no harm. The pieces end at the pole of the
    logarithm, c + b F^-1(u) = 0, and at the median, where quantile functions that are written in two halves join.

    Reference: H. Takahasi, M. Mori, Publ. RIMS 9 (1974).
    """
    centre, spread = np.broadcast_arrays(*(np.asarray(value, float)[..., None] for value in (centre, spread)))

    def argument(probability: np.ndarray) -> np.ndarray:
        return centre + spread * deviation.quantile(np.clip(probability, TAIL, 1 - TAIL))

    low, high = np.zeros(centre.shape), np.ones(centre.shape)
    for _ in range(54):  # halvings of [0, 1] down to its rounding error
        pole = (low + high) / 2
        below = argument(pole) < 0
        low, high = np.where(below, pole, low), np.where(below, high, pole)
    ends = np.sort(np.concatenate([np.zeros(pole.shape), pole, np.full(pole.shape, 0.5), np.ones(pole.shape)], -1), -1)
    total = np.zeros(centre.shape[:-1])
    for begin, length in zip(np.moveaxis(ends, -1, 0), np.moveaxis(np.diff(ends), -1, 0), strict=False):
        values = np.abs(argument(begin[..., None] + length[..., None] * SHARES))
        total += length * (np.log(np.maximum(values, TINY)) @ WEIGHTS)
    return total


def _uniform_logarithm(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """(F(c + b) - F(c - b)) / (2 b) with F(x) = x log|x| - x."""

    def primitive(x: np.ndarray) -> np.ndarray:
        return x * np.log(np.maximum(np.abs(x), TINY)) - x

    exact = (primitive(centre + spread) - primitive(centre - spread)) / (2 * spread)
    ratio = np.minimum(spread / np.maximum(centre, TINY), 1.0)
    series = np.log(np.maximum(centre, TINY)) - ratio**2 / 6 - ratio**4 / 20
    # The difference cancels when the spread is small; the series does not.
    return np.where(ratio < 1e-3, series, exact)


def _normal_logarithm(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Half the logarithm of a non-central chi-square, which is a Poisson mixture of central ones.

    E log|c + b N| = log b + 1/2 (log 2 + sum_j Poisson(j; a^2 / 2) digamma(j + 1/2)),   a = c / b
    """
    ratio = centre / spread
    near, far = np.minimum(ratio, FAR), np.maximum(ratio, FAR)
    j = np.arange(int(FAR**2 / 2 + 12 * FAR))
    rate = np.maximum(near[..., None] ** 2 / 2, 1e-300)
    mixture = np.exp(j * np.log(rate) - rate - gammaln(j + 1)) @ digamma(j + 0.5)
    # E N^2k = (2k - 1)!!, so E log(1 + N / a) = -sum_k (2k - 1)!! / (2k a^2k)
    moments = np.cumprod([1.0, 3.0, 5.0, 7.0, 9.0])
    series = -sum(moment / (2 * k * far ** (2 * k)) for k, moment in enumerate(moments, 1))
    return np.log(spread) + np.where(ratio < FAR, 0.5 * (np.log(2) + mixture), np.log(far) + series)


CLOSED_FORMS: dict[Deviation, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    UNIFORM: _uniform_logarithm,
    NORMAL: _normal_logarithm,
}


# The first of this many parts of a chain, in which the frame settles on its directions, is not counted.
WARM_UP = 10


def two_point_exponent(step_size: ArrayLike, bias: ArrayLike, heterogeneity: ArrayLike) -> np.ndarray:
    """Lyapunov exponent of a spurious direction with strengths bias -+ heterogeneity.

    While it is small the direction is multiplied by 1 + eta xi in each step, so its size grows or dies at the rate

        lambda = E log|1 + eta xi| = 1/2 log|(1 + eta s)^2 - (eta M)^2|

    Args:
        step_size: eta.
        bias: s, mean of the strengths.
        heterogeneity: M, their spread.

    Example:
        >>> float(two_point_exponent(0.05, 1.0, 5.0)) > 0 > float(two_point_exponent(0.05, 1.0, 7.0))
        True
    """
    step_size, bias, heterogeneity = (np.asarray(x, float) for x in (step_size, bias, heterogeneity))
    with np.errstate(divide="ignore"):  # a factor of zero kills the direction at once: the exponent is -inf
        return 0.5 * np.log(np.abs((1 + step_size * bias) ** 2 - (step_size * heterogeneity) ** 2))


def two_point_threshold(step_size: ArrayLike, bias: ArrayLike, exponent: ArrayLike = 0.0) -> np.ndarray:
    """The heterogeneity at which the exponent is zero, or another wanted number; NaN where there is none.

        M = sqrt((1 + eta s)^2 - e^(2 lambda)) / eta

    Example:
        >>> float(two_point_threshold(0.05, 1.0).round(2))
        6.4
    """
    step_size, bias, exponent = (np.asarray(x, float) for x in (step_size, bias, exponent))
    with np.errstate(invalid="ignore"):
        return np.sqrt((1 + step_size * bias) ** 2 - np.exp(2 * exponent)) / step_size


def exponents(environments: Environments, step_size: ArrayLike) -> np.ndarray:
    """The exponent lambda = E log|1 + eta xi| of each spurious direction, for strengths that commute.

    A closed form for finitely many environments, uniform and normal strengths; quadrature for any other continuum.

    Args:
        environments: the law of S(e); diagonal, or with one eigenbasis in all environments.
        step_size: eta, one or many.

    Returns:
        Of the shape of `step_size`, with a last axis of r2 directions.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> exponents(two_point(1.0, 6.0), [0.05, 0.1]).round(4).tolist()
        [[0.0062], [-0.0813]]
    """
    diagonal = commuting(environments)
    eta = np.asarray(step_size, float)[..., None]
    if isinstance(diagonal, FiniteEnvironments):
        found = possible(diagonal)
        with np.errstate(divide="ignore"):
            logarithms = np.log(np.abs(1 + eta[..., None] * diagonal_entries(found.strengths).T))
        return logarithms @ np.asarray(found.probabilities)
    centre = 1 + eta * diagonal_entries(diagonal.location)
    return mean_logarithm(diagonal.deviation, centre, eta * diagonal_entries(diagonal.scale))


def growth_in_words(exponent: float) -> str:
    """How a small signal changes, in words.

    Example:
        >>> growth_in_words(-0.01)
        'shrinks by 1 % a step'
    """
    percent = float(f"{100 * abs(np.expm1(exponent)):.2g}")  # two digits, and no power of ten for large ones
    return f"{'shrinks' if exponent < 0 else 'grows'} by {percent:g} % a step"


def top_exponent(environments: Environments, step_size: float, **products: int) -> Estimate:
    """The largest exponent, which decides: exact where strengths commute, otherwise estimated with an interval.

    Args:
        environments: the law of S(e).
        step_size: eta.
        products: steps, chains and seed of `matrix_exponents`.

    Example, (log(1 + 7 eta) + log(1 - 5 eta)) / 2 at eta = 0.1:
        >>> from holdfast.sensing.environments import two_point
        >>> round(top_exponent(two_point(1.0, 6.0), 0.1).value, 4)
        -0.0813
    """
    if diagonalised(environments) is None:
        return matrix_exponents(environments, step_size, **products)[0]
    largest = float(exponents(environments, step_size).max())
    return Estimate(largest, largest, largest)


def matrix_exponents(
    environments: Environments, step_size: float, *, steps: int = 2000, chains: int = 64, seed: int = 0
) -> tuple[Estimate, ...]:
    """The exponents of the random product of I + eta S(e), largest first, each with an interval of 95 %.

    An orthonormal frame is carried along by each chain of matrices; the logarithms of the diagonal of R in its QR
    decompositions, averaged over steps, are the exponents. The chains are independent, so their spread is the error.

    Args:
        environments: the law of S(e), any symmetric matrices.
        step_size: eta.
        steps: length of a chain; its first tenth, in which the frame settles on its directions, is not counted.
        chains: number of independent products.
        seed: of the environments drawn.

    Example, strengths that do not vary have the exponent log(1 + eta s):
        >>> from holdfast.sensing.environments import two_point
        >>> (found,) = matrix_exponents(two_point(1.0, 0.0), 0.1, steps=10, chains=2)
        >>> round(found.value, 4), round(float(np.log(1.1)), 4)
        (0.0953, 0.0953)
    """
    return product_exponents(draw_strengths(environments, steps=steps, chains=chains, seed=seed), step_size)


def draw_strengths(environments: Environments, *, steps: int, chains: int, seed: int = 0) -> np.ndarray:
    """Strength matrices of independent environments, (steps, chains, r2, r2)."""
    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), steps * chains)
    drawn = np.asarray(jax.jit(jax.vmap(environments.draw))(keys), float)
    return drawn.reshape(steps, chains, environments.rank, environments.rank)


def product_exponents(strengths: np.ndarray, step_size: float) -> tuple[Estimate, ...]:
    """As `matrix_exponents`, from strengths that were drawn before, (steps, chains, r2, r2)."""
    steps, chains, rank, _ = strengths.shape
    if steps < 2 or chains < 2:
        raise ValueError(f"steps and chains must be at least 2 for an interval, got {steps} and {chains}")
    warm_up = steps // WARM_UP
    frame = np.broadcast_to(np.eye(rank), (chains, rank, rank))
    total = np.zeros((chains, rank))
    for step, factor in enumerate(np.eye(rank) + step_size * strengths):
        frame, triangle = np.linalg.qr(factor @ frame)
        if step >= warm_up:
            # A singular factor gives a very negative exponent instead of -inf - inf.
            total += np.log(np.maximum(np.abs(np.diagonal(triangle, axis1=1, axis2=2)), TINY))
    means = total / (steps - warm_up)
    half = NORMAL_QUANTILE * means.std(0, ddof=1) / np.sqrt(chains)
    found = [Estimate(float(m), float(m - h), float(m + h)) for m, h in zip(means.mean(0), half, strict=True)]
    return tuple(sorted(found, reverse=True))


def largest_product_exponents(strengths: np.ndarray, step_sizes: np.ndarray) -> np.ndarray:
    """The largest exponent at each of many step sizes, from one set of draws, so that the curve is smooth.

    Single vectors replace the frame of `product_exponents`. Each aligns with the direction that grows fastest
    among those it can reach; starting from every axis, one of them reaches the fastest of all.

    Args:
        strengths: (steps, chains, r2, r2).
        step_sizes: eta, (sizes,).
    """
    steps, chains, rank, _ = strengths.shape
    warm_up = steps // WARM_UP
    vectors = np.broadcast_to(np.repeat(np.eye(rank), len(step_sizes), 1), (chains, rank, rank * len(step_sizes)))
    eta = np.tile(step_sizes, rank)
    total = np.zeros(len(eta))
    for step, strength in enumerate(strengths):
        vectors = vectors + eta * (strength @ vectors)
        lengths = np.maximum(np.sqrt(np.square(vectors).sum(1, keepdims=True)), TINY)
        vectors = vectors / lengths
        if step >= warm_up:
            total += np.log(lengths[:, 0]).mean(0)
    return total.reshape(rank, -1).max(0) / (steps - warm_up)


def with_restoring_force(environments: Environments, share: float) -> Environments:
    """The environments that act on a direction of which a share c has been learned: strengths S(e) - c I.

    What has been learned pulls back: the step is q <- q (1 + eta (xi - q^2)). With q^2 replaced by its mean c, the
    exponent of these environments is the growth rate under the mean restoring force.
    """
    shift = share * np.eye(environments.rank)
    if isinstance(environments, FiniteEnvironments):
        return replace(environments, strengths=np.asarray(environments.strengths, float) - shift)
    return replace(environments, location=np.asarray(environments.location, float) - shift)


def stationary_shares(environments: Environments, step_size: float) -> np.ndarray:
    """The share of each spurious direction that survives HeteroSGD in the long run, under the mean restoring force.

    log q^2 has no drift in the long run, so E log|1 + eta (xi - q^2)| = 0. With q^2 replaced by the mean share c
    the equation is solved for c; for strengths s -+ M it is c = s - (sqrt(1 + (eta M)^2) - 1) / eta. Zero where the
    exponent is negative, NaN where no share restores the balance.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> stationary_shares(two_point(1.0, 5.0), 0.05).round(3).tolist()
        [0.384]
    """

    def growth(share: float, direction: int) -> float:
        return float(exponents(with_restoring_force(environments, share), step_size)[direction])

    shares = []
    for direction, exponent in enumerate(exponents(environments, step_size)):
        strengths, weights = strength_atoms(environments, direction)
        mean = float(strengths @ weights)
        if exponent <= 0:
            shares.append(0.0)
        elif mean <= 0 or growth(mean, direction) > 0:
            shares.append(np.nan)
        else:
            shares.append(float(brentq(growth, 0, mean, args=(direction,))))
    return np.array(shares)


def effect_exponents(step_size: ArrayLike, gradients: ArrayLike) -> np.ndarray:
    """Lyapunov exponents of u and v under the gradients of the environments, visited equally often.

        lambda_j^+ = mean over e of log(1 - eta G_ej)    (of u_j)
        lambda_j^- = mean over e of log(1 + eta G_ej)    (of v_j)

    with factors cut off at `FLOOR` and `LARGEST_FACTOR`, as the steps of `holdfast.algorithms.hadamard` cut them: one
    step may at most remove or double a factor.

    To second order lambda^+- = -+ eta g_j - eta^2 / 2 (g_j^2 + Var_e G_ej): the mean effect drives one of the two, the
    variation holds both back. A feature is washed out when both are negative, that is when

        eta (1 + k)^2 Var_e(g_ej) > 2 |g_j|

    which is why eta (1 + k)^2, the `washing strength`, decides what survives, and not eta and k by themselves.

    Args:
        step_size: eta.
        gradients: (environments, ...), G, amplified.

    Returns:
        (2, ...): the exponents of u and of v.

    Example, an effect that stays and one that varies more than it is large:
        >>> exponents = effect_exponents(0.5, np.array([[-0.1, -1.1], [-0.1, 0.9]]))
        >>> (exponents.max(0) > 0).tolist()
        [True, False]
    """
    change = np.asarray(step_size) * np.asarray(gradients, float)
    # A factor that would be removed ends at the floor of the algorithm: its logarithm stays finite.
    return np.stack([np.log(np.clip(1 + sign * change, FLOOR, LARGEST_FACTOR)).mean(0) for sign in (-1, 1)])


def washing_strength(mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    """The smallest eta (1 + k)^2 that washes out an effect of this mean and variance over environments: 2 |g| / Var g.

    Example:
        >>> float(washing_strength(0.5, 0.01))
        100.0
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, 2 * np.abs(mean) / variance, np.inf)
