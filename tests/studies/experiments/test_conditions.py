"""Which conditions of a theorem settings miss, in words."""

import pytest

from holdfast import Settings
from holdfast_studies.papers.conditions import theorem_conditions
from holdfast_studies.papers.inside import conditions as inside


def test_settings_of_figure_3_miss_ranks_step_size_and_start():
    missed = theorem_conditions(Settings()).missed
    assert [line.split(" = ")[0] for line in missed] == ["min(r1, r2)", "eta", "alpha"]


def test_theorem_8_asks_for_more():
    """With r1 = r2 = 10,000, r^2 leaves eta = 7e-6 out, which theorem 2 allows; log(20,000)^4 = 9619."""
    settings = Settings(
        dimension=20_000, invariant_rank=10_000, spurious_rank=10_000, bias=0.0, heterogeneity=2000.0,
        step_size=7e-6, init_scale=1e-10,
    )  # fmt: skip
    assert theorem_conditions(settings).met
    (eta, alpha) = theorem_conditions(settings, theorem=8).missed
    assert "1/r^2" in eta
    assert "d^-3" in alpha


def test_nothing_is_missed_inside():
    assert inside().met


def test_swept_settings_are_refused():
    with pytest.raises(ValueError, match="settings must have one heterogeneity, got 2"):
        theorem_conditions(Settings(heterogeneity=(1.0, 2.0)))
