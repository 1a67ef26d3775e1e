import numpy as np
import pytest
from scipy.stats import alexandergovern, sem, t

from holdfast.core.meta_analysis import random_effects


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
