"""Growth rates of a small spurious signal: Lyapunov exponents of random products of I + eta S(e)."""

from dataclasses import replace

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from holdfast.core.statistics import NORMAL_QUANTILE, Estimate
from holdfast.sensing.environments import Environments, FiniteEnvironments
from holdfast.theory.logarithm import TINY, mean_logarithm
from holdfast.theory.strengths import commuting, diagonal_entries, diagonalised, possible, strength_atoms

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
