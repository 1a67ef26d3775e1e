import numpy as np
import pytest

from holdfast.theory import two_point_exponent, two_point_threshold


@pytest.mark.parametrize(("step_size", "bias", "heterogeneity"), [(0.05, 1.0, 5.0), (0.2, -0.5, 9.0), (0.01, 2.0, 0.0)])
def test_exponent_is_the_mean_of_the_logarithm(step_size, bias, heterogeneity):
    factors = 1 + step_size * (bias + heterogeneity * np.array([-1, 1]))
    assert two_point_exponent(step_size, bias, heterogeneity) == pytest.approx(np.mean(np.log(np.abs(factors))))


def test_exponent_vanishes_at_the_threshold():
    threshold = two_point_threshold(0.05, 1.0)
    assert threshold == pytest.approx(6.40, abs=0.005)
    assert two_point_exponent(0.05, 1.0, threshold) == pytest.approx(0, abs=1e-12)
