import numpy as np
import pytest

from holdfast.sensing.environments import gaussian, two_point
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.questions.panels import draw_panels, panel_exponent


@pytest.mark.parametrize("count", [16, 64])
def test_the_share_of_panels_with_a_negative_exponent(count):
    law, step_size = gaussian(1.0, 9.0), 0.05
    negative = np.log(np.abs(1 + step_size * draw_panels(law, count, 4000))).mean(1) < 0
    # Four standard errors of the share, and the skewness of one logarithm (-2.4) by Edgeworth's first term.
    allowed = 4 * 0.5 / np.sqrt(4000) + 2.4 / (6 * np.sqrt(2 * np.pi * count))
    assert float(panel_exponent(law, step_size).negative(count)) == pytest.approx(negative.mean(), abs=allowed)


def test_finite_time_adds_the_walk_to_the_panel():
    """Runs of T steps, each on a panel of its own that it visits at random."""
    law, step_size, steps, count, runs = two_point(1.0, 5.0), 0.05, 200, 8, 4000
    random = np.random.default_rng(3)
    panels = draw_panels(law, count, runs, seed=1)
    visited = np.take_along_axis(panels, random.integers(0, count, (runs, steps)), 1)
    share = np.exp(2 * (np.log(1e-3) + np.log(np.abs(1 + step_size * visited)).sum(1)))
    predicted = float(panel_exponent(law, step_size).washed_out(count, steps, 1e-3, 0.05))
    # Four standard errors, and the steps of a law of two atoms.
    assert (share < 0.05).mean() == pytest.approx(predicted, abs=4 * 0.5 / np.sqrt(runs) + 0.03)


def test_the_number_needed_gives_the_confidence():
    law = panel_exponent(gaussian(1.0, 9.0), 0.05)
    assert law.negative(law.needed(0.95) - 1) < 0.95 <= law.negative(law.needed(0.95))
    assert panel_exponent(gaussian(1.0, 2.0), 0.05).needed(0.95) == np.inf
    assert law.needed(0.05) == law.needed(0.5) == 1
    with pytest.raises(ValueError, match="confidence must be a number between 0 and 1, got 1"):
        law.needed(1)


def test_at_the_threshold_the_number_of_environments_does_not_matter():
    law = panel_exponent(two_point(1.0, float(two_point_threshold(0.05, 1.0))), 0.05)
    np.testing.assert_allclose(law.negative([1, 10, 1000]), 0.5, atol=1e-6)
