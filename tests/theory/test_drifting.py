import numpy as np
import pytest

from holdfast.environments import gaussian
from holdfast.theory.drifting import drifting_share
from holdfast.theory.finite_time import log_share

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


def test_correlation_is_checked():
    with pytest.raises(ValueError, match=r"correlation must be a number from 0 to below 1, got 1\.0"):
        drifting_share(1.0, 5.0, **SETTING, correlation=1.0)
