"""Small parts of the campaigns of the Makefile: many users, and what no page would send."""

import asyncio

import pytest

from apps.lab import fuzz_campaign, load_campaign

pytestmark = pytest.mark.slow


def test_users_do_not_get_each_others_results():
    tally = asyncio.run(load_campaign.campaign(users=6, seconds=4))
    assert tally.mixed == 0
    assert tally.outcomes["done"] > 0
    assert set(tally.outcomes) <= {"done", "stopped", "left before the end"}


def test_whatever_is_sent_the_real_server_goes_on():
    _, wrong = fuzz_campaign.campaign(300, seed=1)
    assert wrong == []
