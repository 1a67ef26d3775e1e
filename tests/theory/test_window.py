import numpy as np
import pytest

from holdfast.sensing.environments import gaussian, table, two_point, uniform
from holdfast.theory.advice import advise
from holdfast.theory.assumptions import regularity
from holdfast.theory.diagnosis import Region, classify, diagnose, predicted_region
from holdfast.theory.finite_time import learning_time
from holdfast.theory.lyapunov import exponents
from holdfast.theory.window import bounded_step_size, limits, paper_window, sharp_window, threshold_heterogeneity


@pytest.mark.parametrize(("bias", "heterogeneity"), [(1.0, 6.0), (0.5, 3.0), (2.0, 5.0)])
def test_ends_of_two_strengths_are_those_of_the_quadratic_equation(bias, heterogeneity):
    """|(1 + eta s)^2 - (eta M)^2| < 1 between 2 s / (M^2 - s^2) and (s + sqrt(2 M^2 - s^2)) / (M^2 - s^2)."""
    square = heterogeneity**2 - bias**2
    low, high = limits(two_point(bias, heterogeneity)).washing_out
    assert low == pytest.approx(2 * bias / square, rel=1e-6)
    assert high == pytest.approx((bias + np.sqrt(2 * heterogeneity**2 - bias**2)) / square, rel=1e-6)


@pytest.mark.parametrize("law", [uniform(1.0, 8.0), gaussian(1.0, 6.0), table([5.0, -1.0, 2.0, 0.5])])
def test_the_exponent_changes_sign_at_the_ends(law):
    low, high = limits(law).washing_out
    inside = exponents(law, [1.001 * low, 0.999 * high]).ravel()
    outside = exponents(law, [0.999 * low, 1.001 * high]).ravel()
    assert (inside < 0).all()
    assert (outside > 0).all()


def test_strengths_that_do_not_commute_have_a_window_too():
    """Against the exact ends of the same strengths without their off-diagonal part, which is small."""
    exact = limits(two_point(1.0, 6.0, rank=2, shared=False)).washing_out
    low, high = limits(two_point(1.0, 6.0, rank=2, off_diagonal=0.02, shared=False)).washing_out
    # 64 chains of 300 steps know the exponent up to about 0.004, and it moves by 1.5 per unit of step size.
    assert low == pytest.approx(exact[0], rel=0.25)
    assert high == pytest.approx(exact[1], rel=0.1)


@pytest.mark.parametrize(("bias", "heterogeneity"), [(1.0, 6.0), (-1.0, 3.0), (1.0, 0.5)])
def test_below_the_bound_nothing_diverges_and_above_something_does(bias, heterogeneity):
    """The scalar recursion from every start inside the bounded set, 20,000 paths."""
    bound = bounded_step_size(bias - heterogeneity, bias + heterogeneity)
    random = np.random.default_rng(0)
    for factor, expected in ((0.99, False), (1.05, True)):
        step_size = factor * bound
        size = random.uniform(0, np.sqrt(bias - heterogeneity + 2 / step_size), 20_000)
        for _ in range(300):
            strength = bias + heterogeneity * random.choice([-1, 1], len(size))
            size = np.clip(size * (1 + step_size * (strength - size**2)), -1e6, 1e6)
        assert (np.abs(size) > 1e3).any() == expected


def test_the_papers_window_is_empty_at_its_own_settings():
    window = paper_window(two_point(1.0, 6.0))
    assert window.empty
    assert window.low == pytest.approx(24 / 18)
    assert window.high == pytest.approx(1 / (64 * 7))
    assert "M2 > 1536 M1" in window.reason
    assert not paper_window(two_point(1.0, 4000.0)).empty


def test_regularity_of_each_law():
    assert regularity(two_point(1.0, 6.0)) == pytest.approx((7.0, 18.0))
    assert regularity(uniform(1.0, 6.0)) == pytest.approx((7.0, 6.0), rel=1e-12)
    assert regularity(gaussian(1.0, 6.0)) == pytest.approx((np.inf, 18.0), rel=1e-12)


def test_threshold_of_other_laws_is_where_the_exponent_vanishes():
    assert threshold_heterogeneity(two_point, 1.0, 0.05) == pytest.approx(6.403, abs=1e-3)
    for law in (uniform, gaussian):
        found = threshold_heterogeneity(law, 1.0, 0.05)
        assert exponents(law(1.0, found), 0.05) == pytest.approx([0], abs=1e-6)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (table([2.0]), "only one environment"),
        (table([2.0, 2.0]), "identical"),
        (two_point(1.0, 0.0), "identical"),
        (two_point(1.0, 0.5), "never change sign"),
        (table([[5.0, 1.0], [-4.0, 2.0]]), "no step size makes the exponent negative"),
    ],
)
def test_the_advice_says_why_nothing_can_be_washed_out(law, words):
    window = sharp_window(law)
    assert window.empty
    assert words in window.reason
    diagnosis = diagnose(law)
    assert words.lower() in diagnosis.sentences[0].lower()
    assert diagnosis.asdict()["sharp_window"] is None
    assert diagnosis.advised is None


def test_strengths_without_bound_come_with_a_warning():
    assert "runs may diverge at any step size" in diagnose(gaussian(1.0, 6.0)).sentences[0]
    assert "diverge at any" not in diagnose(uniform(1.0, 9.0)).sentences[0]


