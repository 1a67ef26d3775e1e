"""Every statement of the paper by Xu, Gu and Fang has a claim, or a reason why it has none."""

import pytest

from holdfast_studies.claims import coverage
from holdfast_studies.papers.statements import STATEMENTS

EXPERIMENTS = (
    *(f"figure_{number}" for number in range(1, 7)),
    *(f"theorem_{number}" for number in (2, 3, 4, 8)),
    "algorithm_4",
    "proposition_1",
    "isometry",
    "sequences",
    "inside",
    "lemmas",
    "assumptions",
)
# Statements of other sources, which other experiments answer.
OTHERS = ("jumps", "question", "section 6", "Holdfast")


def test_every_reason_stands_alone():
    """A statement that is not tested says why; a name is not listed twice with different capitals."""
    assert all(not each.untested or len(each.untested) > 10 for each in STATEMENTS.values())
    assert len({name.lower() for name in STATEMENTS}) == len(STATEMENTS)


@pytest.mark.slow
def test_every_statement_has_a_claim_or_a_reason(claims_of):
    claims = [claim for name in EXPERIMENTS for claim in claims_of(name)]
    covered = coverage(STATEMENTS, claims)
    missing = [each.name for each in covered if not each.claims and not each.statement.untested]
    assert [name for name in missing if not name.startswith(OTHERS)] == []
    both = [each.name for each in covered if each.claims and each.statement.untested]
    assert both == []
