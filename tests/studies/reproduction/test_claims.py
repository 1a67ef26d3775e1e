import json
import math
from dataclasses import replace

import pytest

from holdfast.core.statistics import Estimate
from holdfast_studies.claims import (
    AS_STATED,
    OUR_SETTINGS,
    Claim,
    Conditions,
    Position,
    Statement,
    Verdict,
    counts_by_origin,
    coverage,
)

MISSED = Conditions(missed=("eta is too large",), chosen=("T",))


def claim(low, high, conditions=AS_STATED, expected=Position.INSIDE):
    measured = Estimate((low + high) / 2, low, high)
    return Claim("x", "figure 0", "a claim", "none", measured, (0.9, math.inf), conditions, "because", expected)


@pytest.mark.parametrize(
    ("low", "high", "conditions", "verdict"),
    [
        (0.95, 0.99, AS_STATED, Verdict.HOLDS),
        (0.95, 0.99, OUR_SETTINGS, Verdict.HOLDS_WITH_OUR_CHOICE),
        (0.95, 0.99, MISSED, Verdict.SEEN),
        (0.5, 0.8, AS_STATED, Verdict.DOES_NOT_HOLD),
        (0.5, 0.8, OUR_SETTINGS, Verdict.DOES_NOT_HOLD_WITH_OUR_CHOICE),
        (0.5, 0.8, MISSED, Verdict.NOT_SEEN),
        (0.8, 0.99, AS_STATED, Verdict.UNDECIDED),
        (0.8, 0.99, MISSED, Verdict.UNDECIDED),
        (math.nan, math.nan, OUR_SETTINGS, Verdict.NOT_MEASURED),
    ],
)
def test_the_verdict_follows_from_interval_and_conditions_alone(low, high, conditions, verdict):
    for expected in Position:
        assert claim(low, high, conditions, expected).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "expected", "broken", "undecided"),
    [
        (0.95, 0.99, Position.INSIDE, False, False),
        (0.95, 0.99, Position.OUTSIDE, True, False),
        (0.5, 0.8, Position.INSIDE, True, False),
        (0.5, 0.8, Position.OUTSIDE, False, False),
        (0.8, 0.99, Position.INSIDE, False, True),
        (0.8, 0.99, Position.OUTSIDE, False, True),
        (0.8, 0.99, Position.UNDECIDED, False, False),
        (math.nan, math.nan, Position.INSIDE, False, True),
    ],
)
def test_what_was_not_expected_is_noticed(low, high, expected, broken, undecided):
    for conditions in (AS_STATED, OUR_SETTINGS, MISSED):
        found = claim(low, high, conditions, expected)
        assert (found.broken, found.undecided) == (broken, undecided)


def test_the_allowed_range_goes_from_low_to_high_and_leaves_something_out():
    with pytest.raises(ValueError, match=r"allowed must be a range from low to high, got \(0.05, -inf\)"):
        replace(claim(0.95, 0.99), allowed=(0.05, -math.inf))
    with pytest.raises(ValueError, match="allowed must leave something out"):
        replace(claim(0.95, 0.99), allowed=(-math.inf, math.inf))


def test_claims_become_json():
    plain = json.loads(json.dumps(claim(0.95, 0.99, MISSED).asdict()))
    assert plain["allowed"] == [0.9, None]
    assert plain["verdict"] == "seen, outside the theorem's constants"
    assert plain["position"] == plain["expected"] == "inside"
    assert plain["conditions"] == {"missed": ["eta is too large"], "chosen": ["T"], "met": False}
    assert plain["measured"] == {"value": 0.97, "low": 0.95, "high": 0.99}


def test_coverage_finds_the_claims_of_each_statement():
    statements = {"figure 0": Statement("It holds."), "eq. 1": Statement("A bound."), "lemma 1": Statement("-", "old")}
    both = replace(claim(0.95, 0.99), id="y", source="figure 0; eq. 1")
    found = coverage(statements, [claim(0.95, 0.99), both, replace(both, source="my own")])
    assert [[each.id for each in row.claims] for row in found] == [["x", "y"], ["y"], []]
    assert found[-1].statement.untested == "old"


def test_verdicts_are_counted_once_by_the_origin_of_the_first_source():
    statements = {"figure 0": Statement("-", origin="a paper"), "eq. 1": Statement("-", origin="another")}
    both = replace(claim(0.95, 0.99), source="eq. 1; figure 0")
    counts = counts_by_origin(coverage(statements, [claim(0.95, 0.99), claim(0.5, 0.8), both]))
    assert counts == {
        "a paper": {Verdict.HOLDS: 1, Verdict.DOES_NOT_HOLD: 1},
        "another": {Verdict.HOLDS: 1},
    }
