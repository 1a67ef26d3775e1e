"""A part of the fuzzing campaign; `make fuzz` runs all of it."""

import pytest

from fuzzing.campaign import campaign, run_case


def test_the_first_hundred_cases():
    ends, findings = campaign(0, 100)
    assert findings == []
    # all kinds of cases occur, so that nothing is tested in name only
    assert {"predicted", "fit refused", "model used", "model refused", "options refused"} <= set(ends)


@pytest.mark.slow
def test_four_hundred_other_cases():
    _, findings = campaign(20_000, 400)
    assert findings == []


@pytest.mark.parametrize("seed", [3, 17])
def test_a_case_can_be_repeated(seed):
    assert run_case(seed) == run_case(seed)
