import numpy as np
import pytest
from scipy.stats import CensoredData, chi2, ecdf

from holdfast.core.survival import event_rate, kaplan_meier


def test_the_rate_of_censored_exponential_times_is_found():
    """The interval covers the true rate in about 95 % of repetitions, although half of the times are cut off."""
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        times = random.exponential(100.0, 40)
        found = event_rate(np.minimum(times, 70), times < 70)
        covered += found.low <= 0.01 <= found.high
    assert covered / 400 == pytest.approx(0.95, abs=0.035)


def test_the_interval_is_that_of_garwood():
    found = event_rate(np.full(8, 5.0), [True] * 3 + [False] * 5)
    assert found.low == pytest.approx(chi2.ppf(0.025, 6) / 80)
    assert found.high == pytest.approx(chi2.ppf(0.975, 8) / 80)


def test_no_event_still_bounds_the_rate():
    found = event_rate([1000.0] * 10, [False] * 10)
    assert found.value == found.low == 0
    assert found.high == pytest.approx(-np.log(0.025) / 10_000)
    assert event_rate([], []).high == np.inf


# scipy leaves the interval undefined where the share is 0 or 1.
@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
def test_kaplan_meier_agrees_with_scipy():
    random = np.random.default_rng(1)
    times, ends = random.exponential(1.0, 60).round(2), random.exponential(1.5, 60).round(2)
    happened, waited = times <= ends, np.minimum(times, ends)
    reference = ecdf(CensoredData.right_censored(waited, ~happened)).sf
    found = kaplan_meier(waited, happened)
    np.testing.assert_allclose(found.share, reference.evaluate(found.times), atol=1e-12)
    interval = reference.confidence_interval(method="log-log")
    inner = (found.share < 1) & (found.share > 0)
    np.testing.assert_allclose(found.low[inner], interval.low.evaluate(found.times[inner]), atol=1e-6)
    np.testing.assert_allclose(found.high[inner], interval.high.evaluate(found.times[inner]), atol=1e-6)


def test_without_events_all_survive():
    found = kaplan_meier([3.0, 4.0], [False, False])
    assert found.times.tolist() == [0.0]
    assert found.share.tolist() == [1.0]