@pytest.mark.parametrize("law", [two_point, gaussian, gaussian.args[0]])
def test_a_law_has_to_be_called_first(law):
    with pytest.raises(ValueError, match="environments must be the ones that a law makes of bias and heterogeneity"):
        diagnose(law)


def test_no_strength_at_all_has_no_window():
    assert sharp_window(two_point(0.0, 0.0)).empty


def test_beyond_stability_no_share_is_predicted():
    diagnosis = diagnose(two_point(1.0, 6.0), step_size=0.3)
    assert diagnosis.median is None
    assert "loses its stability" in " ".join(diagnosis.sentences)
    assert predicted_region(two_point(1.0, 0.1), 1.0, 100) is Region.UNSTABLE


def test_a_window_beyond_stability_is_empty():
    window = sharp_window(table([5.0, -1.0, 2.0, 0.5]))
    assert window.empty
    assert "only dies out above" in window.reason


def test_advice_keeps_its_promise():
    """Simulated without sampling error by the scalar recursion; 20,000 paths know a probability up to 0.005 or less."""
    law = two_point(1.0, 6.0)
    advised = advise(law, confidence=0.95, tolerance=0.01, dimension=30)
    window = sharp_window(law)
    assert window.low < advised.step_size < window.high
    random = np.random.default_rng(0)
    spurious, invariant = np.full(20_000, advised.init_scale), advised.init_scale
    for _ in range(advised.steps):
        strength = 1 + 6 * random.choice([-1, 1], len(spurious))
        spurious = spurious * (1 + advised.step_size * (strength - spurious**2))
        invariant = invariant * (1 + advised.step_size * (1 - invariant**2))
    assert invariant**2 > 0.95
    assert np.mean(spurious**2 > 0.01) < 0.05 + 0.005
    assert advise(law, step_size=0.05) is None
    assert advise(two_point(1.0, 8.0), step_size=0.05).step_size == 0.05


def test_advice_says_which_batch_would_suffice():
    """Sampling error of small batches brings back more than any starting point can lower."""
    found = diagnose(two_point(1.0, 8.0), batch_size=500, dimension=20, confidence=0.9)
    assert found.advised is None
    (sentence,) = (each for each in found.sentences if "would suffice" in each)
    batch_size = int(sentence.split("batches of ")[-1].split()[0])
    advised = advise(two_point(1.0, 8.0), batch_size=batch_size, dimension=20, confidence=0.9)
    assert advised.failure <= 0.1
    assert advised.median < advised.mean < 1
    assert batch_size in (1000, 2000, 4000, 8000)


@pytest.mark.parametrize("step_size", [0.01, 0.1, 0.3])
def test_learning_time_is_that_of_the_recursion(step_size):
    size, steps = 1e-4, 0
    while size**2 < 0.95:
        size, steps = size * (1 + step_size * (1 - size**2)), steps + 1
    # The logistic curve is a little late for large steps, never early.
    assert steps <= learning_time(step_size, 1e-4) <= 1.1 * steps + 1


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("confidence", 1.0, "above 0 and at most 0.999"),
        ("tolerance", 0.0, "between 0 and 1"),
        ("ensemble", "rank one", "one of gaussian, symmetric, or an Ensemble"),
        ("batch_size", 0, "a positive number"),
        ("noise_variance", -1.0, "a number of at least 0"),
        ("noise_variance", 2.0, "0 without a batch_size, because an infinite batch averages the noise out"),
    ],
)
def test_bad_wishes_are_refused(argument, value, allowed):
    with pytest.raises(ValueError, match=f"{argument} must be {allowed}, got {value!r}"):
        advise(two_point(1.0, 6.0), **{argument: value})


def test_noise_has_to_have_a_batch():
    with pytest.raises(ValueError, match=r"noise_variance must be 0 without a batch_size, .* got 2\.0"):
        diagnose(two_point(1.0, 6.0), noise_variance=2.0)


@pytest.mark.parametrize(("heterogeneity", "mean", "median"), [(0.5, 0.99, 0.99), (2.0, 0.9, 0.82)])
def test_mean_and_median_in_the_long_run_are_of_one_law(heterogeneity, mean, median):
    """Simulated, q <- q (1 + eta (xi - q^2)) has 0.993 and 0.988 at M = 0.5, and 0.896(2) and 0.817(2) at M = 2."""
    words = " ".join(diagnose(two_point(1.0, heterogeneity)).sentences)
    assert f"a mean of about {mean} and a median of about {median}" in words


def test_regions():
    assert classify([1.0, 1.0, 0.1, 1.0], [0.5, 0.0, 0.0, 0.0], [0, 0, 0, 0.9]).tolist() == [
        Region.BOTH,
        Region.INVARIANT_ONLY,
        Region.NOTHING,
        Region.UNSTABLE,
    ]
    law = two_point(1.0, 5.0)
    assert predicted_region(law, 0.05) is Region.BOTH  # the exponent is positive
    assert predicted_region(law, 0.05, 200) is Region.INVARIANT_ONLY  # but slow
    assert predicted_region(law, 0.05, 50) is Region.NOTHING
    assert predicted_region(law, 0.5) is Region.UNSTABLE
