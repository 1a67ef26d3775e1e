import numpy as np
import pytest

from holdfast.theory import two_point_exponent
from holdfast.theory.effects import effect_exponents, washing_strength


def test_two_environments_are_the_two_point_law():
    """Gradients -(s +- M) at the start of matrix sensing: the exponent of u is its closed form."""
    exponents = effect_exponents(0.05, np.array([[-(1.0 + 6.0)], [-(1.0 - 6.0)]]))
    assert exponents[0, 0] == pytest.approx(float(two_point_exponent(0.05, 1.0, 6.0)))


@pytest.mark.parametrize(("mean", "spread"), [(0.4, 0.2), (-0.1, 0.05), (0.02, 0.3)])
def test_washing_strength_is_where_the_larger_exponent_crosses_zero(mean, spread):
    """For small steps: at 0.9 of the strength one of u and v grows, at 1.1 of it both die."""
    strength = float(washing_strength(mean, spread**2))
    step_size = 1e-4 * min(1.0, 1 / strength)
    for factor, alive in ((0.9, True), (1.1, False)):
        k = np.sqrt(factor * strength / step_size) - 1
        gradients = mean + (1 + k) * spread * np.array([[1.0], [-1.0]])
        assert (effect_exponents(step_size, gradients).max() > 0) == alive


def test_what_does_not_vary_is_never_washed_out():
    assert washing_strength(0.3, 0.0) == np.inf
