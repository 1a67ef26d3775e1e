import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from holdfast.sensing.environments import gaussian
from holdfast.theory.finite_time import log_share
from holdfast_studies.questions.drifting import drifting_share

SETTING = {"step_size": 0.05, "steps": 200, "init_scale": 1e-3}


def test_without_memory_it_is_the_finite_time_law():
    exact = log_share(gaussian(1.0, 4.0), **SETTING)
    found = drifting_share(1.0, 4.0, **SETTING, correlation=0.0)
    assert found.mean == pytest.approx(exact.mean)
    assert found.deviation == pytest.approx(exact.deviation, rel=0.01)


@pytest.mark.parametrize("correlation", [0.5, 0.9, 0.97])
def test_mean_and_deviation_are_those_of_simulated_sequences(correlation):
    random, runs = np.random.default_rng(0), 4000
    normal, total = random.standard_normal(runs), np.full(runs, 2 * np.log(1e-3))
    for _ in range(200):
        total += 2 * np.log(np.abs(1 + 0.05 * (1.0 + 5.0 * normal)))
        normal = correlation * normal + np.sqrt(1 - correlation**2) * random.standard_normal(runs)
    found = drifting_share(1.0, 5.0, **SETTING, correlation=correlation)
    assert found.mean == pytest.approx(total.mean(), abs=4 * found.deviation / np.sqrt(runs))
    # The standard deviation of a standard deviation is 1 / sqrt(2 n) for a normal law; this one has a longer left tail.
    assert found.deviation == pytest.approx(total.std(), rel=6 / np.sqrt(2 * runs))


@pytest.mark.parametrize("heterogeneity", [2.0, 16.0, 20.0, 60.0])
def test_one_step_has_the_deviation_of_the_logarithm(heterogeneity):
    """By adaptive quadrature on both sides of the pole."""
    pole, density = -1.05 / (0.05 * heterogeneity), norm.pdf

    def expected(function):
        pieces = [(-12, pole), (pole, 12)] if pole > -12 else [(-12, 12)]
        logarithm = lambda z: np.log(abs(1.05 + 0.05 * heterogeneity * z))  # noqa: E731
        return sum(quad(lambda z: function(logarithm(z)) * density(z), *ends, limit=200)[0] for ends in pieces)

    mean = expected(lambda value: value)
    found = drifting_share(1.0, heterogeneity, 0.05, 1, 1e-3, correlation=0.9)
    assert found.deviation == pytest.approx(2 * np.sqrt(expected(lambda value: (value - mean) ** 2)), rel=1e-6)


@pytest.mark.parametrize("correlation", [0.9, 0.999])
def test_strong_heterogeneity_remembers_in_all_degrees(correlation):
    """40,000 sequences of 50 strengths that change sign; four errors of the standard deviation, by its kurtosis."""
    random, runs, steps = np.random.default_rng(1), 40_000, 50
    normal, total = random.standard_normal(runs), np.zeros(runs)
    for _ in range(steps):
        total += 2 * np.log(np.abs(1 + 0.05 * (1.0 + 20.0 * normal)))
        normal = correlation * normal + np.sqrt(1 - correlation**2) * random.standard_normal(runs)
    found = drifting_share(1.0, 20.0, 0.05, steps, 1.0, correlation=correlation)
    centred = total - total.mean()
    error = np.sqrt((np.mean(centred**4) / np.mean(centred**2) ** 2 - 1) / (4 * runs))
    assert found.deviation == pytest.approx(total.std(), rel=4 * error)


def test_correlation_is_checked():
    with pytest.raises(ValueError, match=r"correlation must be a number from 0 to below 1, got 1\.0"):
        drifting_share(1.0, 5.0, **SETTING, correlation=1.0)
