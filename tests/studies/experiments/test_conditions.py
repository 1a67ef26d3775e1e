"""Which conditions of a theorem settings miss, in words."""

from functools import partial

import pytest

from holdfast import Settings
from holdfast.sensing.environments import two_point
from holdfast_studies.papers.conditions import missed_conditions, theorem_conditions
from holdfast_studies.papers.inside import conditions as inside


def test_settings_of_figure_3_miss_ranks_step_size_and_start():
    missed = theorem_conditions(Settings()).missed
    assert [line.split(" = ")[0] for line in missed] == ["min(r1, r2)", "eta", "alpha"]


def test_theorem_8_asks_for_more():
    """With r1 = r2 = 200, r^2 = 160,000 leaves eta = 7e-6 out, which theorem 2 allows; log(40)^4 = 185."""
    law = two_point(0.0, 2000.0)
    missed = partial(
        missed_conditions, law, dimension=40, step_size=7e-6, init_scale=1e-4, invariant_rank=200, spurious_rank=200
    )
    assert missed() == ()
    (eta, alpha) = missed(theorem=8)
    assert "1/r^2" in eta
    assert "d^-3" in alpha


def test_nothing_is_missed_inside():
    assert inside().met


def test_swept_settings_are_refused():
    with pytest.raises(ValueError, match="settings must have one heterogeneity, got 2"):
        theorem_conditions(Settings(heterogeneity=(1.0, 2.0)))
