import numpy as np
import pytest

from holdfast.statistics import bootstrap, median


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


def test_bootstrap_of_a_mean_has_the_width_of_its_standard_error():
    values = np.random.default_rng(1).standard_normal((400, 1))
    estimate = bootstrap(values, np.mean)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    assert estimate == bootstrap(values, np.mean)
