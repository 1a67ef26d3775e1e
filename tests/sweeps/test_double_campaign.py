"""The comparison of a sweep with float64, in small: equal laws pass, others do not."""

import pytest

import holdfast as hf
from sweeps.double_campaign import LEVEL, p_values


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    settings = {"dimension": 6, "batch_size": 100, "steps": 60, "every": 60, "init_scale": 0.05}
    return hf.sweep(settings, {"heterogeneity": [2.0, 6.0]}, seeds=400, out=tmp_path_factory.mktemp("single"))


def test_float32_follows_the_law_of_float64(swept):
    # Two tests at half the level each; the seeds are fixed, so a true hypothesis is rejected always or never.
    assert min(p_values(swept, 6.0, 400).values()) > LEVEL / 2


def test_another_law_is_noticed(swept):
    other = swept.assign_attrs(settings={**swept.attrs["settings"], "step_size": 0.06})
    assert min(p_values(other, 6.0, 400).values()) < LEVEL / 2
