import pytest

from holdfast.experiments.advised import PROBLEMS, claims, compare, numbers
from holdfast.reproduction.claims import Position


@pytest.mark.slow
def test_the_promise_is_kept_at_twelve_problems():
    """Real batches by the exact law, 300 runs each; docs/theory.md has the numbers of 800."""
    data = compare(PROBLEMS, 300)
    assert not numbers(data).isna().any().any()
    assert [claim.position for claim in claims(data)] == [Position.INSIDE, Position.INSIDE]
