"""A part of the campaign of kills; `make kills` runs all of it."""

import pytest

from sweeps.kill_campaign import campaign, check


@pytest.mark.slow
def test_three_kills(tmp_path):
    found = campaign(3, seed=1, folder=tmp_path)
    check(found)
    assert found.while_starting < found.kills
