import numpy as np
import pytest
from scipy.stats import binom

from holdfast.sensing.environments import gaussian, table, two_point, uniform
from holdfast.theory.finite_time import log_share, median_share, saturated
from holdfast.theory.lyapunov import exponents


def test_two_strengths_give_a_binomial_law():
    step_size, steps, init_scale = 0.05, 200, 1e-3
    law = log_share(two_point(1.0, 5.0), step_size, steps, init_scale)
    ups = binom.ppf([0.1, 0.25, 0.5, 0.75, 0.9], steps, 0.5)
    expected = 2 * (np.log(init_scale) + ups * np.log(1.3) + (steps - ups) * np.log(0.8))
    assert law.quantile([0.1, 0.25, 0.5, 0.75, 0.9]) == pytest.approx(expected, abs=0.02)
    assert law.deviation == pytest.approx(np.log(1.3 / 0.8) * np.sqrt(steps), rel=1e-4)


def test_a_continuum_has_the_quantiles_of_simulated_sums():
    """20,000 sums: the share below a quantile p has the standard error sqrt(p (1 - p) / n); four are allowed."""
    count, steps, step_size = 20_000, 60, 0.1
    random = np.random.default_rng(0)
    factors = 1 + step_size * (1 + 10 * random.standard_normal((count, steps)))
    sums = 2 * np.log(np.abs(factors)).sum(1)
    law = log_share(gaussian(1.0, 10.0), step_size, steps, 1.0)
    for p in (0.05, 0.5, 0.95):
        assert np.mean(sums <= law.quantile(p)) == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / count))
    assert law.above(np.exp(np.quantile(sums, 0.9))) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / count))


def test_one_environment_has_no_spread():
    law = log_share(table([2.0]), 0.1, 10, 0.5)
    assert law.deviation == 0
    assert law.quantile(0.3) == pytest.approx(2 * (np.log(0.5) + 10 * np.log(1.2)))


def test_median_share_follows_the_reference_table():
    """Simulated medians without sampling error (population, 20,000 seeds) were 0.95, 0.76, 0.0025 and 1.2e-5."""
    found = [median_share(two_point(1.0, m), 0.05, 200, 1e-3) for m in (1.0, 2.0, 5.0, 6.0)]
    assert found == pytest.approx([0.95, 0.76, 0.0025, 1.2e-5], rel=0.2)


def test_saturation_keeps_small_shares_and_bounds_large_ones():
    assert saturated(1e-6, 0.5) == pytest.approx(1e-6, rel=1e-5)
    assert saturated(1e30, 0.5) == pytest.approx(0.5)


def test_negative_steps_are_refused():
    with pytest.raises(ValueError, match="steps must be"):
        log_share(two_point(1.0, 5.0), 0.05, -1, 1e-3)


@pytest.mark.parametrize("law", [gaussian(1.0, 6.0), uniform(1.0, 6.0)], ids=["gaussian", "uniform"])
@pytest.mark.parametrize("step_size", [0.05, 0.3])
def test_the_mean_is_that_of_the_exact_exponent_however_long_the_run(law, step_size):
    steps = 10_000
    found = log_share(law, step_size, steps, 1e-3)
    assert found.mean == pytest.approx(2 * (np.log(1e-3) + steps * exponents(law, step_size)[0]))
