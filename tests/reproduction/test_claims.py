import json
import math
from dataclasses import replace

import pytest

from holdfast.core.statistics import Estimate
from holdfast.reproduction.claims import HOLDING, Claim, Verdict


def claim(low, high, recorded):
    measured = Estimate((low + high) / 2, low, high)
    return Claim("x", "figure 0", "a claim", "none", measured, (0.9, math.inf), recorded, "because")


@pytest.mark.parametrize(
    ("low", "high", "recorded", "verdict", "broken"),
    [
        (0.95, 0.99, Verdict.HOLDS, Verdict.HOLDS, False),
        (0.95, 0.99, Verdict.HOLDS_WITH_OUR_CHOICE, Verdict.HOLDS_WITH_OUR_CHOICE, False),
        (0.5, 0.8, Verdict.HOLDS, Verdict.DOES_NOT_HOLD, True),
        (0.5, 0.8, Verdict.HOLDS_WITH_OUR_CHOICE, Verdict.DOES_NOT_HOLD, True),
        (0.8, 0.99, Verdict.HOLDS, Verdict.UNDECIDED, False),
        (0.5, 0.8, Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD, False),
        (0.95, 0.99, Verdict.DOES_NOT_HOLD, Verdict.HOLDS, False),
        (0.5, 0.8, Verdict.OUTSIDE_CONSTANTS, Verdict.OUTSIDE_CONSTANTS, False),
    ],
)
def test_the_verdict_follows_from_the_interval(low, high, recorded, verdict, broken):
    assert claim(low, high, recorded).verdict is verdict
    assert claim(low, high, recorded).broken is broken
    assert claim(low, high, recorded).undecided is (verdict is Verdict.UNDECIDED and recorded in HOLDING)


def test_a_number_that_is_nan_was_not_measured():
    assert claim(math.nan, math.nan, Verdict.HOLDS).verdict is Verdict.NOT_MEASURED
    assert claim(math.nan, math.nan, Verdict.HOLDS).undecided


def test_the_allowed_range_goes_from_low_to_high():
    with pytest.raises(ValueError, match=r"allowed must be a range from low to high, got \(0.05, -inf\)"):
        replace(claim(0.95, 0.99, Verdict.HOLDS), allowed=(0.05, -math.inf))


def test_claims_become_json():
    plain = json.loads(json.dumps(claim(0.95, 0.99, Verdict.HOLDS).asdict()))
    assert plain["allowed"] == [0.9, None]
    assert plain["verdict"] == "holds"
    assert plain["measured"] == {"value": 0.97, "low": 0.95, "high": 0.99}
