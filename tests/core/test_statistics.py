import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import CensoredData, alexandergovern, chi2, ecdf, sem, t

from holdfast.core.statistics import (
    FEW_VALUES,
    bootstrap,
    detectable_spread,
    event_rate,
    exact_proportion,
    kaplan_meier,
    largest_spread,
    mean_interval,
    median,
    random_effects,
)


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


def _by_hand(b, s):
    """The formulas of DerSimonian and Laird, one effect at a time."""
    w = [1 / each**2 for each in s]
    centre = sum(x * y for x, y in zip(w, b, strict=True)) / sum(w)
    q = sum(x * (y - centre) ** 2 for x, y in zip(w, b, strict=True))
    tau2 = max(0.0, (q - (len(b) - 1)) / (sum(w) - sum(x**2 for x in w) / sum(w)))
    v = [1 / (each**2 + tau2) for each in s]
    return sum(x * y for x, y in zip(v, b, strict=True)) / sum(v), np.sqrt(tau2), max(0.0, 1 - (len(b) - 1) / q)


def test_the_formulas_of_the_textbook():
    random = np.random.default_rng(0)
    s = random.uniform(0.2, 1.0, (7, 5))
    b = random.standard_normal((7, 5)) * [0.0, 0.5, 1.0, 2.0, 4.0] + s * random.standard_normal((7, 5))
    b[3, 2] = s[3, 2] = np.nan  # one environment does not measure one of the effects
    found = random_effects(b, s)
    for column in range(5):
        own = ~np.isnan(b[:, column])
        expected = _by_hand(b[own, column], s[own, column])
        np.testing.assert_allclose([part[column] for part in found[:1] + found[2:4]], expected, atol=1e-12)
    assert found.measured.tolist() == [7, 7, 6, 7, 7]


def test_the_test_is_that_of_alexander_and_govern():
    """Means of groups of rows; scipy approximates the quantiles of Student's law, to four digits or so."""
    random = np.random.default_rng(1)
    groups = [shift + scale * random.standard_normal(n) for shift, scale, n in ((0, 1, 9), (0.9, 3, 14), (0.4, 2, 30))]
    b, s = (np.array([[part(each)] for each in groups]) for part in (np.mean, sem))
    found = random_effects(b, s, np.array([[8.0], [13.0], [29.0]]))
    assert found.significance[0] == pytest.approx(alexandergovern(*groups).pvalue, rel=1e-3)


@pytest.mark.parametrize(("environments", "rows"), [(300, 10), (300, 6), (100, 10), (10, 10), (3, 10), (300, 30)])
def test_the_test_of_equality_has_its_size_with_many_small_environments(environments, rows):
    """4,000 draws; within 4 standard errors, 0.014. Welch's test rejects 16 % with 300 environments of 10 rows."""
    random = np.random.default_rng(environments + rows)
    shape = (environments, 4000)
    scale = np.exp(0.5 * random.standard_normal((environments, 1)))
    b = scale * random.standard_normal(shape)
    s = scale * np.sqrt(random.chisquare(rows - 1, shape) / (rows - 1))
    found = random_effects(b, s, np.full(shape, rows - 1.0))
    assert abs(np.mean(found.significance < 0.05) - 0.05) < 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_one_environment_is_its_own_mean_and_none_is_not_a_number():
    found = random_effects(np.array([[2.0, np.nan]]), np.array([[0.5, np.nan]]))
    assert [part[0] for part in found] == [2.0, 0.5, 0.0, 0.0, 1.0, 1]
    assert np.isnan([part[1] for part in found[:5]]).all()


@pytest.mark.parametrize("environments", [4, 12, 40])
@pytest.mark.parametrize("between", [0.0, 0.5, 2.0])
def test_intervals_of_the_mean_cover_it(environments, between):
    """4,000 draws; errors with 30 degrees of freedom. At least 95 % within 4 standard errors, 0.014."""
    random = np.random.default_rng(environments)
    shape = (environments, 4000)
    s = np.geomspace(0.5, 2, environments)[:, None]
    b = 1 + between * random.standard_normal(shape) + s * random.standard_normal(shape)
    found = random_effects(b, s * np.sqrt(random.chisquare(30, shape) / 30), np.full(shape, 30.0))
    covered = np.mean(np.abs(found.mean - 1) <= t.isf(0.025, found.degrees) * found.error)
    assert covered > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 4000)
    if between == 0:
        assert abs(np.mean(found.significance < 0.05) - 0.05) < 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_the_largest_spread_solves_its_equation():
    random = np.random.default_rng(0)
    s = random.uniform(0.2, 1.0, (9, 4))
    b = 2 * random.standard_normal((9, 4))
    b[2, 1] = np.nan

    def excess(between, column):
        own = ~np.isnan(b[:, column])
        weights, values = 1 / (s[own, column] ** 2 + between**2), b[own, column]
        return weights @ (values - np.average(values, weights=weights)) ** 2 - chi2.ppf(0.05, own.sum() - 1)

    expected = [brentq(excess, 0, 100, args=(column,), xtol=1e-12) for column in range(4)]
    np.testing.assert_allclose(largest_spread(b, s), expected, rtol=1e-8)
    # what does not vary enough to exclude anything, and what is measured once or never
    b = np.array([[1.0, 1.0, np.nan], [1.0, np.nan, np.nan]])
    found = largest_spread(b, np.ones((2, 3)))
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("environments", [3, 10, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_largest_spread_is_below_the_true_one_as_often_as_it_may(environments, confidence):
    """4,000 draws with errors that are known: exact, so that the share is within 4 standard errors."""
    random = np.random.default_rng(environments)
    shape = (environments, 4000)
    s = np.geomspace(0.5, 2, environments)[:, None] * np.ones(shape)
    b = 1 + 0.7 * random.standard_normal(shape) + s * random.standard_normal(shape)
    covered = np.mean(largest_spread(b, s, confidence) >= 0.7)
    assert abs(covered - confidence) < 4 * np.sqrt(confidence * (1 - confidence) / 4000)


@pytest.mark.parametrize("environments", [3, 10, 40])
@pytest.mark.parametrize("level", [0.05, 0.001])
def test_a_detectable_spread_is_detected_in_four_of_five_cases(environments, level):
    """4,000 draws with equal errors: exact, so that the share is within 4 standard errors, 0.025."""
    random = np.random.default_rng(environments)
    shape = (environments, 4000)
    s = np.full(shape, 0.3)
    spread = detectable_spread(s, level)
    b = spread * random.standard_normal(shape) + s * random.standard_normal(shape)
    power = np.mean(random_effects(b, s).significance < level)
    assert abs(power - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 4000)
    assert np.isnan(detectable_spread(s[:1], level)).all()
