import numpy as np
import pytest

from holdfast.core.statistics import FEW_VALUES, bootstrap, exact_proportion, mean_interval, median


@pytest.mark.parametrize("count", [6, 15, 100])
def test_median_interval_covers_as_promised(count):
    """Over 4000 samples of a skewed law the interval covers the median at least 95 % of the time (less 4 errors)."""
    random = np.random.default_rng(0)
    samples = np.exp(3 * random.standard_normal((4000, count)))
    intervals = [median(sample) for sample in samples]
    coverage = np.mean([low <= 1 <= high for _, low, high in intervals])
    assert coverage > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_too_few_values_have_no_interval():
    with pytest.raises(ValueError, match="at least 6 values, got 5"):
        median(np.arange(5))
    assert median(np.arange(6)).low == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((8, 3)), r"values must have one dimension, one number per seed, got the shape \(8, 3\)"),
        ([1, 2, 3, 4, 5, 6, np.nan], "values must not be NaN, got 1 of 7"),
    ],
)
def test_a_median_is_of_one_number_per_seed(values, message):
    with pytest.raises(ValueError, match=message):
        median(values)


def test_bootstrap_of_a_mean_has_the_width_of_its_standard_error():
    values = np.random.default_rng(1).standard_normal((400, 1))
    estimate = bootstrap(values, np.mean)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    assert estimate == bootstrap(values, np.mean)


@pytest.mark.parametrize("count", [2, 4, FEW_VALUES - 1])
def test_intervals_of_few_means_cover_as_promised(count):
    """Over 2000 normal samples 95 % of the intervals hold the mean, give or take four standard errors."""
    samples = np.random.default_rng(0).standard_normal((2000, count))
    covered = np.mean([low <= 0 <= high for _, low, high in map(mean_interval, samples)])
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 2000))


def test_the_bootstrap_of_four_values_is_too_narrow():
    """Which is why few values get Student's interval."""
    samples = np.random.default_rng(0).standard_normal((500, 4))
    assert np.mean([low <= 0 <= high for _, low, high in (bootstrap(each, np.mean) for each in samples)]) < 0.88


def test_many_values_are_resampled_and_one_value_has_no_interval():
    values = np.random.default_rng(0).standard_normal(FEW_VALUES)
    assert mean_interval(values) == bootstrap(values, np.mean)
    assert mean_interval([3.0]) == (3.0, -np.inf, np.inf)


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (10, 10), (3, 7), (735, 736)])
def test_exact_proportions_are_those_of_scipy(successes, count):
    from scipy.stats import binomtest

    interval = binomtest(successes, count).proportion_ci(0.95, method="exact")
    found = exact_proportion(successes, count)
    assert found == pytest.approx((successes / count, interval.low, interval.high), abs=1e-12)
