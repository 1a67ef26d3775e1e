"""Laplace strengths of unit variance, so that heterogeneity is their standard deviation, as for `gaussian`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import exp1, expi

import holdfast as hf
from holdfast.sensing.environments import Deviation, Law, continuum
from holdfast.theory.diagnosis import Region
from holdfast_studies.findings.phase import phase_diagram


def draw(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jax.random.laplace(key, shape, jnp.float32) / jnp.sqrt(jnp.float32(2))


def quantile(probability: np.ndarray) -> np.ndarray:
    centred = probability - 0.5
    with np.errstate(divide="ignore"):  # the quantiles at 0 and 1 are infinite
        return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / np.sqrt(2)


laplace: Law = functools.partial(continuum, Deviation(draw, quantile))


def closed_form(bias: float, heterogeneity: float, step_size: float) -> float:
    """E log|1 + eta xi|: it solves f - f'' = log|a|, where a is the mean of 1 + eta xi over its Laplace scale."""
    centre = 1 + step_size * bias
    a = centre / (step_size * heterogeneity / np.sqrt(2))
    return float(np.log(centre) + (np.exp(a) * exp1(a) - np.exp(-a) * expi(a)) / 2)


def test_exponent_is_the_mean_logarithm() -> None:
    deviations = np.random.default_rng(0).laplace(scale=1 / np.sqrt(2), size=1_000_000)
    for heterogeneity, rank in ((2.0, 2), (6.0, 1)):
        exponents = hf.diagnose(laplace(1.0, heterogeneity, rank=rank, shared=False), step_size=0.08).exponents
        logs = np.log(np.abs(1 + 0.08 * (1 + heterogeneity * deviations)))
        assert np.all(np.abs(exponents - logs.mean()) < 4 * logs.std() / 1e3)  # 4 standard errors
        assert np.allclose(exponents, closed_form(1.0, heterogeneity, 0.08), atol=1e-9)  # quadrature: 1e-13 was seen


def test_swept_simulation_follows_the_law_of_the_share() -> None:
    levels = (2.0, 6.0)
    settings = hf.Settings(dimension=6, heterogeneity=levels, steps=40, seeds=256, oracle="population")
    final = hf.simulate(settings, environments=laplace).final["spurious"]
    for level in levels:
        share = hf.diagnose(laplace(1.0, level), steps=40).log_share
        assert share is not None  # the strengths commute
        error = np.log(final.sel(heterogeneity=level).values).mean() - share.mean
        assert abs(error) < 4 * share.deviation / 16  # 4 standard errors of 256 seeds; shares stay small in 40 steps


def test_more_heterogeneity_washes_out_in_the_plane() -> None:
    regions = phase_diagram("step_size", laplace, cells=4, seeds=5)["region"].isel(step_size=1)  # eta = 0.037
    assert regions.values[0] == Region.BOTH  # heterogeneity 0: nothing oscillates
    assert regions.values[-1] == Region.INVARIANT_ONLY  # heterogeneity 12, where the exponent is negative:
    assert closed_form(1.0, 12.0, float(regions["step_size"])) < 0
