"""Every experiment runs, draws, and judges its claims by intervals."""

import numpy as np
import pytest

from holdfast.plots import style
from holdfast.reproduction.claims import Verdict
from holdfast.reproduction.runner import EXPERIMENTS

# Explicit samples take long, and so do jumps, which are waited for; the intervals of medians need at least six seeds.
SLOW = ("algorithm_4", "theorem_2", "jumps", "jump_rates", "absorbing", "collapse", "jump_recovery")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in EXPERIMENTS]
)
def test_experiment(name):
    experiment = EXPERIMENTS[name]
    # Below six seeds the experiments on jumps are cut short.
    data = experiment.simulate(max(6, min(8, experiment.QUICK_SEEDS)))
    with style():
        figure = experiment.draw(data)
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>":
            continue
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_legend() is not None
    assert len(experiment.numbers(data)) > 0
    claims = experiment.claims(data)
    assert claims
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        value, low, high = claim.measured
        assert low <= value + 1e-9
        assert value <= high + 1e-9
        assert claim.why
        assert claim.settings
        # With so few seeds a claim may be undecided, but what was recorded must not be contradicted.
        assert not claim.broken, claim
        assert np.isfinite(value) or claim.verdict is Verdict.UNDECIDED
    assert isinstance(experiment.OPEN, tuple)
    assert experiment.TITLE
